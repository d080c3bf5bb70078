"""tools.texts: the page with every text that people see."""

from tools import texts


def test_the_page_is_current() -> None:
    """docs/TEXTS.md is what the code says today; `make map` writes it anew."""
    page = texts.ROOT / texts.PAGE
    assert page.read_text(encoding="utf-8") == texts.render()


def test_each_surface_has_its_texts() -> None:
    """One of each is where people meet it."""
    page = texts.render()
    surfaces = dict(part.split("\n", 1) for part in page.split("\n## ")[1:])
    assert list(surfaces) == list(texts.SURFACES)
    for surface, text in {
        "Chats": "| I already keep that in mind: |",
        "What becomes of a lesson": "| My answers follow this already.",
        "Page": "| Waiting, {number} before you |",
        "Dashboards": "| Recorded views |",
        "Terminal": "| Press Ctrl-C once more, or Ctrl-D, to end. |",
        "Command line": "| This ends heed for everybody",
        "HTTP": "| The body is not JSON. |",
    }.items():
        assert text in surfaces[surface]


def test_what_nobody_reads_is_left_out() -> None:
    """Docstrings, log lines, names of tasks, patterns and SQL are no texts."""
    module = '''"""A module of words."""
logger.info("an update failed here")
task = create_task(work, name="live text of it")
query = "SELECT text FROM note"
pattern = r"a \\d+ of (?:it|them)"
said = f"Learned: v{number} in {seconds:.1f} s."
short = "Noted."
'''
    assert list(texts.python_texts(module)) == ["Learned: v{number} in {seconds} s.", "Noted."]


def test_scripts_and_templates_have_words() -> None:
    """Comments, imports and tags are left out; attributes that are read aloud are in."""
    script = 'import { el } from "/static/dom.js";\n// a "label"\nconst a = { send: "Send", n: `${n} left` };\n'
    assert list(texts.script_texts(script)) == ["Send", "{n} left"]
    template = '<p title="A note">{% if a %}Hello {{ name }}{% endif %}</p><b>{{ name }}</b>'
    assert list(texts.template_texts(template)) == ["A note", "Hello {name}"]

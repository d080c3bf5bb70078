"""`heed`: start it, talk to it, look after it.

What only some commands need is imported where it is needed: the others answer at once.

Exit codes are those of `bot.cli.console`. `run` starts heed; every other command talks to the running one, but for
`doctor` and those of `bot.cli.backups`.
"""

import asyncio
import importlib.util
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import typer
from rich.text import Text

from bot import config
from bot.cli import backups, calibrate, cluster, roles, serving
from bot.cli.agent import command as agent_command
from bot.cli.client import HeedClient
from bot.cli.connection import Url, client_of
from bot.cli.console import WithTerminal, console, ending, fail, guarded, is_terminal, settings
from bot.cli.mcp import command as mcp_command
from bot.cli.roles import ProcessRole
from bot.config import Settings
from bot.errors import BotError
from bot.monitoring import logs
from storage.files import atomic

T = TypeVar("T")

FORWARD = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
User = Annotated[str, typer.Option("--user", "-u", help="Which local user this is about.")]

cli = typer.Typer(
    name="heed",
    help="A chat bot that learns from being corrected.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
adapters = typer.Typer(help="A user's adapter: its versions, and one as a zip file.", no_args_is_help=True)
cli.add_typer(adapters, name="adapters")
cli.add_typer(agent_command.commands)
cli.add_typer(mcp_command.commands)
cli.add_typer(backups.commands)
cli.add_typer(calibrate.commands)
cli.add_typer(cluster.commands, name="cluster")
keys = typer.Typer(help="API keys: who may call heed over HTTP, what for, and how much a day.", no_args_is_help=True)
cli.add_typer(keys, name="keys")


def main() -> None:
    """Run the `heed` command, as `python -m bot` does: no process that vLLM starts then imports heed's own script."""
    sys.modules["__main__"].__spec__ = importlib.util.find_spec("bot.__main__")
    cli()


@cli.command()
def run(
    has_terminal: WithTerminal = True,
    role: Annotated[
        ProcessRole, typer.Option(help="Which part of a heed on several machines this process is.")
    ] = ProcessRole.ALONE,
    name: Annotated[str, typer.Option(help="What the part is called, if not as its machine.")] = "",
) -> None:
    """Start heed: web page, HTTP calls, and a chat in this terminal."""
    chosen = settings()
    logs.begin(chosen.log_level, chosen.log_format)
    for warning in config.unknown_variables():
        console.print(Text(f"warning: {warning}", style="yellow"))
    shows_terminal = has_terminal and is_terminal()
    if role == ProcessRole.ALONE:
        guarded(_run(chosen, has_terminal=shows_terminal))
    else:
        guarded(roles.run(chosen, role, name, has_terminal=shows_terminal))


@cli.command()
def chat(user: User = "local", url: Url = "") -> None:
    """Talk to the running heed from this terminal."""
    guarded(_chat(client_of(user, url)))


@cli.command()
def notes(user: User = "local", url: Url = "") -> None:
    """List what heed keeps in mind about a user."""
    listed = _call(client_of(user, url), lambda client: client.get("/notes"))
    for note in listed["data"]:
        console.print(Text(f"{note['state']:<10} {note['num_tokens']:>4} tokens  {note['text']}"))
    console.print(f"{listed['tokens_saved']} tokens saved per answer, {listed['tokens_in_prompt']} still in the prompt")


@cli.command()
def rollback(version: int, user: User = "local", url: Url = "") -> None:
    """Let an earlier version of a user's adapter answer again (0: the model as it came)."""
    done = _call(client_of(user, url), lambda client: client.post("/rollback", {"version": version}))
    console.print(_answering(done["adapter_version"]))


@adapters.command("list")
def list_adapters(user: User = "local", url: Url = "") -> None:
    """List the versions of a user's adapter, and what taught them."""
    said = _call(client_of(user, url), lambda client: client.command("/versions"))
    console.print(Text(said["text"]))


@adapters.command("export")
def export_adapter(
    version: int,
    user: User = "local",
    url: Url = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write.")] = None,
) -> None:
    """Write a version of a user's adapter as a zip file that PEFT reads once it is unpacked."""
    path = output or Path(f"heed-adapter-v{version}.zip")
    size_bytes = _download(path, client_of(user, url), f"/adapters/{version}/export")
    console.print(Text(f"v{version} is in {path}, {size_bytes} bytes"))


@adapters.command("batch")
def export_batch(
    version: int,
    user: User = "local",
    url: Url = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write.")] = None,
) -> None:
    """Write what a version of a user's adapter was trained on, as JSONL with a manifest in a zip file."""
    path = output or Path(f"heed-batch-v{version}.zip")
    size_bytes = _download(path, client_of(user, url), f"/adapters/{version}/batch")
    console.print(Text(f"what v{version} was trained on is in {path}, {size_bytes} bytes"))


@adapters.command("import")
def import_adapter(file: Path, user: User = "local", url: Url = "") -> None:
    """Let an adapter that was exported answer a user: it becomes their newest version."""
    try:
        content = file.read_bytes()
    except OSError as error:
        fail(BotError(f"{file} cannot be read: {error.strerror}"))
    done = _call(client_of(user, url), lambda client: client.upload("/adapters", content))
    console.print(_answering(done["adapter_version"]))


@keys.command("add")
def add_key(
    person: Annotated[str, typer.Argument(help="Whose it is: 1 to 32 letters, digits, '_', '.' or '-'.")],
    scopes: Annotated[str, typer.Option(help="What it may do, with commas between.")] = "chat,feedback,adapters,person",
    messages_per_day: Annotated[int | None, typer.Option(min=0, help="Answers a day (UTC); unset: any number.")] = None,
    updates_per_day: Annotated[int | None, typer.Option(min=0, help="Lessons a day (UTC); unset: any number.")] = None,
) -> None:
    """Make an API key and show it, this once. A running heed takes it at once."""
    from bot.cli import local_admin

    wanted = local_admin.NewKey(person, scopes, messages_per_day, updates_per_day)
    token, key = guarded(local_admin.add_key(settings(), wanted))
    console.print(Text(token), soft_wrap=True)
    console.print(Text(f"{key.id} of {key.account}; heed does not keep the key itself: note it down now", style="dim"))


@keys.command("list")
def list_keys() -> None:
    """List the API keys, with what each may do and has done today."""
    from bot.cli import local_admin

    for line in guarded(local_admin.list_keys(settings())):
        console.print(Text(line), soft_wrap=True)


@keys.command("revoke")
def revoke_key(key: Annotated[str, typer.Argument(help="Its id, as `heed keys list` shows it.")]) -> None:
    """Let an API key open nothing any more, from the next call on."""
    from bot.cli import local_admin

    row = guarded(local_admin.revoke_key(settings(), key))
    console.print(Text(f"{row.id} of {row.account} is revoked"))


@cli.command("admin-password")
def make_admin_password() -> None:
    """Make another password for the dashboards at /admin and show it, this once; the one before ends."""
    from bot.cli import local_admin

    console.print(Text(guarded(local_admin.new_password(settings()))), soft_wrap=True)


@cli.command()
def consolidate(
    user: Annotated[str, typer.Argument(help="Which local user this is about.")] = "local", url: Url = ""
) -> None:
    """Take in now what a user has said since the last time: one larger update, with earlier lessons rehearsed."""
    done = _call(client_of(user, url), lambda client: client.post("/consolidate", {}))
    console.print(Text(done["text"]))


@cli.command()
def rebuild(
    user: Annotated[str, typer.Argument(help="Which local user this is about.")] = "local", url: Url = ""
) -> None:
    """Make a user's adapter again from zero, out of what stands; it replaces the old one where it is no worse."""
    done = _call(client_of(user, url), lambda client: client.post("/rebuild", {}))
    console.print(Text(done["text"]))


@cli.command()
def pause(url: Url = "") -> None:
    """Learn nothing for now: corrections wait, and a consolidation that runs is broken off."""
    console.print(Text(_call(client_of(_admin(), url), lambda client: client.command("/pause"))["text"]))


@cli.command()
def resume(url: Url = "") -> None:
    """Learn again, what waited first."""
    console.print(Text(_call(client_of(_admin(), url), lambda client: client.command("/resume"))["text"]))


@cli.command()
def forget(
    user: User = "local",
    url: Url = "",
    is_sure: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase everything heed holds about a user."""
    account = _call(client_of(user, url), lambda client: client.get())["account"]  # with a key, its holder's
    if not is_sure and not typer.confirm(f"Erase every message, note and version of {account}?"):
        raise typer.Exit(1)
    _call(client_of(user, url), lambda client: client.delete())
    console.print(Text(f"everything about {account} is erased"))


@cli.command()
def export(user: User = "local", url: Url = "") -> None:
    """Write everything heed holds about a user to standard output, as JSON."""
    typer.echo(json.dumps(_call(client_of(user, url), lambda client: client.get("/export")), indent=1))


@cli.command()
def pair(code: Annotated[str, typer.Argument(help="The 8 characters that the bot has shown.")], url: Url = "") -> None:
    """Let in who was shown this code on Telegram or Discord."""
    said = _call(client_of(_admin(), url), lambda client: client.command(f"/pair {code}"))
    console.print(Text(said["text"]))


@cli.command("models")
def list_models() -> None:
    """List the models that HEED_MODEL can name, and what each needs on this machine."""
    from bot.cli import models

    chosen = settings()
    with ending():
        for line in models.lines(chosen):
            console.print(Text(line), soft_wrap=True)


@cli.command("doctor")
def examine() -> None:
    """Look at this machine and name what is in the way of a start."""
    from bot.cli import doctor

    findings = asyncio.run(doctor.examine(settings()))
    for finding in findings:
        mark, style = finding.mark
        console.print(Text.assemble((f"{mark:<3}", style), f"{finding.name:<16} {finding.state}"), soft_wrap=True)
        if finding.remedy:
            console.print(Text(f"   {'':<16} {finding.remedy}", style="yellow"), soft_wrap=True)
    raise typer.Exit(0 if all(finding.is_ok for finding in findings) else 1)


@cli.command("eval", context_settings=FORWARD)
def evaluate(context: typer.Context) -> None:
    """Measure what heed learns and what it forgets: key=value arguments, or `compare` or `gates` first."""
    _forward("evals.__main__", context.args)


@cli.command("bench", context_settings=FORWARD)
def benchmark(context: typer.Context) -> None:
    """Measure how fast heed learns and answers (arguments as in python -m bench.run)."""
    _forward("bench.run", context.args)


async def _run(chosen: Settings, *, has_terminal: bool) -> None:
    from bot.app import App

    await serving.serve(partial(App, chosen), has_terminal=has_terminal)


async def _chat(connect: Callable[[], HeedClient]) -> None:
    from bot.cli import waiting
    from bot.cli.terminal import LineSource, PipedLines, PromptLines, TerminalChat

    lines: LineSource = PromptLines() if is_terminal() else PipedLines(sys.stdin.readline)
    async with connect() as client:
        await waiting.until_it_answers(client, console)
        talk = TerminalChat(client, console, lines)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, talk.interrupt)
        await talk.run()


def _admin() -> str:
    """Return the user whose commands are an admin's: with API keys, one that the settings name."""
    chosen = settings()
    named = [name for name in chosen.http.api_keys if f"http:{name}" in chosen.access.admins]
    if chosen.http.api_keys and not named and chosen.http.key is None:
        fail(BotError('no API key belongs to an admin; add "http:<its name>" to HEED_ACCESS_ADMINS, and restart heed'))
    return named[0] if named else "local"


def _call(client: Callable[[], HeedClient], work: Callable[[HeedClient], Awaitable[T]]) -> T:
    async def connected() -> T:
        async with client() as connection:
            return await work(connection)

    return guarded(connected())


def _answering(version: int) -> str:
    return f"Version {version} answers now." if version else "The untrained model answers now."


def _download(path: Path, client: Callable[[], HeedClient], source: str) -> int:
    """Write what heed hands out to a file that is not there yet; its size in bytes."""
    if path.exists():
        fail(BotError(f"{path} is there already; name another file with --output"))
    content = _call(client, lambda connection: connection.download(source))
    guarded(asyncio.to_thread(atomic.write_file, path, content))
    return len(content)


def _forward(module: str, arguments: list[str]) -> NoReturn:
    """Blocking: run a sibling package's command line, and exit with its code."""
    try:
        code = importlib.import_module(module).main(arguments)
    except ModuleNotFoundError as error:
        if error.name not in (module, module.split(".")[0]):
            raise
        fail(BotError(f"{module} is not part of this installation; run it from heed's source tree"))
    raise typer.Exit(code or 0)


if __name__ == "__main__":
    main()

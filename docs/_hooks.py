"""What the site adds to the pages under docs/: papers and examples from elsewhere, and tables made from the code.

A link in a paper leads to a file of the repository, so that it works where people read the repository. Here each is
turned to the page that stands for the file; a link to a file without a page is a warning, which strict mode makes an
error.
"""

from __future__ import annotations

import ast
import inspect
import logging
import posixpath
import re
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import typer
from mkdocs.structure.files import File
from pydantic import BaseModel

from langchain_tiered_memory.cli.app import app
from langchain_tiered_memory.settings import PRIVATE_FILE_MODE, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page
    from pydantic.fields import FieldInfo

ROOT = Path(__file__).parents[1]
PAPERS = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "LICENSE": "project/license.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "examples/README.md": "examples/index.md",
    **{f"examples/{path.name}": f"examples/{path.stem}.md" for path in sorted((ROOT / "examples").glob("*.py"))},
    "examples/compose.yaml": "examples/compose.md",
}
"""Files of the repository that have a page, and the page."""
_LINK = re.compile(r"\]\(([^)\s:#]+)(#[^)\s]*)?\)")
_log = logging.getLogger("mkdocs.hooks")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the papers and examples that are not under docs/."""
    for source, page in PAPERS.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if not source.endswith(".md"):
            language = {".py": "python", ".yaml": "yaml"}.get(Path(source).suffix, "text")
            text = f"# {source}\n\n```{language}\n{text}```\n"
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - as called
    """Turn links to files into links to pages, and fill in what is made from the code."""
    uri = page.file.src_uri
    source = next((name for name, made in PAPERS.items() if made == uri), f"docs/{uri}")
    text = _LINK.sub(lambda found: _led(found, source, uri), markdown)
    for name, tables in (("settings", settings_tables), ("commands", command_tables)):
        before, begins, rest = text.partition(f"<!-- {name} -->")
        if begins:  # up to the end stands what the repository shows in the place of the tables
            text = "\n".join([before, *tables(), rest.partition(f"<!-- end of {name} -->")[2]])
    return text


def _led(found: re.Match[str], source: str, uri: str) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
    page = PAPERS.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
    if page is None:
        _log.warning("%s: no page of the site stands for %s", source, target)
        return found[0]
    return f"]({posixpath.relpath(page, posixpath.dirname(uri) or '.')}{found[2] or ''})"


def settings_tables() -> Iterator[str]:
    """Each group of settings as a table: name, type or unit, default, bounds, what it does."""
    shared: dict[str, type[BaseModel]] = {}
    yield from _group(Settings, "", shared)
    for name, model in shared.items():
        yield from _table(model, f"{name} {{ #{name.lower()} }}", model.model_fields)


def _group(model: type[BaseModel], path: str, shared: dict[str, type[BaseModel]]) -> Iterator[str]:
    groups = {name: field.annotation for name, field in model.model_fields.items() if _is_group(field)}
    own = {name: field for name, field in model.model_fields.items() if name not in groups}
    shared |= {one.__name__: one for field in own.values() for one in _models_in(field.annotation)}
    yield from _table(model, f"{path or 'Settings'} {{ #{(path or 'top').replace('.', '-')} }}", own)
    for name, inner in groups.items():
        yield from _group(inner, f"{path}.{name}" if path else name, shared)


def _is_group(field: FieldInfo) -> bool:
    """Whether a field is a group with defaults of its own; a rule that several fields share is a value."""
    return (
        isinstance(field.annotation, type)
        and issubclass(field.annotation, BaseModel)
        and not any(inner.is_required() for inner in field.annotation.model_fields.values())
    )


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401 - any type
    for one in (annotation, *get_args(annotation)):
        if isinstance(one, type) and issubclass(one, BaseModel):
            yield one


def _table(model: type[BaseModel], heading: str, fields: dict[str, FieldInfo]) -> Iterator[str]:
    texts = _field_texts(model)
    yield f"\n### {heading}\n\n`{model.__name__}`: {_one_line(model.__doc__)}\n"
    if fields:
        yield "| setting | unit or type | default | bounds | what it does |\n|---|---|---|---|---|"
    for name, field in fields.items():
        cells = (f"`{name}`", _unit(name, field), _default(field), _bounds(field), texts.get(name, ""))
        yield f"| {' | '.join(_one_line(cell).replace('|', '&#124;') for cell in cells)} |"


def _field_texts(model: type[BaseModel]) -> dict[str, str]:
    """The text below each field in the source."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(model)))
    body = cast("ast.ClassDef", tree.body[0]).body
    return {
        field.target.id: text.value.value
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


_UNITS = ("tokens", "seconds", "share", "bytes", "words", "messages", "percent", "files", "mode")
"""Last words of settings' names that are units."""


def _unit(name: str, field: FieldInfo) -> str:
    of_name = next((unit for unit in _UNITS if name.endswith(unit)), None)
    numbers = {int, float} & {field.annotation, *get_args(field.annotation)}
    if of_name and numbers:
        return "share of 1" if of_name == "share" else of_name
    said = str(field.annotation) if get_args(field.annotation) else getattr(field.annotation, "__name__", "")
    said = re.sub(r"typing\.|collections\.abc\.|[a-z_.]+\.(?=[A-Z])", "", said)
    said = re.sub(r"Literal\[(.*?)\]", lambda found: found[1].replace(", ", " or "), said)
    said = re.sub(r"Annotated\[(\w+),[^]]*\]", r"\1", said).replace("NoneType", "None").replace(" | ", " or ")
    return f"`{said}`"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value == PRIVATE_FILE_MODE:
        return f"`{value:#o}`"
    if not isinstance(value, dict | tuple | BaseModel):
        return f"`{value!r}`"
    if isinstance(value, dict) and len(value) > _MOST_SHOWN:
        return f"{len(value)} entries"
    named = isinstance(value, dict)
    several = value.items() if named else enumerate(value if isinstance(value, tuple) else (value,))
    shown = [f"`{name}`: {_written(one)}" if named else _written(one) for name, one in several]
    return "<br>".join(shown) or "none"


def _written(value: Any) -> str:  # noqa: ANN401 - whatever a setting holds
    if not isinstance(value, BaseModel):
        return f"`{value}`"
    return ", ".join(f"{name} `{part!r}`" for name, part in value.model_dump(exclude_defaults=True).items())


_MOST_SHOWN = 6
_SIGNS = {"Ge": ("at least", "ge"), "Gt": ("above", "gt"), "Le": ("at most", "le"), "Lt": ("below", "lt")}


def _bounds(field: FieldInfo) -> str:
    found = [(type(rule).__name__, rule) for rule in field.metadata]
    return ", ".join(f"{_SIGNS[name][0]} {getattr(rule, _SIGNS[name][1]):g}" for name, rule in found if name in _SIGNS)


def command_tables() -> Iterator[str]:
    """Each command of the command line: what it does, its arguments and options."""
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        context = command.make_context(f"tiered-memory {name}", [], resilient_parsing=True)
        usage = " ".join(command.collect_usage_pieces(context))
        yield f"\n## {name}\n\n```text\ntiered-memory {name} {usage}\n```\n\n{inspect.cleandoc(command.help or '')}\n"
        rows = [one.get_help_record(context) for one in command.get_params(context)]
        written = [(_one_line(row[0]), _one_line(row[1])) for row in rows if row]
        if written:
            yield "| argument or option | |\n|---|---|"
        for option, text in written:
            yield f"| `{option}` | {text.replace('|', '&#124;')} |"

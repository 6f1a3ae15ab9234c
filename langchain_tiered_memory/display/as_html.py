"""A sheet as HTML for a notebook, light or dark, trusted or not.

Styles are inline, because notebooks that are not trusted drop style sheets. Text has the page's own colour, and lines
and backgrounds are half-transparent grey, so the HTML works with any theme. All text of a sheet goes through `_told`.
"""

from __future__ import annotations

import difflib
import html
from typing import assert_never

from langchain_tiered_memory.display.sheet import (
    COLOURS,
    SPARE_COLOURS,
    Bar,
    Block,
    Cell,
    Changes,
    Fold,
    Node,
    Sheet,
    Table,
    Tree,
    Words,
    harmless,
    number,
    shallow,
)

_LINE = "1px solid rgba(128,128,128,.35)"
_SHEET = f"font:13px/1.5 system-ui,sans-serif;text-align:left;max-width:60em;border:{_LINE};border-radius:6px;"
_WORDS = (
    "white-space:pre-wrap;overflow-wrap:anywhere;margin:4px 0;padding:6px 8px;border-radius:4px;max-height:24em;"
    "overflow:auto;background:rgba(128,128,128,.12);color:inherit;font:12px/1.45 ui-monospace,monospace"
)
_CELL = f"padding:2px 12px 2px 0;border:0;border-bottom:{_LINE};background:none;vertical-align:top;"
_CAPTION = "text-align:left;font-weight:600;margin:8px 0 2px;padding:0;color:inherit;caption-side:top"
_MARKS = {"+": "rgba(0,158,115,.22)", "-": "rgba(213,94,0,.22)"}
_WORDS_SHOWN = 4000
"""Characters of one text: enough to read it, and few enough for a saved notebook."""
_KEPT_TOGETHER = 16
"""Characters of a cell that does not wrap, such as `message 12`."""
_LINES_SHOWN = 400
"""Lines of a tree, each with its text."""


def as_html(sheet: Sheet) -> str:
    """One `div`. Its classes stop MathJax from reading dollar signs as formulas."""
    notes = "".join(f'<div style="opacity:.85">{_told(note)}</div>' for note in sheet.notes)
    blocks = "".join(_block(block) for block in sheet.blocks)
    return (
        f'<div class="tex2jax_ignore mathjax_ignore" style="{_SHEET}padding:8px 12px;color:inherit">'
        f"<div><b>{_told(sheet.kind)}</b> {_told(sheet.about)}</div>{notes}{blocks}</div>"
    )


def _told(text: str) -> str:
    """Text of a sheet as harmless HTML."""
    return html.escape(harmless(text))


def _block(block: Block) -> str:
    match block:
        case Bar():
            return _bar(block)
        case Table():
            return _table(block)
        case Tree():
            nodes = "".join(_node(node) for node in shallow(block, _LINES_SHOWN).nodes)
            return f'<div style="{_CAPTION}">{_told(block.caption)}</div>{nodes}'
        case Words():
            return _words(block.text)
        case Changes():
            return _changes(block)
        case Fold():
            inner = "".join(_block(one) for one in block.blocks)
            return f"<details><summary>{_told(block.caption)}</summary>{inner}</details>"
        case _:
            assert_never(block)


def _bar(bar: Bar) -> str:
    spare = iter(SPARE_COLOURS * (len(bar.parts) // len(SPARE_COLOURS) + 1))
    colours = [COLOURS.get(part.name) or next(spare) for part in bar.parts]
    parts = "".join(
        f'<div title="{_told(part.name)}: {number(part.amount)}" style="width:{100 * part.amount / bar.width:.2f}%;'
        f'background:{colour};box-sizing:border-box;border-right:1px solid rgba(255,255,255,.8)"></div>'
        for part, colour in zip(bar.parts, colours, strict=True)
        if part.amount > 0
    )
    own = {part.name: colour for part, colour in zip(bar.parts, colours, strict=True)}
    said = ", ".join(f"{name} {number(amount)}" for name, amount in bar.sums().items())
    legend = (
        ""
        if bar.is_named_below
        else " ".join(
            f'<span style="margin-right:1em;white-space:nowrap">{_mark(own[name])}{_told(name)} {number(amount)}</span>'
            for name, amount in bar.sums().items()
        )
    )
    box = f"display:flex;height:16px;border:{_LINE};border-radius:3px;overflow:hidden;background:rgba(128,128,128,.12)"
    return (
        f'<div style="{_CAPTION}">{_told(bar.caption)}</div>'
        f'<div role="img" aria-label="{_told(f"{bar.caption}: {said} {bar.unit}")}" style="{box}">{parts}</div>'
        f'<div aria-hidden="true">{legend}</div>'
    )


def _table(block: Table) -> str:
    head = "".join(
        f'<th scope="col" style="{_CELL}{_side(block, place)}">{_told(name)}</th>'
        for place, name in enumerate(block.columns)
    )
    marks = [_mark(COLOURS.get(colour, colour)) for colour in block.colours] or [""] * len(block.rows)
    rows = "".join(
        f'<tr style="background:none">{"".join(_cell(block, row, place, mark) for place in range(len(row)))}</tr>'
        for row, mark in zip(block.rows, marks, strict=True)
    )
    more = f'<div style="opacity:.85">and {block.more:,} more</div>' if block.more > 0 else ""
    return (
        f'<div style="overflow-x:auto"><table style="border-collapse:collapse;margin:0;border:0;font-size:inherit">'
        f'<caption style="{_CAPTION}">{_told(block.caption)}</caption>'
        f'<thead><tr style="background:none">{head}</tr></thead><tbody>{rows}</tbody></table></div>{more}'
    )


def _mark(colour: str) -> str:
    """A square in the colour of a bar's part."""
    style = "display:inline-block;width:.7em;height:.7em;border-radius:2px;margin-right:.4em"
    return f'<span aria-hidden="true" style="{style};background:{colour}"></span>'


def _side(block: Table, place: int) -> str:
    is_number = any(isinstance(row[place], int | float) for row in block.rows)
    return "text-align:right" if is_number else "text-align:left"


def _cell(block: Table, row: tuple[Cell, ...], place: int, mark: str) -> str:
    value = row[place]
    said = "\u2013" if value is None or value == "" else _told(value) if isinstance(value, str) else number(value)
    tag, scope = ("th", ' scope="row"') if place == 0 else ("td", "")
    wrap = "white-space:nowrap" if len(said) <= _KEPT_TOGETHER else "overflow-wrap:break-word"
    style = f"{_CELL}{_side(block, place)};font-weight:400;{wrap}"
    return f'<{tag}{scope} style="{style}">{mark if place == 0 else ""}{said}</{tag}>'


def _node(node: Node) -> str:
    detail = f' <span style="opacity:.75">{_told(node.detail)}</span>' if node.detail else ""
    label = f"{_told(node.label)}{detail}"
    if not (node.text or node.children):
        return f'<div style="margin-left:2.2em">{label}</div>'
    inner = (_words(node.text) if node.text else "") + "".join(_node(child) for child in node.children)
    return (
        f'<details style="margin-left:1.2em"><summary style="cursor:pointer">{label}</summary>'
        f'<div style="margin-left:.6em;border-left:{_LINE}">{inner}</div></details>'
    )


def _words(text: str) -> str:
    more = len(text) - _WORDS_SHOWN
    tail = f"\n<i>and {more:,} more characters</i>" if more > 0 else ""
    return f'<div tabindex="0" style="{_WORDS}">{_told(text[:_WORDS_SHOWN])}{tail}</div>'


def _changes(block: Changes) -> str:
    lines = "".join(
        f'<{tag} style="display:block;text-decoration:none;background:{_MARKS.get(sign, "none")};color:inherit">'
        f"{sign} {_told(line)}</{tag}>"
        for sign, line in changed_lines(block)
        for tag in [{"+": "ins", "-": "del"}.get(sign, "div")]
    )
    return f'<div style="{_CAPTION}">{_told(block.caption)}</div><div tabindex="0" style="{_WORDS}">{lines}</div>'


def changed_lines(block: Changes) -> list[tuple[str, str]]:
    """Differing lines after `+` or `-`, and one line around each. Long stretches between them are left out."""
    before, after = (harmless(text).split("\n") for text in (block.before, block.after))
    found = difflib.unified_diff(before, after, n=1, lineterm="")
    return [(" ", "\u2026") if line.startswith("@@") else (line[0], line[1:]) for line in list(found)[2:]]

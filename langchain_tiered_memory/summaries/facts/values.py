"""What form a value has: two values of one form can take each other's place, a name and a price cannot."""

from __future__ import annotations

import re
from enum import StrEnum

from langchain_tiered_memory.text.identifiers import CODE, DATE, EMAIL, NUMBER, PATH, URL

NAMED = re.compile(rf"{EMAIL.pattern}|{URL.pattern}|{CODE.pattern}")
"""E-mail addresses, URLs, versions, codes and hashes."""
_UNIT_WORD = re.compile(r"[$\u20ac\u00a3\u00a5%\u00b0]|[^\W\d_]{1,20}")


class Shape(StrEnum):
    """The form of a value."""

    PATH = "path"
    CODE = "code"
    DATE = "date"
    FIGURE = "figure"
    NAME = "name"
    """Of more than one word."""
    WORDS = "words"
    """None of these: a choice, a single name, or nothing that was found."""


_SHAPES = ((Shape.PATH, PATH), (Shape.CODE, NAMED), (Shape.DATE, DATE), (Shape.FIGURE, NUMBER))


def shape_of(value: str) -> Shape:
    """The form of a value, as `statements` found it."""
    for shape, pattern in _SHAPES:
        if pattern.match(value):
            return shape
    return Shape.NAME if value[:1].isupper() and " " in value else Shape.WORDS


def unit_of(value: str) -> str:
    """The unit of a figure, in lower case, without a plural's ending; empty for none."""
    if shape_of(value) != Shape.FIGURE:
        return ""
    unit = _UNIT_WORD.search(value)
    return unit[0].lower().removesuffix("s") if unit else ""

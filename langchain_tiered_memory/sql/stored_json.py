"""JSON of one column, read as the type that was written: what does not fit it is damage, and never gets further."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter

_SURROGATE = "\\ud"
"""How the escape of half a character begins."""
_DAMAGED = "is not the JSON that is kept there"


def read_json(value: object, kind: Any) -> Any:  # noqa: ANN401 - a value of the type `kind`
    """`value` read as `kind`, such as `dict[str, int]` or `tuple[Fact, ...]`.

    Raises:
        ValueError: when it is no text (SQLite lets bytes stand in a column of text), no JSON, or not of that type.
    """
    if not isinstance(value, str):
        msg = "is no text"
        raise ValueError(msg)  # noqa: TRY004 - one error for whatever damage did
    try:
        return _adapter(kind).validate_json(value, strict=True)
    except ValueError as error:
        if _SURROGATE in value:
            return _with_lone_surrogates(value, kind)
        raise ValueError(_DAMAGED) from error


def _with_lone_surrogates(value: str, kind: Any) -> Any:  # noqa: ANN401 - as above
    """Half a character, as odd texts have it, is JSON to Python's parser and none to pydantic's."""
    try:
        return _adapter(kind).validate_python(json.loads(value))
    except ValueError as error:
        raise ValueError(_DAMAGED) from error


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401
    return TypeAdapter(kind)

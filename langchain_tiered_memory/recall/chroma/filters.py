"""Filters in Chroma's notation, and the metadata they work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_TERMS = 5000
"""Most alternatives in one filter. Chroma binds each as a variable of SQLite, which takes 32,766."""

_SCOPE = "scope"
"""Session and level in one field. Chroma evaluates each field over the whole collection before it combines them:
with 50,000 rows, session and level apart took three times as long as one field that is already narrow."""


def stored(metadata: Mapping[str, str | int | float]) -> dict[str, Any]:
    """A row's metadata as it is kept: text that Chroma would refuse made speakable, session and level joined."""
    kept = {name: speakable(value) for name, value in metadata.items() if value is not None}
    return {**kept, _SCOPE: _scope(metadata["session"], metadata["level"])}


def filters(session_keys: Sequence[int] | None, where: Mapping[str, Any] | None) -> Iterator[dict[str, Any] | None]:
    """The filters whose results together are those of `session_keys` and `where`; `None` filters nothing.

    Several where there are more sessions than one filter can name.
    """
    clauses = list(_clauses(where or {}))
    if session_keys is None:
        yield _all_of(clauses)
        return
    keys = sorted(set(session_keys))
    levels = _levels(clauses)
    if levels is None or len(levels) > MAX_TERMS:
        field, values = "session", list[Any](keys)
    else:
        clauses = [clause for clause in clauses if "level" not in clause]
        field, values = _SCOPE, [_scope(key, level) for key in keys for level in levels]
    for start in range(0, len(values), MAX_TERMS):
        terms = values[start : start + MAX_TERMS]
        yield _all_of([{field: terms[0]} if len(terms) == 1 else {field: {"$in": terms}}, *clauses])


def _clauses(where: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One condition each: Chroma takes a single key and a single operator at a time."""
    for name, condition in where.items():
        if name == "$and":
            for part in condition:
                yield from _clauses(part)
        elif name == "$or":
            yield {name: [_all_of(list(_clauses(part))) for part in condition]}
        elif isinstance(condition, dict):
            for operator, operand in condition.items():
                yield {name: {operator: speakable(operand)}}
        else:
            yield {name: speakable(condition)}


def _levels(clauses: Sequence[dict[str, Any]]) -> list[int] | None:
    """The levels that the clauses allow, or `None` where they do not simply name them."""
    allowed: set[int] | None = None
    for clause in clauses:
        if "level" not in clause:
            continue
        condition = clause["level"]
        if isinstance(condition, int):
            named = {condition}
        elif "$eq" in condition:
            named = {condition["$eq"]}
        elif "$in" in condition:
            named = set(condition["$in"])
        else:
            return None
        allowed = named if allowed is None else allowed & named
    return None if allowed is None else sorted(allowed)


def _all_of(clauses: Sequence[Any]) -> dict[str, Any] | None:
    if len(clauses) < 2:  # noqa: PLR2004 - one clause needs no conjunction, and Chroma refuses it
        return clauses[0] if clauses else None
    return {"$and": list(clauses)}


def _scope(session: object, level: object) -> str:
    return f"{session}/{level}"


def speakable(value: Any) -> Any:  # noqa: ANN401 - a filter's operand is whatever Chroma takes
    """The value with lone surrogates written out: alike when stored and when asked for."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list | tuple):
        return [speakable(item) for item in value]
    return value

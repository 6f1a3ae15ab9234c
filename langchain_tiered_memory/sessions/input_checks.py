"""Checks of the arguments of verbs, before anything is read or written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.types.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN_VIEWS = ("default", "recall", "minimal")
"""Views that need no setting."""
_SHOWN_CHARS = 500


def check_names(**names: object) -> None:
    """Each a string or `None`; the session id a string that is not empty.

    Raises:
        InvalidInputError: else.
    """
    for name, value in names.items():
        if value is not None and not isinstance(value, str):
            _refuse(name, value, "a string")
    if not names.get("session_id"):
        msg = "the session id is empty: give every conversation a name, such as LangGraph's thread_id"
        raise InvalidInputError(msg)


def check_context_input(
    *, query: object, max_tokens: object, system: object, tools: object, branch: object, profile: object = None
) -> None:
    """What `context` takes.

    Raises:
        InvalidInputError: when one of them is of a type that it cannot take.
    """
    if query is not None and not isinstance(query, str):
        _refuse("query", query, "a string")
    if profile is not None and not isinstance(profile, str):
        _refuse("profile", profile, "a string")
    if max_tokens is not None and (isinstance(max_tokens, bool) or not isinstance(max_tokens, int)):
        _refuse("max_tokens", max_tokens, "a whole number")
    if system is not None and not isinstance(system, str | BaseMessage):
        _refuse("system", system, "a string or a message")
    _check_lists({"tools": tools, "branch": branch}, may_be_none=("branch",))


def check_scope(scope: object) -> None:
    """What a handle may see: a `Scope`, or `None`.

    Raises:
        InvalidInputError: for anything else, and for a scope whose parent or tokens cannot be meant.
    """
    if scope is None:
        return
    if not isinstance(scope, Scope):
        _refuse("scope", scope, "a Scope")
    elif not isinstance(scope.parent, str) or not scope.parent:
        _refuse("scope.parent", scope.parent, "the name of a track")
    elif isinstance(scope.sight_tokens, bool) or not isinstance(scope.sight_tokens, int) or scope.sight_tokens < 0:
        _refuse("scope.sight_tokens", scope.sight_tokens, "a whole number of tokens, or 0 for no sight")


def no_view(view: object, known: Sequence[str]) -> str:
    """What is said of a view that nobody knows."""
    return f"there is no view {view!r}: use one of {', '.join(map(repr, known))}, or add it to context.views"


def check_search_input(
    *, query: object, k: object, tracks: object, levels: object, since: object, until: object
) -> None:
    """What `search` takes.

    Raises:
        InvalidInputError: when one of them is of a type or a value that it cannot take.
    """
    if not isinstance(query, str):
        _refuse("query", query, "a string")
    if isinstance(k, bool) or not isinstance(k, int):
        _refuse("k", k, "a whole number")
    _check_lists({"tracks": tracks, "levels": levels}, may_be_none=("tracks", "levels"))
    for level in levels if isinstance(levels, Sequence) else ():
        if isinstance(level, bool) or not isinstance(level, int) or level < 0:
            _refuse("levels", level, "a list of whole numbers from 0 (messages) up")
    for name, moment in (("since", since), ("until", until)):
        if moment is not None and not isinstance(moment, dt.datetime):
            _refuse(name, moment, "a datetime")


def check_facts_input(*, query: object, k: object, superseded: object) -> None:
    """What `facts` takes.

    Raises:
        InvalidInputError: when one of them is of a type that it cannot take.
    """
    if query is not None and not isinstance(query, str):
        _refuse("query", query, "a string")
    if isinstance(k, bool) or not isinstance(k, int):
        _refuse("k", k, "a whole number")
    if not isinstance(superseded, bool):
        _refuse("superseded", superseded, "True or False")


def _check_lists(lists: Mapping[str, object], *, may_be_none: tuple[str, ...]) -> None:
    for name, value in lists.items():
        if value is None and name in may_be_none:
            continue
        if isinstance(value, str | bytes) or not isinstance(value, Sequence | set | frozenset):
            _refuse(name, value, "a list")


def _refuse(name: str, value: object, wanted: str) -> None:
    msg = f"{name} must be {wanted}, not {value!r}"
    raise InvalidInputError(msg[:_SHOWN_CHARS])

"""Checks what an integration is set up with, where it is written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.sessions.input_checks import OWN_VIEWS, check_scope, no_view

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN_CHARS = 500


def check_integration(
    where: str,
    memory: object,
    *,
    max_tokens: object = None,
    view: object = "default",
    more_views: Sequence[str] = (),
    may_open: bool = False,
    scope: object = None,
    **names: object,
) -> None:
    """What an integration is set up with: a memory, and how it is to be asked; refused where it is written.

    Args:
        where: The integration, as the user calls it.
        memory: What was given for the memory.
        max_tokens: What was given to bound a context.
        view: What was given as the name of a view.
        more_views: Names of views that this integration knows besides.
        may_open: Whether a function that opens a memory is as good as one.
        scope: What was given as the scope of its contexts.
        **names: Names of tracks, users and keys.

    Raises:
        SettingsError: for a choice that cannot be used.
    """
    is_memory = isinstance(memory, TieredMemory)
    if not is_memory and not (may_open and callable(memory) and not isinstance(memory, type)):
        raise SettingsError(_no_memory(where, memory, may_open=may_open))
    if max_tokens is not None and (isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1):
        msg = f"{where}: max_tokens must be a whole number of tokens from 1 up, or None for all that the window "
        raise SettingsError(f"{msg}allows, not {max_tokens!r}"[:_SHOWN_CHARS])
    for name, value in names.items():
        if value is not None and not isinstance(value, str):
            msg = f"{where}: {name} must be a string, not {value!r}"
            raise SettingsError(msg[:_SHOWN_CHARS])
    _check_scope(where, scope)
    views = memory.core.runtime.settings.context.views if isinstance(memory, TieredMemory) else None
    known = (*OWN_VIEWS, *more_views, *(views or ()))
    if not isinstance(view, str) or (views is not None and view not in known):
        raise SettingsError(f"{where}: {no_view(view, known)}"[:_SHOWN_CHARS])


def _check_scope(where: str, scope: object) -> None:
    try:
        check_scope(scope)
    except InvalidInputError as error:
        msg = f"{where}: {error}"
        raise SettingsError(msg) from error


def _no_memory(where: str, memory: object, *, may_open: bool) -> str:
    if isinstance(memory, str | os.PathLike):
        given = f"{memory!r}, which is no memory: open one with TieredMemory.open(...) and pass that"
    elif memory is None or isinstance(memory, type):
        given = f"{memory!r}, which is no memory: pass what TieredMemory.open(...) gives"
    else:
        given = f"a {type(memory).__name__}: pass what TieredMemory.open(...) gives"
    other = ", or a function that opens one" if may_open else ""
    return f"{where} takes a TieredMemory as its memory, and was given {given}{other}"[:_SHOWN_CHARS]

"""Checks of what integrations are set up with, in addition to those that `border` reads from signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ValidationError

from langchain_tiered_memory.border import checked_fields
from langchain_tiered_memory.engine import check_view
from langchain_tiered_memory.errors import ArgumentError, SettingsError, explain_validation
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.types.arguments import Such

_OPENED = "a TieredMemory, as TieredMemory.open(...) returns one"
Memory: TypeAlias = Annotated[TieredMemory, Such(_OPENED)]
MemorySource: TypeAlias = Annotated[
    TieredMemory | Callable[[], TieredMemory],
    Such(f"{_OPENED}, or a function that opens one", lambda given: not isinstance(given, type)),
]
"""A memory, or a function that opens one when it is first needed. It is called off the event loop, every time, so it
must keep what it opened (`functools.cache`)."""


def check_known_view(where: str, memory: MemorySource, view: str, *, more: tuple[str, ...] = ()) -> None:
    """Check that the memory of an integration has a view. A memory that is opened later cannot be checked yet."""
    if not isinstance(memory, TieredMemory):
        return
    try:
        check_view(view, memory.core.runtime.settings, more=more)
    except ArgumentError as error:
        msg = f"{where}: {error}"
        raise SettingsError(msg) from None


def set_up(model: BaseModel, choices: Mapping[str, Any], make: Callable[..., None]) -> None:
    """Make an integration that is a pydantic model. Its fields are checked like arguments."""
    kind = type(model)
    taken = checked_fields(kind, choices, SettingsError)
    try:
        make(**taken)
    except ValidationError as error:
        msg = f"{kind.__name__}: {explain_validation(error, ', '.join(kind.model_fields))}"
        raise SettingsError(msg) from None

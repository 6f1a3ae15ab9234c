"""What a value needs to show itself: a sheet. Everything else is made from it when somebody looks."""

from __future__ import annotations

import importlib
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from langchain_tiered_memory.display.sheet import Sheet

T = TypeVar("T")

_NAMED = 3
"""How many items a list's short line names."""
_CHARACTERS = 160


class Shown:
    """A value with a short `repr`, a `str` for a terminal of 80 columns, and HTML for notebooks.

    A class names the `module.function` of this folder that makes its sheet: `class Hit(Shown, sheet="records.hit")`. It
    is imported only when a value is shown, so programs that only use values do not pay for it.
    """

    __slots__ = ()
    _made_by: ClassVar[str] = ""

    def __init_subclass__(cls, *, sheet: str = "") -> None:
        """Record which function makes this class's sheets."""
        super().__init_subclass__()
        cls._made_by = sheet or cls._made_by

    def _sheet(self) -> Sheet:
        """What it shows."""
        module, _, name = self._made_by.partition(".")
        made: Sheet = getattr(importlib.import_module(f"langchain_tiered_memory.display.{module}"), name)(self)
        return replace(made, kind=type(self).__name__)

    def __repr__(self) -> str:
        """One short line."""
        return self._sheet().line

    def __str__(self) -> str:
        """Lines of at most 80 columns."""
        from langchain_tiered_memory.display.as_text import as_text  # noqa: PLC0415 - rich, only where it is shown

        return as_text(self._sheet())

    def _repr_html_(self) -> str:
        """For notebooks, light or dark: no script, no style sheet, nothing loaded, everything escaped."""
        from langchain_tiered_memory.display.as_html import as_html  # noqa: PLC0415 - only where it is shown

        return as_html(self._sheet())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ANN401, FBT001 - IPython's own protocol
        """For IPython in a terminal."""
        printer.text(repr(self) if cycle else str(self))


class Listing(Shown, list[T]):
    """A list that shows itself as a table. Otherwise it is an ordinary list."""

    __slots__ = ()

    def __repr__(self) -> str:
        """How many there are, and the first few."""
        from langchain_tiered_memory.display.sheet import brief  # noqa: PLC0415 - only where it is shown

        named = brief(", ".join(map(repr, itertools.islice(self, _NAMED))), _CHARACTERS)
        return f"<{len(self)} {type(self).__name__}: {named}>" if self else f"<0 {type(self).__name__}>"

    _repr_pretty_ = Shown._repr_pretty_  # IPython takes the first class that has this or a `__repr__`

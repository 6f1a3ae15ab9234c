"""Handles hold no values to show, so they look them up each time somebody looks."""

from __future__ import annotations

from abc import abstractmethod

from langchain_tiered_memory.display.sheet import Sheet, brief
from langchain_tiered_memory.display.shown import Shown
from langchain_tiered_memory.errors import TieredMemoryError


class ShownHandle(Shown):
    """A memory, a session or a run. Its `repr` reads nothing. `str` and HTML read, and never raise."""

    @abstractmethod
    def _name(self) -> str:
        """Its name, without looking anything up."""

    def _looked_up(self) -> Sheet:
        """What it shows."""
        return super()._sheet()

    def _sheet(self) -> Sheet:
        try:
            return self._looked_up()
        except TieredMemoryError as error:  # closed, another user's, out of reach
            return Sheet(kind=type(self).__name__, about=self._name(), notes=(str(error),))

    def __repr__(self) -> str:
        """One short line; nothing is read."""
        return f"<{type(self).__name__} {brief(self._name(), 100)}>"

    _repr_pretty_ = Shown._repr_pretty_  # IPython takes the first class that has this or a `__repr__`

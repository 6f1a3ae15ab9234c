"""Registry of a context's sections: the built-in ones, and a user's own, in addition or as replacements.

A registered section is rendered for each question and is shown with recall, before the last user message, so everything
before it keeps its bytes. It has its own share of the budget, reserved with recall's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.errors import SectionError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.extensions import ContextSection  # noqa: TC001 - read at the border
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.summaries.engine.extension_host import ExtensionCaller

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_tiered_memory.summaries.engine.extension_host import Report

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}", re.ASCII)


BUILT_IN = frozenset({"user_queries", "recent_turns", "code_results", "semantic_results", "level_1_summaries", "files"})
"""The built-in sections. A registered section with the same name replaces one."""
_NEVER_REPLACED = "recent_turns"
"""The messages themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSections:
    """The registered sections of one request."""

    kept: tuple[tuple[ContextSection, float], ...] = ()
    """The sections, with the share of each."""
    version: int = 0
    """A number that is different after every change."""

    @property
    def own(self) -> tuple[ContextSection, ...]:
        """The sections themselves."""
        return tuple(one for one, _ in self.kept)

    @property
    def share(self) -> float:
        """The share of all of them together."""
        return sum(share for _, share in self.kept)

    @property
    def replaced(self) -> frozenset[str]:
        """Built-in sections that they replace."""
        return frozenset(one.name for one in self.own) & BUILT_IN


class SectionRegistry:
    """A user's sections by name, in the order in which they were registered. Thread-safe.

    Args:
        seconds: How long one may take. `attach` sets it from the settings.
    """

    def __init__(self, *, seconds: float = 10.0) -> None:
        self._lock = forks.Lock()
        self._chosen = ChosenSections()
        self._report: Report = _unheard
        self.caller = ExtensionCaller(seconds=seconds, report=self._say)
        """Calls them with a deadline."""

    def attach(self, *, report: Report, seconds: float) -> None:
        """Set where failures are reported, and the deadline."""
        self._report = report
        self.caller.seconds = seconds

    @checked(SectionError)
    def register(self, section: ContextSection) -> None:
        """Show a section in every context from now on, except in the view `minimal`.

        Args:
            section: The section. It replaces a built-in or registered section with the same name.

        Raises:
            SectionError: if its name or share cannot be used, if all sections together would take more than half of a
                context, or if it has the name of a section that cannot be replaced.
        """
        name, share = _checked(section)
        with self._lock:
            kept = {one.name: (one, at) for one, at in self._chosen.kept} | {name: (section, share)}
            total = sum(at for _, at in kept.values())
            if total > NUMBERS.own_sections_share:
                msg = (
                    f"with {name!r} the registered sections would take {total:.0%} of a context, but may take at most "
                    f"{NUMBERS.own_sections_share:.0%}: lower their shares, or remove one"
                )
                raise SectionError(msg)
            self._choose(kept)

    @checked(SectionError)
    def remove(self, name: str) -> None:
        """Stop showing a registered section. A built-in section that it replaced is shown again.

        Raises:
            SectionError: if no section with that name is registered.
        """
        with self._lock:
            kept = {one.name: (one, at) for one, at in self._chosen.kept}
            if kept.pop(name, None) is None:
                msg = f"no section {name!r} is registered: {', '.join(kept) or 'none'}"
                raise SectionError(msg)
            self._choose(kept)

    @property
    def chosen(self) -> ChosenSections:
        """The sections of a request: the registry as it is now."""
        with self._lock:
            return self._chosen

    def _choose(self, kept: Mapping[str, tuple[ContextSection, float]]) -> None:
        self._chosen = ChosenSections(kept=tuple(kept.values()), version=self._chosen.version + 1)

    def _say(self, name: EventName, reason: str, **details: Any) -> None:  # noqa: ANN401 - plain JSON values
        del name  # what fails here is a section, whatever the caller calls it
        self._report(EventName.SECTION_FAILED, reason, **details)


def _checked(section: ContextSection) -> tuple[str, float]:
    name, share = getattr(section, "name", None), getattr(section, "share", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        msg = f"{name!r} cannot name a section: use letters, digits, '_' and '-', at most 60 of them"
        raise SectionError(msg)
    if not callable(getattr(section, "render", None)):
        msg = f"the section {name!r} has no method render(question)"
        raise SectionError(msg)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= NUMBERS.own_sections_share:
        most = NUMBERS.own_sections_share
        msg = f"the share of the section {name!r} is {share!r}: it must be above 0 and at most {most}"
        raise SectionError(msg)
    if name == _NEVER_REPLACED:
        msg = (
            f"{name!r} cannot be replaced: it is the messages themselves; a view of your own (`context.views`) says "
            "how many of them stay"
        )
        raise SectionError(msg)
    return name, float(share)


def _unheard(name: EventName, reason: str, **details: Any) -> None:  # noqa: ANN401 - plain JSON values
    """Reports nothing, for a registry outside a memory."""

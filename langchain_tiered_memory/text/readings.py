"""Keeps what was read from a text: an audit, two scores and a ranking ask for the same, and so does the next request.

The one place where such readings are kept, for every reader together. They are found by the text itself, so a changed
text is read anew and none is ever out of date. Bounded by the characters of the texts, in two generations: when the
younger one is full, the older one goes. No lock is taken: a reading that is lost in a race is made again.
`forget` lets go of all of them, for they hold words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_LONGEST_CHARS = 60_000
"""Of a text whose reading is kept: as much as views look at of a file that an agent read, at each condensation anew."""
_GENERATION_CHARS = 2_000_000
"""Characters of the texts in each of the two generations: with what was read from them some 20 MB together."""
_OVERHEAD_CHARS = 200
"""What a reading takes beside its text, however short that is."""


@dataclass(slots=True)
class _Readings:
    """What is kept, by reader and text."""

    young: dict[tuple[str, str], Any] = field(default_factory=dict)
    old: dict[tuple[str, str], Any] = field(default_factory=dict)
    chars: int = 0
    """Of the younger ones."""

    def keep(self, key: tuple[str, str], found: object) -> None:
        """Keep one more."""
        if self.chars >= _GENERATION_CHARS:
            self.old, self.young, self.chars = self.young, {}, 0
        self.young[key] = found
        self.chars += len(key[1]) + _OVERHEAD_CHARS


_readings = _Readings()
_MISSING = object()


def read_once(read: Callable[[str], T]) -> Callable[[str], T]:
    """Have `read` read each text once while its reading is kept.

    It must give the same for the same text, and nothing that a caller can change.
    """
    name = f"{read.__module__}.{read.__qualname__}"

    @wraps(read)
    def kept(text: str) -> T:
        if len(text) > _LONGEST_CHARS:
            return read(text)
        key = (name, text)
        found: Any = _readings.young.get(key, _MISSING)
        if found is _MISSING:
            found = _readings.old.get(key, _MISSING)
            if found is _MISSING:
                found = read(text)
            _readings.keep(key, found)
        return found  # type: ignore[no-any-return] # what `read` gave for this text

    return kept


def let_go_of_readings() -> None:
    """Keep no reading any longer: of what was forgotten, nothing shall stay in memory on our account."""
    _readings.young, _readings.old, _readings.chars = {}, {}, 0


def kept_count() -> int:
    """How many readings are kept."""
    return len(_readings.young) + len(_readings.old)

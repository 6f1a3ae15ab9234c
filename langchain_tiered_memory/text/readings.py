"""Keeps what was read from a text: an audit, two scores and a ranking ask for the same, and so does the next request.

The one place where such readings are kept, for every reader together. They are found by the text itself, so a changed
text is read anew and none is ever out of date. Bounded by the characters of the texts. `forget` lets go of all of them,
for they hold words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")

READ_CHARS = 60_000
"""Of one text, what is read, and of whose length readings are kept: what lies behind is in no view anyway."""
MEASURED_CHARS = 400_000
"""Of all sources of a summary together, what is compared with it."""
_GENERATION_CHARS = 2_000_000
"""Characters of the texts in each of the two generations: with what was read from them some 20 MB together."""
_OVERHEAD_CHARS = 200
"""What a reading takes beside its text, however short that is."""


_MISSING = object()


@dataclass(slots=True)
class Generations:
    """What was found for texts, in two generations: when the younger one is full, the older one goes.

    No lock is taken: what is lost in a race is found again.
    """

    most: int
    """The size of a generation, as `get` is told it."""
    young: dict[Any, Any] = field(default_factory=dict)
    old: dict[Any, Any] = field(default_factory=dict)
    size: int = 0
    """Of the younger one."""

    def get(self, key: Hashable, find: Callable[[], T], *, size: int = 1) -> T:
        """What is kept under `key`, or `find` gives, which is kept then and counts as `size`."""
        found: Any = self.young.get(key, _MISSING)
        if found is _MISSING:
            found = self.old.get(key, _MISSING)
            if found is _MISSING:
                found = find()
            if self.size >= self.most:
                self.old, self.young, self.size = self.young, {}, 0
            self.young[key] = found
            self.size += size
        return found  # type: ignore[no-any-return] # what `find` gave for this key

    def clear(self) -> None:
        """Keep nothing any longer."""
        self.old, self.young, self.size = {}, {}, 0

    def __len__(self) -> int:
        """How much is kept."""
        return len(self.young) + len(self.old)


_readings = Generations(_GENERATION_CHARS)


def read_once(read: Callable[[str], T]) -> Callable[[str], T]:
    """Have `read` read each text once while its reading is kept.

    It must give the same for the same text, and nothing that a caller can change.
    """
    name = f"{read.__module__}.{read.__qualname__}"

    @wraps(read)
    def kept(text: str) -> T:
        return read_of((name, text), lambda: read(text), size=len(text))

    return kept


def read_of(key: Hashable, read: Callable[[], T], *, size: int) -> T:
    """As `read_once`, of `size` characters in several texts: `key` says which, and what is read of them."""
    if size > READ_CHARS:
        return read()
    return _readings.get(key, read, size=size + _OVERHEAD_CHARS)


def let_go_of_readings() -> None:
    """Keep no reading any longer: of what was forgotten, nothing shall stay in memory on our account."""
    _readings.clear()


def kept_count() -> int:
    """How many readings are kept."""
    return len(_readings)

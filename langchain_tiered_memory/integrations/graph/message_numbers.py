"""A set of message numbers that stays small in a graph's state, however long the conversation becomes."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MAX_SPANS = 16
"""Up to so many runs of numbers are written as such, for people to read."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of messages, one bit each.

    In JSON a few runs of them are spans. Many are a compressed bit map: every state of the graph holds it anew, and a
    branch that drops a message in each turn would have a span for each. At the very most it takes a byte for six
    messages; with any regularity far less.
    """

    bits: bytes = b""

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Numbers:
        """These numbers, none below zero."""
        bits = bytearray()
        for number in numbers:
            place, bit = divmod(number, 8)
            if place >= len(bits):
                bits.extend(bytes(place + 1 - len(bits)))
            bits[place] |= 1 << bit
        return cls(bytes(bits))

    def __contains__(self, number: int) -> bool:
        """Whether the number is one of them."""
        place, bit = divmod(number, 8)
        return 0 <= place < len(self.bits) and bool(self.bits[place] >> bit & 1)

    def __iter__(self) -> Iterator[int]:
        """Ascending."""
        for place, byte in enumerate(self.bits):
            if byte:
                yield from (place * 8 + bit for bit in range(8) if byte >> bit & 1)

    def to_json(self) -> list[list[int]] | str:
        """Spans, first and last of each run; or the bit map as text."""
        spans: list[list[int]] = []
        for number in self:
            if spans and spans[-1][1] == number - 1:
                spans[-1][1] = number
            elif len(spans) == _MAX_SPANS:
                return base64.b64encode(zlib.compress(self.bits, 9)).decode("ascii")
            else:
                spans.append([number, number])
        return spans

    @classmethod
    def from_json(cls, written: Iterable[Iterable[int]] | str) -> Numbers:
        """The numbers that `to_json` wrote."""
        if isinstance(written, str):
            return cls(zlib.decompress(base64.b64decode(written)))
        return cls.of(number for first, last in written for number in range(int(first), int(last) + 1))

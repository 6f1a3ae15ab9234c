"""How much a passage of a file has to do with what an agent is doing: the rare words that both have.

An agent edits next what its latest messages speak of: the name that it just changed, the function that a test reported,
what it looked for. On recorded runs, among twice as many parts of files, no kind or age of a line told more.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

_WORD = re.compile(r"[^\W\d]\w{2,79}")
"""Names as code spells them. Shorter ones stand in every file."""


def words_in(text: str) -> frozenset[str]:
    """The names and words of a text, as they are spelt."""
    return frozenset(_WORD.findall(text))


def relatedness(passages: Sequence[AbstractSet[str]], doing: AbstractSet[str]) -> list[float]:
    """For each passage, from 0 to 1, how much it has in common with what is being done, beside the others.

    A word weighs by the square of its rarity among the passages, as in the cosine of two texts; a long passage has more
    words of any kind, so what it has in common is divided by the root of their number.

    Args:
        passages: The words of each.
        doing: The words of the latest messages.
    """
    common = [words & doing for words in passages]
    having = Counter(word for words in common for word in words)
    rarity = {word: math.log(1 + len(passages) / count) ** 2 for word, count in having.items()}
    found = [
        math.fsum(rarity[word] for word in shared) / math.sqrt(len(words)) if shared else 0.0
        for words, shared in zip(passages, common, strict=True)
    ]
    most = max(found, default=0.0)
    return [one / most for one in found] if most else found

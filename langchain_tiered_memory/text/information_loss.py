"""How much of its sources a summary does not say: a measure without a judge, a key or a dictionary."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.identifiers import identifiers
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Sequence

IDENTIFIER_WEIGHT = 3.0
"""What an identifier, figure or name weighs, in words of the same rarity: as the extractive condenser weighs them."""

_MAX_MEASURED_CHARS = 400_000


def information_loss(sources: Sequence[str], summary: str) -> float:
    """Share (0 to 1) of what the sources say that the summary does not state.

    Counted in terms as the text index knows them (stemmed, without function words), each once however often it occurs.
    A term weighs by its rarity among the lines of the sources, `log(1 + n / lines with it) / log(1 + n)`: what is said
    once is lost for good, what is said everywhere is easily guessed (inverse document frequency, after Spaerck Jones
    1972). Identifiers, figures and names, which no other word can stand for, weigh threefold.

    0 where the summary says everything or there is nothing to say, 1 where it shares nothing. Adding a line to the
    summary never raises it. Word order, negations and paraphrases are not seen: compare it between summaries of equal
    size of the same sources, not between texts of different kinds.

    Args:
        sources: What was to be summarised; of all together the first 400,000 characters are measured.
        summary: Its text.
    """
    lines = _measured(sources)
    words = Counter(term for line in lines for term in set(analyse(line)))
    named = Counter(one for line in lines for one in identifiers(line))
    if not words and not named:
        return 0.0
    said = summary.splitlines()
    stated = {term for line in said for term in analyse(line)}
    stated_names = frozenset[str]().union(*(identifiers(line) for line in said))
    folded = "\n".join(" ".join(line.casefold().split()) for line in said)
    whole: list[float] = []
    lost: list[float] = []
    for term, count in words.items():
        weight = _rarity(count, len(lines))
        whole.append(weight)
        lost.append(0.0 if term in stated else weight)
    for name, count in named.items():
        weight = IDENTIFIER_WEIGHT * _rarity(count, len(lines))
        whole.append(weight)
        lost.append(0.0 if name in stated_names or _stands(name, folded) else weight)
    # Sums that do not depend on the order of sets, which is another in each process.
    return min(1.0, math.fsum(lost) / math.fsum(whole))


def _measured(sources: Sequence[str]) -> list[str]:
    room = _MAX_MEASURED_CHARS
    lines: list[str] = []
    for source in sources:
        lines += source[:room].splitlines()
        room -= len(source)
        if room <= 0:
            break
    return [line for line in lines if line.strip()]


def _rarity(lines_with: int, lines: int) -> float:
    return math.log(1 + lines / lines_with) / math.log(1 + lines)


def _stands(name: str, folded: str) -> bool:
    """Whether `name` stands in a folded text as a whole, not as part of a longer word or figure."""
    at = folded.find(name)
    while at >= 0:
        before, after = folded[at - 1 : at] if at else "", folded[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() and name[0].isalnum()) and not (after.isalnum() and name[-1].isalnum()):
            return True
        at = folded.find(name, at + 1)
    return False

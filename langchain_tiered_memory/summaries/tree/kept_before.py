"""Which statements of earlier messages the writer of summaries is shown: those that its own messages may be about.

They are the record as it stands. A writer that sees what was kept can say what is changed or done, and need not say
again what holds; shown all of it with each call, it would read the record as often as it writes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.listing import line_of
from langchain_tiered_memory.text.sentences import sentences
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob
    from langchain_tiered_memory.types.records import Fact, SessionRef

_LOOKED_AT = 1_000
"""Statements that are compared with the messages, the newest: what is changed or done is mostly recent."""
_SHARE = 0.12
"""Of the messages' tokens, what such statements may take."""
_LEAST_TOKENS = 60
"""What they may take however short the messages are: about four of them."""
_LEAST_WORDS = 2
"""That a sentence shares with a statement which it may be about."""
_LINE_TOKENS = 4
"""Of the number before one, and of its line break."""


def kept_before(
    runtime: Runtime, ref: SessionRef, jobs: Sequence[CondenseJob], *, track: str | None
) -> tuple[Fact, ...]:
    """The statements that must last which share most with a sentence of these jobs' messages, by how few have a word.

    What is changed or done is named again, and in one sentence: a word here and a word there are no sign of that.

    Args:
        runtime: The memory.
        ref: The session.
        jobs: What one call writes; only the messages of level 1 are looked at.
        track: On which these stand.
    """
    sources = [source for job in jobs if job.level == 1 for source in job.sources]
    if not sources:
        return ()
    first = min(source.seq for source in sources)
    kept = runtime.store.facts.lasting(ref, before=first, track=track or "", limit=_LOOKED_AT)
    shared = _shared(kept, [source.text for source in sources])
    room = max(round(_SHARE * sum(source.tokens for source in sources)), _LEAST_TOKENS)
    found: list[Fact] = []
    for place in sorted(range(len(kept)), key=lambda one: (-shared[one], -kept[one].seq)):
        room -= runtime.counter.count_text(line_of(kept[place])) + _LINE_TOKENS
        if not shared[place] or room < 0:
            break
        found.append(kept[place])
    return tuple(found)


def _shared(kept: Sequence[Fact], texts: Sequence[str]) -> list[float]:
    """What each statement has in common with the sentence that is nearest to it; 0 for one that names nothing of it."""
    having: dict[str, list[int]] = {}
    for place, fact in enumerate(kept):
        for term in frozenset(analyse(fact.text)):
            having.setdefault(term, []).append(place)
    shared = [0.0] * len(kept)
    for sentence in (one for text in texts for one in sentences(text)) if kept else ():
        here: dict[int, list[float]] = {}
        for term in having.keys() & analyse(sentence):
            for place in having[term]:
                here.setdefault(place, []).append(math.log(1 + len(kept) / len(having[term])))
        for place, words in here.items():
            if len(words) >= _LEAST_WORDS:
                shared[place] = max(shared[place], sum(words))
    return shared

"""Finds what the sessions of one user say about a question, ranked together; chooses what is told of it in a room.

Told are facts that hold for the user, and messages that answer. A message that stands there whole says more than the
facts that were read from it: these give way. Messages are chosen as recall chooses them, score against price, so that
one long answer of an assistant does not take the place of ten short statements.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from langchain_tiered_memory import telemetry
from langchain_tiered_memory.messages.showing import LEAST_TOKENS
from langchain_tiered_memory.recall.filling import LONG_SHARE, Offer, PassageOffer, fill, wording_of
from langchain_tiered_memory.recall.finding import APART, asked, find, hit_of
from langchain_tiered_memory.recall.questions import repeats
from langchain_tiered_memory.text.sentences import Span
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.text.truncation import head_and_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.drafts import SearchFilters
    from langchain_tiered_memory.types.records import Fact, Hit, SessionRef


def search_across(
    runtime: Runtime,
    user: str,
    query: str,
    *,
    k: int,
    besides: str | None = None,
    filters: SearchFilters | None = None,
) -> list[Hit]:
    """The messages of a user's sessions that answer a question best, best first, each text once.

    Args:
        runtime: The memory.
        user: Whose sessions.
        query: The question.
        k: How many at most.
        besides: The session that is left out.
        filters: Which messages may be found.
    """
    refs = runtime.store.across.sessions(user, besides=besides)
    if not refs or not query.strip():
        return []
    with telemetry.operation("search_memory", {"gen_ai.retrieval.top_k": k}) as note:
        with runtime.store.database.snapshot():
            hits = _best(runtime, refs, asked(query), k=k, filters=filters)
        note({telemetry.RECORDS: len(hits)})
    return hits


def _best(
    runtime: Runtime, refs: Sequence[SessionRef], query: str, *, k: int, filters: SearchFilters | None
) -> list[Hit]:
    """The best as hits, each text once; what only asks the same is left out."""
    found = find(runtime, refs[0], query, filters=filters, besides=refs[1:])
    best = [one for one in found.ranked if one.sequence in found.hits]
    terms, seen = frozenset(analyse(query)), set[str]()
    top = best[0].score if best else 1.0
    hits: list[Hit] = []
    for one in best:
        entry = found.entries.get(one.sequence)
        if len(hits) == k:
            break
        if entry is None or wording_of(entry) in seen or repeats(entry.text, terms):
            continue
        seen.add(wording_of(entry))
        session_id, score = refs[one.sequence // APART].session_id, one.score / (top or 1.0)
        hits.append(hit_of(one, entry, found.passages[one.sequence], score=score, session_id=session_id))
    return hits


_PART_SHARE = 0.34
"""Of the room, that a part of one message may take."""
_SURELY_TOO_LONG = 2
"""Times the room: whatever counts the tokens, a message of so many does not fit."""


def told_of_user(
    facts: Sequence[Fact],
    hits: Sequence[Hit],
    *,
    of_fact: Callable[[Fact], str],
    of_quote: Callable[[Hit, str], str],
    count: Callable[[str], int],
    room: int,
    facts_room: int,
) -> tuple[list[tuple[Fact, str]], list[tuple[Hit, str]]]:
    """Choose among facts and messages, both best first; gives what is told, with the line of each.

    Args:
        facts: What holds for the user.
        hits: What answers the question.
        of_fact: Words a fact.
        of_quote: Words a message and what is shown of it: its text, its passage, or a part of that.
        count: Counts tokens.
        room: Tokens of all lines.
        facts_room: Of these, for facts; what they leave is for messages.
    """

    def price(line: str) -> int:
        return count(line) + 1  # the line break

    known: list[tuple[Fact, str]] = []
    left = facts_room
    for fact in facts:
        line = of_fact(fact)
        if (tokens := price(line)) <= left:
            known.append((fact, line))
            left -= tokens
    of_messages = room - facts_room + left
    most_of_part = round(_PART_SHARE * of_messages)
    wholes = [of_quote(hit, hit.text) for hit in hits]
    parts: dict[int, str] = {}
    offers: list[Offer] = []
    for number, hit in enumerate(hits):
        tokens = price(wholes[number]) if hit.tokens <= _SURELY_TOO_LONG * room else hit.tokens
        passages: tuple[PassageOffer, ...] = ()
        if tokens > of_messages * LONG_SHARE and most_of_part >= LEAST_TOKENS:
            shown = head_and_tail(hit.passage, max_tokens=most_of_part, count=count, pointer="...")
            part = parts[number] = of_quote(hit, shown)
            passages = (PassageOffer(score=1.0, tokens=price(part), span=Span(0, len(part))),)
        offers.append(
            Offer(sequence=number, score=hit.score, tokens=tokens, sitting=0, passages=partial(tuple, passages))
        )
    chosen = fill(offers, max_tokens=of_messages)
    stands = {_place(hits[number]) for number, taken in chosen.items() if taken is None}
    stated = {place for fact, _ in known for place in _stating(fact)} - stands
    quotes = [
        (hits[number], wholes[number] if taken is None else parts[number])
        for number, taken in chosen.items()
        if _place(hits[number]) not in stated
    ]
    return [one for one in known if stands.isdisjoint(_stating(one[0]))], quotes


def _place(hit: Hit) -> tuple[str, str]:
    return hit.session_id, hit.id


def _stating(fact: Fact) -> set[tuple[str, str]]:
    return {(fact.session_id, one) for one in fact.message_ids}

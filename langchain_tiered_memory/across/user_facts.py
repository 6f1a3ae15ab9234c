"""What holds for a user, out of what all their sessions state: the newest word on each matter."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.across.personal import holds_for_user, may_tell_of_user
from langchain_tiered_memory.summaries.facts.reading import read_facts
from langchain_tiered_memory.summaries.facts.supersession import superseded
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Fact, SessionRef

_APART = 1000
"""Between the numbers of statements of two sessions: "make that seven" takes back nothing that another one said."""
_NO_SESSION = 0
"""What is kept for a user stands beside what is kept for sessions, and is let go of with it."""
_NEWER = 0.1
"""Of the order without a question: what a statement gains over the oldest one by being the newest."""


def facts_of_user(
    runtime: Runtime,
    user: str,
    query: str | None = None,
    *,
    k: int,
    besides: str | None = None,
    superseded_too: bool = False,
) -> list[Fact]:
    """The statements that hold for a user, the weightiest first; with a question those that share words with it.

    What a later session says of the same matter takes the place of an earlier one's.

    Args:
        runtime: The memory.
        user: Whose.
        query: What they are about.
        k: How many at most.
        besides: The session whose own statements are left out; they judge those of others all the same.
        superseded_too: Whether those are given that do not hold any more.
    """
    with runtime.store.database.snapshot():
        stated, gone = _judged(runtime, user)
        judged = [
            (ref, replace(fact, status="superseded" if fact.id in gone else "active", superseded_by=gone.get(fact.id)))
            for ref, fact in stated
            if ref.session_id != besides
        ]
        kept = [one for one in judged if superseded_too or one[1].status == "active"]
        ordered = _by_worth(kept) if query is None else _by_words(kept, query)
        return [_named(runtime, ref, fact) for ref, fact in ordered[:k]]


def _judged(runtime: Runtime, user: str) -> tuple[Sequence[tuple[SessionRef, Fact]], Mapping[str, str | None]]:
    """What holds or held for the user, and what took whose place; read again only where a session has changed."""
    stamp, place = runtime.store.across.facts_stamp(user), (_NO_SESSION, f"facts of {user}")
    kept: tuple[Sequence[tuple[SessionRef, Fact]], Mapping[str, str | None]] | None
    kept = runtime.view_cache.recalled(*place, stamp)
    if kept is None:
        stated = _stated(runtime, runtime.store.across.sessions(user))
        kept = stated, superseded([fact for _, fact in stated])
        runtime.view_cache.keep_recalled(*place, stamp, kept)
    return kept


def _stated(runtime: Runtime, refs: Sequence[SessionRef]) -> list[tuple[SessionRef, Fact]]:
    """What holds for the user in each session, in the order of time: numbered so, as if it were one conversation.

    An id names a statement in its session alone: here both make it.
    """
    across = runtime.store.across
    found = across.facts(refs)
    for ref, entry in across.unread(refs):
        if may_tell_of_user(entry.text):
            found += [(ref, fact) for fact in read_facts([entry], goal_seq=0)]
    personal = [(ref, fact) for ref, fact in found if ref.begun_by is None and holds_for_user(fact)]
    personal.sort(key=lambda one: (one[1].at, one[0].key, one[1].seq, one[1].id))
    numbered: list[tuple[SessionRef, Fact]] = []
    place, before = 0, None
    for ref, fact in personal:
        place += 1 if ref.key == before else _APART
        before = ref.key
        own = fact.sources or (fact.seq,)
        numbered.append((ref, replace(fact, id=f"{ref.key}:{fact.id}", sources=own, seq=place)))
    return numbered


def _named(runtime: Runtime, ref: SessionRef, fact: Fact) -> Fact:
    """A fact under its own id and number, with its session and its messages."""
    stating = runtime.store.transcript.by_seq(ref, sorted(fact.sources))
    own = fact.superseded_by.partition(":")[2] if fact.superseded_by is not None else None
    return replace(
        fact,
        id=fact.id.partition(":")[2],
        superseded_by=own,
        seq=max(fact.sources),
        session_id=ref.session_id,
        message_ids=tuple(entry.id for entry in stating),
    )


def _by_worth(stated: Sequence[tuple[SessionRef, Fact]]) -> list[tuple[SessionRef, Fact]]:
    last = max((fact.seq for _, fact in stated), default=1)
    return sorted(stated, key=lambda one: -(one[1].weight + _NEWER * one[1].seq / last))


def _by_words(stated: Sequence[tuple[SessionRef, Fact]], query: str) -> list[tuple[SessionRef, Fact]]:
    """Those that share a word with a question, the rarest words first."""
    wanted = set(analyse(query))
    said = [wanted & set(analyse(f"{fact.subject} {fact.attribute} {fact.text}")) for _, fact in stated]
    holders = Counter(term for terms in said for term in terms)
    scores = [sum(math.log1p(len(stated) / holders[term]) for term in terms) for terms in said]
    ranked = sorted(zip(scores, stated, strict=True), key=lambda one: (-one[0], -one[1][1].seq))
    return [one for score, one in ranked if score]

"""What holds for a user, out of what all their sessions state: the newest word on each matter.

What each session states is kept by its stamp, so that only sessions that have changed are read again.

What holds for a user is told from what holds for a conversation by how it is worded. A statement crosses to other
conversations where its speaker tells of themself (who they are, what they like, cannot have or always want), or gives a
standing order to whoever answers. One that points at the matter in hand ("this file", "for now", "the draft above")
stays where it was said, whatever else it says. In doubt it stays: a search finds it all the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from langchain_tiered_memory.summaries.facts.reading import is_quoted, read_facts
from langchain_tiered_memory.summaries.facts.related import by_words
from langchain_tiered_memory.summaries.facts.supersession import superseded
from langchain_tiered_memory.text.sentences import asks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.across.store import Stamp
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Fact, SessionRef

_APART = 1000
"""Between the numbers of statements of two sessions: "make that seven" takes back nothing that another one said."""
_NO_SESSION = 0
"""What is kept for a user stands beside what is kept for sessions, and is let go of with it."""
_NEWER = 0.1
"""Of the order without a question: what a statement gains over the oldest one by being the newest."""
_Stated: TypeAlias = "tuple[SessionRef, Fact]"
_KINDS = frozenset({"constraint", "decision", "identifier", "number", "statement"})
"""Goals, questions and paths are of a conversation."""
_OF_SELF = re.compile(
    r"\bi (?:(?:really|always|usually|never|only|also|mostly|still|absolutely|currently|just|don['\u2019]t|do not"
    r"|can['\u2019]t|cannot|can not) ){0,2}(?:prefer|like|love|enjoy|hate|dislike|avoid|drink|eat|smoke|live|work|study"
    r"|majored|graduated|moved|speak|own|have (?:a|an|two|three|\w{1,12} (?:kids|children|sons|daughters|dogs|cats))\b"
    r"|use|go by|grew up|was born|stand|tolerate|digest)\b"
    r"|\bi(?:['\u2019]m| am) (?:(?:not|also|now|a|an|the|originally|currently|severely) ){0,2}(?:[\w-]{1,20} ){0,2}"
    r"(?:allerg\w{1,8}|intoleran\w{1,4}|vegan|vegetarian|diabetic|asthmatic|pregnant|c(?:o)?eliac|colou?r.?blind|deaf"
    r"|dyslexi\w{1,2}|married|divorced|engaged|widowed|retired|born|from|based|living|working as|learning|studying"
    r"|years old|left-handed|religious|muslim|jewish|hindu|christian|buddhist|sikh|nurse|teacher|student|engineer"
    r"|doctor|lawyer|developer|manager|designer|freelancer|[\w-]{2,20}(?:er|or|ist|ian|ant))\b"
    r"|\bmy (?:[\w'\u2019-]{1,20} ){0,3}(?:name|nickname|pronouns|birthday|anniversary|age|job|profession|wife|husband"
    r"|partner|girlfriend|boyfriend|fianc\u00e9e?|sons?|daughters?|kids?|child(?:ren)?|mother|mom|mum|father|dad|parents"
    r"|brothers?|sisters?|siblings|grand\w{3,8}|dogs?|cats?|pets?|car|bike|house|home|apartment|flat|address|phone"
    r"|e-?mail|diet|allerg\w{1,3}|medication|favou?rites?|hobby|hobbies|native language|mother tongue|time zone)\b",
    re.IGNORECASE,
)
_STANDING_ORDER = re.compile(
    r"(?:^|[,;:.!?] )(?:and |but |so |also |please |from now on,? |in (?:the )?future,? |remember(?: that)?,? ){0,3}"
    r"(?:(?:always|never|don['\u2019]t ever|do not ever) \w|(?:call|address|write to|speak to|contact|remind) me\b"
    r"|(?:only |always )?(?:answer|reply|respond|speak|write|talk)(?: to me)? (?:in|with|briefly|shortly)\b"
    r"|use (?:metric|imperial|british|american|celsius|fahrenheit)\b)",
    re.IGNORECASE,
)
_OF_THIS_MATTER = re.compile(
    r"\b(?:(?:this|that|these|those|the (?:current|present|following|above|attached|next)) (?!is\b|means?\b|was\b)"
    r"[^\W\d_]{2,20}|(?:in|for|from) (?:this|that)\b|above|below|attached|attachment|here|right now|for now"
    r"|at the moment|today|tonight|tomorrow|this (?:time|week|once)|so far|the (?:file|files|function|class|method"
    r"|tests?|bug|error|branch|repo|repository|code|script|draft|document|essay|paragraph|section|table|query|server|build|pipeline"
    r"|ticket|issue|commit|module|project|task|assignment))\b"
    r"|[`{}<>|=]|\w\.(?:py|js|ts|md|txt|json|csv|html|java|cpp|go|rs)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"(?:can|could|would|will|do|does|did|what|how|why|where|who|when|which)\b", re.IGNORECASE)
"""Of who leaves out the mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is kept of a user."""

    stamps: Mapping[int, Stamp] = field(default_factory=dict)
    """Of each session, by its key."""
    stated: Mapping[int, Sequence[_Stated]] = field(default_factory=dict)
    """What each states that holds for the user, under its own ids and numbers."""
    numbered: Sequence[_Stated] = ()
    """All of it in the order of time, numbered as if it were one conversation."""
    gone: Mapping[str, str] = field(default_factory=dict)
    """What took whose place."""


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
        known = _known(runtime, user)
        gone = known.gone
        judged = [
            (ref, replace(fact, status="superseded" if fact.id in gone else "active", superseded_by=gone.get(fact.id)))
            for ref, fact in known.numbered
            if ref.session_id != besides
        ]
        kept = [one for one in judged if superseded_too or one[1].status == "active"]
        refs = {fact.id: ref for ref, fact in kept}
        found = [fact for _, fact in kept]
        ranked = _by_worth(found) if query is None else by_words(found, query)
        ordered = [(refs[fact.id], fact) for fact in ranked[:k]]
        ids = runtime.store.across.message_ids({(ref.key, seq) for ref, fact in ordered for seq in fact.sources})
        return [_named(ref, fact, ids) for ref, fact in ordered]


def _known(runtime: Runtime, user: str) -> _Known:
    """What holds or held for the user; read again only of sessions that have changed."""
    there, place = runtime.store.across.stamps(user), (_NO_SESSION, f"facts of {user}", None)
    stamps = {ref.key: stamp for ref, stamp in there}
    before: _Known = runtime.view_cache.recalled(*place) or _Known()
    if before.stamps == stamps:
        return before
    changed = [ref for ref, stamp in there if before.stamps.get(ref.key) != stamp]
    read = _stated(runtime, changed)
    kept = {key: stated for key, stated in before.stated.items() if key in stamps}
    stated = kept | {ref.key: read.get(ref.key, ()) for ref in changed}
    known = replace(before, stamps=stamps)
    if stated != before.stated:
        numbered = _numbered([one for ones in stated.values() for one in ones])
        gone = superseded([fact for _, fact in numbered])
        known = _Known(stamps=stamps, stated=stated, numbered=numbered, gone=gone)
    runtime.view_cache.keep_recalled(*place, known)
    return known


def _stated(runtime: Runtime, refs: Sequence[SessionRef]) -> dict[int, tuple[_Stated, ...]]:
    """What holds for the user in each of these sessions, by its key."""
    across = runtime.store.across
    found = across.facts(refs)
    for ref, entry in across.unread(refs):
        if may_tell_of_user(entry.text):
            found += [(ref, fact) for fact in read_facts([entry], goal_seq=0)]
    by_key: dict[int, tuple[_Stated, ...]] = {}
    for ref, fact in found:
        if ref.begun_by is None and holds_for_user(fact):
            by_key[ref.key] = (*by_key.get(ref.key, ()), (ref, fact))
    return by_key


def _numbered(stated: Sequence[_Stated]) -> list[_Stated]:
    """These in the order of time: numbered so, as if it were one conversation.

    An id names a statement in its session alone: here both make it.
    """
    numbered: list[_Stated] = []
    place, before = 0, None
    for ref, fact in sorted(stated, key=lambda one: (one[1].at, one[0].key, one[1].seq, one[1].id)):
        place += 1 if ref.key == before else _APART
        before = ref.key
        own = fact.sources or (fact.seq,)
        numbered.append((ref, replace(fact, id=f"{ref.key}:{fact.id}", sources=own, seq=place)))
    return numbered


def _named(ref: SessionRef, fact: Fact, ids: Mapping[tuple[int, int], str]) -> Fact:
    """A fact under its own id and number, with its session and its messages."""
    own = fact.superseded_by.partition(":")[2] if fact.superseded_by is not None else None
    stating = [ids[ref.key, seq] for seq in sorted(fact.sources) if (ref.key, seq) in ids]
    return replace(
        fact,
        id=fact.id.partition(":")[2],
        superseded_by=own,
        seq=max(fact.sources),
        session_id=ref.session_id,
        message_ids=tuple(stating),
    )


def _by_worth(facts: Sequence[Fact]) -> list[Fact]:
    last = max((fact.seq for fact in facts), default=1)
    return sorted(facts, key=lambda fact: -(fact.weight + _NEWER * fact.seq / last))


def may_tell_of_user(text: str) -> bool:
    """Whether any line of a message is worded as what `holds_for_user`: most are not, and need not be read further."""
    return any(_OF_SELF.search(line) or _STANDING_ORDER.search(line) for line in text.splitlines())


def holds_for_user(fact: Fact) -> bool:
    """Whether a statement says something of the person who made it, and not of the conversation."""
    if fact.by != "user" or fact.kind not in _KINDS or is_quoted(fact):
        return False
    if asks(fact.text) or _ASKS.match(fact.text) or _OF_THIS_MATTER.search(fact.text):
        return False
    return bool(_OF_SELF.search(fact.text) or _STANDING_ORDER.search(fact.text))

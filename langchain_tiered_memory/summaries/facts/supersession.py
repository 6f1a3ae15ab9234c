"""Which fact takes the place of which.

A fact is superseded by a later one about the same subject that says otherwise: one that denies its value ("8443, not
8080"), one that announces a change ("is now", "correction", "cancelled"), or one that states it again in the same words
with another value. The evidence stands in the later statement itself: what it only supposes, asks, quotes or repeats
of others takes nobody's place, nor does what somebody else says. Two properties of one subject stand beside each
other; where it is doubtful, so do two values (`rivals`). A model's statement may also name what it changes, finishes or
withdraws: that counts where it has telling words of it. The rules are pure and look at nothing but the facts: an edit,
a branch or a removal gives its own answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from langchain_tiered_memory.summaries.facts.frames import IS, Frame, contradicts, frame_of, of_two, parts_of, swap_of
from langchain_tiered_memory.summaries.facts.reading import is_quoted
from langchain_tiered_memory.summaries.facts.related import SAYS_NOT_WHAT
from langchain_tiered_memory.summaries.facts.signs import LASTING
from langchain_tiered_memory.summaries.facts.values import (
    Shape,
    announces_change,
    cancels,
    corrects,
    denied_values,
    doubts,
    shape_of,
    supposes,
    unit_of,
)
from langchain_tiered_memory.summaries.marks import NOTED
from langchain_tiered_memory.text.lexicon import COMMON
from langchain_tiered_memory.text.readings import read_once
from langchain_tiered_memory.text.sentences import asks
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from langchain_tiered_memory.types.records import Fact, FactStatus, Role

AUTHORITY: dict[Role, int] = {"user": 2, "other": 2, "system": 2, "assistant": 1, "tool": 0}
"""Whose word counts against whose. `other` is also who said a fact that was kept before facts had a speaker."""
_STAYS = frozenset({"goal", "question"})
_BESIDE = frozenset({"i"})
"""Subjects that so much is said of that two statements about one are mostly about two things."""
_NEAREST = 40
"""Of the earlier facts about one subject only so many of the latest are compared: what everything is about
("the team") says little."""
_MARKS = ".,:;!?\"'()[]`*\u201c\u201d\u2019"
_TELLING_WORDS = 2
_STILL_ABOUT = 0.5
"""Of the terms of a statement, without the value that is replaced, that a model's sentence has which replaces it."""
_SETTLED = frozenset({"goal", "decision", "constraint"})
"""Kinds of what a person says that nobody else takes back. That a task is done, an assistant may say."""
_NEAR_SEQS = 12
"""A correction that names nothing is about something said within so many messages before."""


class _Stance(NamedTuple):
    """What a statement's words say of other statements."""

    said: str
    changes: bool
    corrects: bool
    cancels: bool
    denied: tuple[str, ...]
    doubted: bool
    """Whether it settles nothing."""
    frame: Frame


@dataclass(frozen=True, slots=True)
class _Looked:
    fact: Fact
    about: frozenset[str]
    shape: Shape
    unit: str
    value: str
    stance: _Stance


class Named(Protocol):
    """What tells whether a fact may concern another: a `Fact`, or these columns of its row."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def seq(self) -> int: ...  # noqa: D102
    @property
    def subject(self) -> str: ...  # noqa: D102
    @property
    def by_model(self) -> bool: ...  # noqa: D102


OneNamed = TypeVar("OneNamed", bound=Named)


def standing(
    facts: Sequence[Fact], *, settled: Mapping[str, str] | None = None, judged: Collection[str] | None = None
) -> dict[str, tuple[FactStatus, str | None]]:
    """The status of each fact, and the id of the one that took its place or says it too; see `superseded`.

    What was joined to another holds in its words, and what it took the place of stays replaced.
    """
    joined = _joined(facts, judged)
    gone = superseded(facts, settled=settled, judged=judged)
    found: dict[str, tuple[FactStatus, str | None]] = {}
    for fact in facts:
        if fact.id in joined:
            found[fact.id] = "joined", joined[fact.id]
        else:
            found[fact.id] = "superseded" if fact.id in gone else "active", gone.get(fact.id)
    return found


def superseded(
    facts: Sequence[Fact], *, settled: Mapping[str, str] | None = None, judged: Collection[str] | None = None
) -> dict[str, str]:
    """Id of each fact that does not hold any more -> id of the one that took its place.

    Depends on the set of `facts` only. Within one message a statement that announces a change comes after the others,
    and behind all a note that joins others: what it joins says nothing against it.
    What was joined to another is compared with nothing that comes later.

    With `judged` only the facts of these ids are judged: what the others took the place of is `settled`, each in its
    turn, and of them only those are looked at that the judged ones may concern.
    """
    new_facts = [fact for fact in facts if judged is None or fact.id in judged]
    named = dict(_named(new_facts, facts))
    new_facts = [fact for fact in new_facts if fact.kind not in _STAYS or fact.id in named]
    joined = _joined(facts, judged)
    before = {old: by for old, by in (settled or {}).items() if old not in joined}
    others: list[Fact] = []
    took: dict[str, list[str]] = {}
    if judged is not None:
        since = min((fact.seq for fact in new_facts), default=0)
        takers = set(before.values())
        takers = {fact.id for fact in facts if fact.id in takers and fact.id not in judged and fact.seq >= since}
        for old in [old for old, by in before.items() if by in takers]:
            took.setdefault(before.pop(old), []).append(old)
        known = [fact for fact in facts if fact.id not in judged]
        close = {fact.id for fact in near(new_facts, known)}
        others = [fact for fact in known if fact.id in close or fact.id in takers]

    def is_last(fact: Fact) -> bool:
        return bool(fact.joins) and fact.id not in joined

    ordered = sorted(
        (_look(fact) for fact in (*others, *new_facts)),
        key=lambda one: (one.fact.seq, is_last(one.fact), one.stance.changes or bool(one.stance.denied), one.fact.id),
    )
    gone: dict[str, str] = before
    about: dict[str, list[_Looked]] = {}
    recent: list[_Looked] = []
    for new in ordered:
        for old in (*named.get(new.fact.id, ()), *took.get(new.fact.id, ())):
            gone.setdefault(old, new.fact.id)
        if new.fact.kind in _STAYS:
            continue
        recent = [old for old in recent if new.fact.seq - old.fact.seq <= _NEAR_SEQS]
        if judged is None or new.fact.id in judged:
            # A model's sentence says what it stands instead of: its subject may be read otherwise than that one's.
            denies_by_name = new.fact.by_model and bool(new.stance.denied)
            known_now = {
                id(old): old
                for old in (*_sharing(new, about), *(() if new.about and not denies_by_name else recent))
                if old.fact.id not in gone and old.fact.id not in joined
            }
            gone.update((old.fact.id, new.fact.id) for old in _taken_back(new, list(known_now.values())))
        for word in new.about:
            about.setdefault(word, []).append(new)
        recent = [*recent, new][-_NEAREST:]
    return gone


def _joined(facts: Sequence[Fact], judged: Collection[str] | None) -> dict[str, str | None]:
    """The notes that were joined to another, with that one."""
    known = {fact.id: fact.superseded_by for fact in facts if judged is not None and fact.status == "joined"}
    return known | {old: fact.id for fact in facts for old in fact.joins}


def _named(new_facts: Sequence[Fact], facts: Sequence[Fact]) -> Iterator[tuple[str, list[str]]]:
    """The ids of the new statements that name earlier ones as changed, finished or withdrawn, with the ids of these.

    Meant is the one of an id that has a telling word of the new one. Where earlier versions named a message: of its
    statements that must last the one with most words of the new one; none where several have as many. None is meant
    where the new one only supposes. A person's correction, which rules read, ends whatever statements of the message
    have most words of it, a model's and those that rules read.
    """
    naming = [one for one in new_facts if (one.instead_of or one.ends) and not _only_supposes(one)]
    numbers = frozenset(seq for one in naming for seq in one.instead_of)
    stated: dict[int, list[tuple[Fact, frozenset[str]]]] = {}
    for fact in facts:
        if fact.seq in numbers:
            stated.setdefault(fact.seq, []).append((fact, frozenset(analyse(fact.text))))
    meant = {begin: [fact for fact in facts if fact.id.startswith(begin)] for one in naming for begin in one.ends}
    for new in naming:
        mine = frozenset(analyse(new.text)) - SAYS_NOT_WHAT
        before_it = [old for begin in new.ends for old in meant[begin] if old.id != new.id and old.seq <= new.seq]
        found = [old.id for old in before_it if _may_end(new, old) and not mine.isdisjoint(analyse(old.text))]
        for seq in new.instead_of:
            before = [(len(mine & its), old) for old, its in stated.get(seq, ()) if old.seq < new.seq]
            if not new.by_model:
                for by_model in (True, False):
                    found += [old.id for old in _nearest(one for one in before if one[1].by_model is by_model)]
                continue
            nearest = _nearest(one for one in before if one[1].by_model and one[1].weight >= LASTING)
            found += [old.id for old in nearest if len(nearest) == 1 and _may_end(new, old)]
        if found:
            yield new.id, found


def _only_supposes(one: Fact) -> bool:
    return one.by_model and (is_quoted(one) or supposes(one.text) or asks(one.text))


def _nearest(shared: Iterable[tuple[int, Fact]]) -> list[Fact]:
    """Of facts, each with how many words it shares with another, those that share most; none that shares none."""
    counted = list(shared)
    most = max((count for count, _ in counted), default=0)
    return [fact for count, fact in counted if count == most > 0]


def rivals(facts: Sequence[Fact]) -> dict[str, tuple[str, ...]]:
    """Id of each fact that holds beside another value of the same thing -> the ids of those others, the last first."""
    about: dict[str, list[Fact]] = {}
    for fact in facts:
        if fact.kind not in _STAYS and fact.subject:
            about.setdefault(fact.subject, []).append(fact)
    found: dict[str, tuple[str, ...]] = {}
    for same in about.values():
        mine = [_look(fact) for fact in reversed(same[-_NEAREST:])] if len(same) > 1 else []
        for one in mine:
            others = tuple(other.fact.id for other in mine if _is_rival(one, other))
            if others:
                found[one.fact.id] = others
    return found


def _is_rival(one: _Looked, other: _Looked) -> bool:
    if one.fact.by_model or other.fact.by_model:
        return False  # each is a sentence with its date; a model says itself what replaces what
    if one.unit != other.unit or not _says_otherwise(one, other):
        return False
    swap = swap_of(one.stance.frame, other.stance.frame)
    if swap is None or not (swap.is_told_of_now or one.fact.attribute):
        return False  # what is done again and again, each time of something else
    return _beside_value(swap.new, one) == _beside_value(swap.old, other) == ()


def near(these: Sequence[Named], others: Sequence[OneNamed], *, ahead: bool = False) -> list[OneNamed]:
    """Those of `others` that `superseded` would compare with one of these: of a subject of theirs, or just before.

    With `ahead` those that it would compare one of these with. Of the message in which the last of them stands it is
    all: their order is known when they are looked at.
    """
    way = 1 if ahead else -1
    ones: list[tuple[Named, OneNamed | None]] = [(one, None) for one in these]
    ones += [(one, one) for one in others if one.kind not in _STAYS]
    seen: dict[str, int] = {}
    since: dict[str, int] = {}
    last: dict[str, int] = {}
    around: int | None = None
    found: list[OneNamed] = []
    for one, other in sorted(ones, key=lambda pair: (way * pair[0].seq, pair[1] is not None)):
        words = _about(one)
        if other is None:
            seen |= dict.fromkeys(words, 0)
            since |= dict.fromkeys(words, one.seq)
            around = one.seq if ahead or _looks_around(one) else around
            continue
        words = words & seen.keys()
        few = [word for word in words if seen[word] < _NEAREST or last[word] == one.seq]
        last |= dict.fromkeys(few, one.seq)
        for word in words:
            seen[word] += one.seq != since[word]
        is_around = around is not None and abs(one.seq - around) <= _NEAR_SEQS and (not ahead or _looks_around(one))
        if few or is_around:
            found.append(other)
    return found


def _looks_around(one: Named) -> bool:
    """Whether a statement may be about what was said just before it, whatever that is about."""
    return one.by_model or not _about(one)


def words_to_seek(new: Sequence[Named], newest: Sequence[Named]) -> frozenset[str]:
    """The words that `near` looks for among facts before `newest` too: it finds enough of the others in these.

    `newest` are the last of what stands before the new ones: whole messages, and all that `near` takes for just before.
    """
    wanted = frozenset(word for fact in new for word in _about(fact))
    seen = Counter(word for fact in newest if fact.kind not in _STAYS for word in _about(fact) & wanted)
    return frozenset(word for word in wanted if seen[word] < _NEAREST)


def _about(fact: Named) -> frozenset[str]:
    return parts_of(fact.subject) - _BESIDE


def _sharing(new: _Looked, about: dict[str, list[_Looked]]) -> Iterable[_Looked]:
    for word in new.about:
        yield from about.get(word, ())[-_NEAREST:]


def _look(fact: Fact) -> _Looked:
    return _Looked(
        fact=fact,
        about=_about(fact),
        shape=shape_of(fact.value),
        unit=unit_of(fact.value),
        value=fact.value.casefold(),
        stance=_stance(NOTED.sub("", fact.text)),
    )


@read_once
def _stance(text: str) -> _Stance:
    """Of a fact's words: each summary that is made holds the facts before it against its own."""
    return _Stance(
        said=folded(text),
        changes=announces_change(text),
        corrects=corrects(text),
        cancels=cancels(text),
        denied=tuple(one for one in map(folded, denied_values(text)) if one not in COMMON),
        doubted=doubts(text),
        frame=frame_of(text),
    )


def _taken_back(new: _Looked, known: list[_Looked]) -> list[_Looked]:
    """Which of `known` `new` takes the place of."""
    stance = new.stance
    known = [
        old
        for old in known
        if _may_judge(new.fact, old.fact)
        and old.fact.id != new.fact.id
        and (old.fact.seq < new.fact.seq or stance.corrects or _denies(new, old))
    ]
    known.sort(key=lambda old: (old.fact.seq, old.fact.id))
    if new.fact.by_model:
        return [old for old in known if _is_replaced(new, old)]
    swapped = [old for old in known if _is_swapped(new, old) or contradicts(stance.frame, old.stance.frame)]
    if stance.doubted or not known:
        return []
    denied = [old for old in known if _denies(new, old)]
    if not new.about:
        sure = [old for old in denied if any(_is_particular(one) for one in stance.denied)] or swapped[-1:]
        return sure if len({old.fact.subject for old in sure}) == 1 else []
    same = [old for old in known if _same_subject(new, old, known)]
    if stance.cancels:
        return [old for old in same if old.shape not in (Shape.PATH, Shape.CODE, Shape.NAME)]
    alike = [old for old in same if _says_otherwise(new, old) and not of_two(new.stance.frame, old.stance.frame)]
    if not stance.changes and not denied:
        return swapped
    if new.shape == Shape.WORDS or not stance.corrects:
        alike = [old for old in alike if _takes_place(new, old)]
    if new.shape in (Shape.WORDS, Shape.NAME):
        alike = alike[-1:]
    elif any(old.unit == new.unit for old in alike):
        alike = [old for old in alike if old.unit == new.unit]
    return list({id(old): old for old in (*alike, *denied, *swapped)}.values())


def _is_replaced(new: _Looked, old: _Looked) -> bool:
    """Whether a model's sentence takes the place of `old`: it says all of it again, or names what it replaces.

    Then it names most of what else the older one is about.
    """
    mine, its = frozenset(analyse(new.fact.text)), frozenset(analyse(old.fact.text))
    if its <= mine:
        return new.fact.weight >= old.fact.weight and (its == mine or not new.stance.doubted)
    if new.stance.doubted or not _denies(new, old):
        return False
    denied = frozenset(analyse(" ".join(new.stance.denied)))
    about = its - denied
    is_other = any(char.isdigit() for term in about - mine for char in term)  # "PR #90: not merged" is none of "PR #89"
    return not is_other and len(about & mine) >= _STILL_ABOUT * len(about)


def _may_judge(new: Fact, old: Fact) -> bool:
    """Whether the speaker of `new` may take back what `old` says: their own words, or those of less authority."""
    if is_quoted(new) or AUTHORITY[new.by] < AUTHORITY[old.by]:
        return False
    return AUTHORITY[new.by] > AUTHORITY[old.by] or new.speaker == old.speaker


def _may_end(new: Fact, old: Fact) -> bool:
    """Whether the speaker of `new` may change or finish what `old` says.

    What became of an assistant's plan, a tool shows as well as anybody. Of what a person said, an assistant may tell
    that it is done, unless that settled something; a tool may not.
    """
    if AUTHORITY[old.by] < AUTHORITY["user"]:
        return True
    return _may_judge(new, old) or (AUTHORITY[new.by] > 0 and old.kind not in _SETTLED)


def _is_swapped(new: _Looked, old: _Looked) -> bool:
    """Whether `new` says what `old` says, in the same words but for one value.

    Where it does not announce that this is so now, it is a plain statement in the present, of a value of one form.
    """
    swap = swap_of(new.stance.frame, old.stance.frame)
    if swap is None or not _says_otherwise(new, old) or (new.unit and old.unit and new.unit != old.unit):
        return False
    mine, its = _beside_value(swap.new, new), _beside_value(swap.old, old)
    if new.stance.frame.settles or new.stance.changes:
        return mine == its == () or (len(mine) <= len(its) and set(its) <= IS)
    if mine or its or new.shape == Shape.WORDS or new.fact.attribute != old.fact.attribute or new.unit != old.unit:
        return False
    return bool(new.fact.attribute) or (new.shape != Shape.NAME and swap.is_told_of_now)


def _beside_value(part: tuple[str, ...], stated: _Looked) -> tuple[str, ...]:
    """What differs beside the value, or beside the one word that may be one."""
    if len(part) == 1 and (not part[0].isalpha() or stated.shape == Shape.WORDS):
        return () if part[0] not in stated.fact.subject.split() else part
    value = folded(stated.value).split()
    return tuple(word for word in part if word not in value)


def folded(text: str) -> str:
    """A text as values are looked up in it: in lower case, words without the marks around them."""
    return " ".join(word.strip(_MARKS) for word in text.casefold().split())


def _is_particular(value: str) -> bool:
    return " " in value or "/" in value or any(char.isdigit() for char in value)


def _denies(new: _Looked, old: _Looked) -> bool:
    """Whether `new` takes back what `old` states, and neither names another subject."""
    if old.stance.denied and any(one in old.stance.denied for one in new.stance.denied):
        return False  # both take it back
    return any(one and f" {one} " in f" {old.stance.said} " for one in new.stance.denied)


def _same_subject(new: _Looked, old: _Looked, known: Sequence[_Looked]) -> bool:
    if new.about == old.about:
        return True
    if (
        not (new.stance.corrects or new.stance.denied)
        or new.shape == Shape.WORDS
        or not (new.about < old.about or old.about < new.about)
    ):
        return False
    # A narrower or wider name of one thing, unless it could be a name of several.
    wider = {one.about for one in known if new.about < one.about or one.about < new.about}
    return len(wider) == 1 and not any(one.about == new.about for one in known)


def _says_otherwise(new: _Looked, old: _Looked) -> bool:
    if new.fact.attribute and old.fact.attribute and new.fact.attribute != old.fact.attribute:
        return False
    if bool(new.value) != bool(old.value):
        return False  # nothing tells that the one stands in the place of the other
    return new.shape == old.shape and (new.value != old.value or new.stance.said != old.stance.said)


def _takes_place(new: _Looked, old: _Looked) -> bool:
    """Whether `new`, which tells of some change, is about the same property as `old`."""
    if new.shape == Shape.WORDS:  # much is said of "the script" and "the family" that does not take anything back
        same = bool(new.fact.attribute) and new.fact.attribute == old.fact.attribute
        return same or len(new.about) >= _TELLING_WORDS or new.stance.frame.named == old.stance.frame.named != ()
    if not new.unit or not old.unit or new.unit == old.unit:
        return True
    # Of another unit, "it is 2 minutes now" and "went up to 350 dollars" do, "the office has 40 desks now" does not.
    return new.stance.frame.named != () or f" to {folded(new.value)} " in f" {new.stance.said} "

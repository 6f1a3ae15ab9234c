"""The facts of a session, read and written; one method, one transaction."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, bindparam, func, or_, select, update

from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import advance_epoch, lock_session, of_track
from langchain_tiered_memory.sql.schema import UNREAD, beside_index, packed, plans, summaries
from langchain_tiered_memory.sql.schema import facts as table
from langchain_tiered_memory.summaries.facts import rows
from langchain_tiered_memory.summaries.facts.frames import template_of
from langchain_tiered_memory.summaries.facts.reading import READER_VERSION
from langchain_tiered_memory.summaries.facts.related import by_words
from langchain_tiered_memory.summaries.facts.signs import LASTING
from langchain_tiered_memory.summaries.facts.supersession import standing
from langchain_tiered_memory.text.similarity import wording
from langchain_tiered_memory.transcript import derived_rows
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.records import FINISHED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from sqlalchemy import ColumnElement, Select

    from langchain_tiered_memory.types.records import Fact, SessionRef, Summary

SEARCHED = 20_000
"""Facts that one question looks through, the weightiest: what more a session has is found by recall."""
_PAGES = 2
"""How often as many facts as are asked for are looked at, where the first are mostly alike. The bound keeps a view's
cost from growing with the session; what it passes over is found by recall."""
_SUCCESSORS = 2
"""How often a value is followed to the one in its place: a correction, and the correction of that."""
_BY_WORTH = tuple(table.c[name].desc() for name in ("weight", "mentions", "seq", "id"))
_REPLACED = (table.c.superseded_by, table.c.seq, table.c.value)
_UNREAD = (
    select(summaries)
    .where(summaries.c.session_key == bindparam("session"), UNREAD, summaries.c.state.in_(FINISHED))
    .order_by(summaries.c.first_seq, summaries.c.level)
    .limit(bindparam("most"))
)


class FactStore(Room):
    """Reads and writes facts."""

    def candidates(
        self,
        ref: SessionRef,
        *,
        up_to: int,
        track: str | None = None,
        without: Collection[int] = (),
        limit: int,
        alike: int | None = None,
        first: Collection[str] = (),
    ) -> list[Fact]:
        """The facts of messages up to `up_to` that hold, in their order; the weightiest where there are more.

        Of those that are alike but for a number or a name only `alike`: what is said once is not crowded out by them.

        A fact is superseded only by one that is on this branch, whichever side of the border it stands on: a
        correction among the recent messages is read there. What any message `without` the branch states is not known.
        Those of the ids in `first` that hold are given before weightier ones.
        """
        mine = of_track(table, ref, track)
        with self.database.read() as connection:
            standing = self._standing_without(connection, ref, track=track, without=without)
            revived = {fact for fact, status in standing.items() if status == "active"}
            silenced = standing.keys() - revived
            # The border is near the end: facts are walked by their worth, until there are enough.
            held = (*mine, beside_index(table.c.seq) <= up_to, table.c.status == "active")
            ids = _varied(connection, held, limit=limit + len(silenced), alike=alike or limit)
            found = rows.facts_with(connection, ref.key, list(dict.fromkeys([*ids, *sorted(revived), *first])))
        gone = frozenset(without)
        left = [
            replace(fact, status="active", superseded_by=None) if fact.id in revived else fact
            for fact in found
            if (fact.status == "active" or fact.id in revived)
            and fact.id not in silenced
            and fact.seq <= up_to
            and track in (None, fact.track)
            and gone.isdisjoint(fact.sources)
        ]
        left.sort(key=lambda one: (one.id in first, _worth(one)), reverse=True)
        return sorted(left[:limit], key=lambda one: (one.seq, one.id))

    def _standing_without(
        self, connection: Connection, ref: SessionRef, *, track: str | None, without: Collection[int]
    ) -> dict[str, str]:
        """The status of each fact of a branch; empty where no fact is off it, so that what is stored is right."""
        off: dict[str, None] = {}
        if track is not None:
            elsewhere = and_(table.c.session_key == ref.key, table.c.track != packed(track))
            off |= dict.fromkeys(connection.scalars(select(table.c.id).where(elsewhere)))
        if without:
            off |= dict.fromkeys(rows.stated_by(connection, ref.key, list(without)))
        if not off:
            return {}
        away = frozenset(without)
        known = rows.all_facts(connection, ref.key)
        here = [fact for fact in known if fact.id not in off and away.isdisjoint(fact.sources)]
        return {fact: status for fact, (status, _) in standing(here).items()}

    def search(
        self,
        ref: SessionRef,
        query: str,
        k: int,
        *,
        superseded_too: bool = False,
        track: str | None = None,
        fresh: Sequence[Fact] = (),
    ) -> list[Fact]:
        """The facts whose words match a question best, best first.

        On one track, or on all; those that do not hold any more with `superseded_too`. `fresh` is as for `best`.
        """
        held = self.best(ref, SEARCHED, superseded_too=superseded_too, track=track, fresh=fresh)
        return by_words(held, query)[:k]

    def best(
        self,
        ref: SessionRef,
        k: int,
        *,
        superseded_too: bool = False,
        track: str | None = None,
        fresh: Sequence[Fact] = (),
    ) -> list[Fact]:
        """The weightiest facts, those that are taken up most and the newest first; of one track, or of all.

        Which hold on one track is what its own facts say of each other. `fresh` are facts that are not kept yet: they
        stand among the others, and in the place of those that they correct. What one speaker says again in the
        same words is told once.
        """
        fresh = [one for one in fresh if track in (None, one.track)]
        is_settled = track is None and not fresh
        active = (table.c.status == "active",) if is_settled and not superseded_too else ()
        by_worth = select(table).where(*of_track(table, ref, track), *active).order_by(*_BY_WORTH)
        if is_settled:
            return self._first_told(by_worth, k)
        kept = self._read(by_worth if track is not None else by_worth.limit(SEARCHED))
        own = sorted({one.id: one for one in (*fresh, *kept)}.values(), key=_worth, reverse=True)
        if track is None:
            after = min(one.seq for one in fresh) - 1
            later = {one.id for one in own if one.seq > after}
            stands = standing(own, settled=_settled_before(kept, after), judged=later)
        else:
            stands = standing(own)
        judged = [replace(one, status=stands[one.id][0], superseded_by=stands[one.id][1]) for one in own]
        wanted = [one for one in judged if superseded_too or one.status == "active"]
        return list(_told_once(wanted))[:k]

    def _first_told(self, query: Select[Any], k: int) -> list[Fact]:
        """The first `k` of what a query gives, each told once."""
        found: list[Fact] = []
        for start in itertools.count(0, k):
            page = self._read(query.offset(start).limit(k))
            found = list(_told_once([*found, *page]))
            if len(page) < k or len(found) >= k:
                return found[:k]
        return found

    def lasting(self, ref: SessionRef, *, before: int, track: str, limit: int) -> list[Fact]:
        """The newest statements of messages before one that held there and that must last as a model says, in order."""
        later = table.alias("later")
        by_later = select(later.c.id).where(
            later.c.session_key == ref.key, later.c.id == table.c.superseded_by, later.c.seq >= before
        )
        mine = and_(table.c.session_key == ref.key, table.c.seq < before, table.c.track == packed(track))
        held = or_(table.c.status == "active", by_later.exists())
        wanted = and_(mine, held, table.c.by_model, table.c.weight >= LASTING)
        query = select(table).where(wanted).order_by(table.c.seq.desc(), table.c.id).limit(limit)
        return self._read(query)[::-1]

    def corrected(self, ref: SessionRef, *, up_to: int | None = None, limit: int) -> list[Fact]:
        """The facts that do not hold any more, the weightiest first; of messages up to `up_to`."""
        mine = and_(table.c.session_key == ref.key, table.c.status == "superseded")
        if up_to is not None:
            mine = and_(mine, beside_index(table.c.seq) <= up_to)
        return self._read(select(table).where(mine).order_by(*_BY_WORTH).limit(limit))

    def replaced(self, ref: SessionRef, seqs: Collection[int]) -> dict[int, list[Fact]]:
        """What holds in the place of what these messages state, by their numbers; nothing of what still holds.

        What was replaced again and again is left out: it is rather a word that keeps coming than a value. So is what
        states the same value again.
        """
        found: dict[int, dict[str, Fact]] = {}
        waiting: dict[str, set[tuple[int, str]]] = {}
        with self.database.read() as connection:
            for part in chunks(sorted(seqs)):
                mine = and_(table.c.session_key == ref.key, table.c.seq.in_(part), table.c.status == "superseded")
                for successor, seq, value in connection.execute(select(*_REPLACED).where(mine)).all():
                    waiting.setdefault(str(successor), set()).add((seq, value))
            for _ in range(_SUCCESSORS):
                later = rows.facts_with(connection, ref.key, sorted(waiting)) if waiting else []
                following: dict[str, set[tuple[int, str]]] = {}
                for fact in later:
                    if fact.superseded_by is not None:
                        following.setdefault(fact.superseded_by, set()).update(waiting[fact.id])
                        continue
                    for seq, value in waiting[fact.id]:
                        if not value or value != fact.value:
                            found.setdefault(seq, {})[fact.id] = fact
                waiting = following
        return {seq: sorted(held.values(), key=lambda one: (one.seq, one.id)) for seq, held in found.items()}

    def for_span(self, ref: SessionRef, first_seq: int, last_seq: int, *, limit: int) -> list[Fact]:
        """The facts of the messages of a span that hold, in their order; the weightiest where there are more."""
        within = and_(table.c.session_key == ref.key, table.c.seq.between(first_seq, last_seq))
        query = select(table).where(within, table.c.status == "active")
        return sorted(self._read(query.order_by(*_BY_WORTH).limit(limit)), key=lambda one: (one.seq, one.id))

    def of_summaries(self, ref: SessionRef, summary_ids: Sequence[str]) -> dict[str, list[Fact]]:
        """The facts that were read for each of these level-1 summaries, in their order."""
        found: dict[str, list[Fact]] = {one: [] for one in summary_ids}
        with self.database.read() as connection:
            for part in chunks(list(found)):
                mine = and_(beside_index(table.c.session_key) == ref.key, table.c.summary_id.in_(part), rows.IS_READ)
                query = select(table).where(mine)
                for row in connection.execute(query.order_by(table.c.seq, table.c.id)).mappings():
                    found[row["summary_id"]] += readable(connection, [row], rows.fact_of)
        return found

    def unread(self, ref: SessionRef, limit: int) -> list[Summary]:
        """Finished summaries whose facts are to be read, the oldest first.

        Those of level 1 from before facts were rows, or with a message that was edited; of higher levels those that
        carry a list of facts from then.
        """
        return self._records(_UNREAD, derived_rows.summary, {"session": ref.key, "most": limit})

    def unread_count(self, ref: SessionRef) -> int:
        """How many finished summaries `unread` would give in all."""
        query = select(func.count()).where(summaries.c.session_key == ref.key, UNREAD, summaries.c.state.in_(FINISHED))
        return self._count(query)

    def replace(self, ref: SessionRef, summary: Summary, facts: Sequence[Fact]) -> bool:
        """Have these be the facts of a finished summary. `ref` is the session as it was before its messages were read.

        Returns:
            `False` where a message was edited or removed, or the summary made again meanwhile: it is to be read again.
        """
        mine = and_(summaries.c.id == summary.id, summaries.c.session_key == ref.key)
        with self.database.write() as connection:
            session = lock_session(connection, ref.key)
            row = connection.execute(select(summaries).where(mine)).mappings().one_or_none()
            if session is None or row is None or session["epoch"] != ref.epoch or row["text"] != summary.text:
                return False
            connection.execute(update(summaries).where(mine).values(facts_read=READER_VERSION))
            if summary.level == 1:
                rows.write_facts(connection, ref.key, summary.id, facts)
            shown = select(plans.c.name).where(plans.c.session_key == ref.key, plans.c.border >= summary.first_seq)
            if connection.execute(shown.limit(1)).first() is not None:
                advance_epoch(connection, ref.key)
            return True

    def join(
        self, ref: SessionRef, joining: Sequence[Fact], *, shown: Sequence[str] = (), beside: Sequence[str] = ()
    ) -> int:
        """Store notes that join others, of which all still hold. Returns how many are joined.

        Nothing is stored where one of the notes that their writer was `shown`, or one of the summaries that it wrote
        `beside` them, is gone: its words may be among theirs.
        """
        with self.database.write() as connection:
            if lock_session(connection, ref.key) is None:
                return 0
            for column, read in ((table.c.id, shown), (summaries.c.id, beside)):
                mine = column.table.c.session_key == ref.key
                parts = (select(func.count()).where(mine, column.in_(part)) for part in chunks(list(read)))
                if sum(connection.scalar(query) or 0 for query in parts) < len(read):
                    return 0
            return rows.write_joining(connection, ref.key, joining, beside=(*beside, *shown))

    def read_summaries(self, ref: SessionRef) -> frozenset[str]:
        """The finished level-1 summaries whose facts were read as they are read now."""
        mine = and_(summaries.c.session_key == ref.key, summaries.c.level == 1, summaries.c.state.in_(FINISHED))
        query = select(summaries.c.id).where(mine, summaries.c.facts_read == READER_VERSION)
        with self.database.read() as connection:
            return frozenset(connection.scalars(query))

    def unsettle(self, ref: SessionRef, summary_ids: Sequence[str] | None) -> None:
        """Say that the facts of these summaries are to be read again; `None`: of all the session's."""
        mine = summaries.c.session_key == ref.key
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            for part in [None] if summary_ids is None else chunks(list(summary_ids)):
                these = mine if part is None else and_(mine, summaries.c.id.in_(part))
                connection.execute(update(summaries).where(these).values(facts_read=0))

    def _read(self, query: Select[Any]) -> list[Fact]:
        return self._records(query, rows.fact_of)


def _worth(fact: Fact) -> tuple[float, int, int, str]:
    """By which facts are told, as `_BY_WORTH` in SQL."""
    return fact.weight, fact.mentions, fact.seq, fact.id


def _settled_before(kept: Sequence[Fact], after: int) -> dict[str, str]:
    """What the kept facts of a session up to a message say of each other."""
    place = {one.id: one.seq for one in kept}
    return {
        one.id: one.superseded_by
        for one in kept
        if one.seq <= after and one.superseded_by is not None and place.get(one.superseded_by, 0) <= after
    }


def _told_once(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Facts without those that say what one before them says, of the same speaker on the same track."""
    told = set[tuple[str, str, str, str, str]]()
    for fact in facts:
        key = (wording(fact.text), fact.by, fact.speaker, fact.track, fact.status)
        if key not in told:
            told.add(key)
            yield fact


def _varied(connection: Connection, held: Sequence[ColumnElement[bool]], *, limit: int, alike: int) -> list[str]:
    """The ids of the weightiest facts, of each template `alike` at most."""
    by_worth = select(table.c.id, table.c.text).where(*held).order_by(*_BY_WORTH).limit(limit)
    found: list[str] = []
    seen: Counter[str] = Counter()
    for start in range(0, _PAGES * limit, limit):
        page = connection.execute(by_worth.offset(start)).all()
        for fact, text in page:
            template = template_of(str(text))
            seen[template] += 1
            if seen[template] <= alike:
                found.append(fact)
        if len(found) >= limit or len(page) < limit:
            break
    return found[:limit]

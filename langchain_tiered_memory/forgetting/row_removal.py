"""Removes messages, sessions or a user's sessions from SQL, with every row that was derived from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import Connection, RowMapping, and_, delete, func, insert, select, update

from langchain_tiered_memory.context.outcome_store import cut_outcomes
from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.forgetting.echoes import echoes, words_of, written_beside
from langchain_tiered_memory.items.store import drop_items_of
from langchain_tiered_memory.runs.checkpoint_store import drop_checkpoints_since
from langchain_tiered_memory.runs.files.file_rows import forget_files
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.entry_rows import mark_of, stored_calls
from langchain_tiered_memory.sql.postgresql import vacuum
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import advance_epoch, insert_all, lock_session
from langchain_tiered_memory.sql.schema import (
    OF_A_SESSION,
    checkpoints,
    digest_of_task,
    entries,
    events,
    facts,
    file_contents,
    file_dictionaries,
    file_tiers,
    item_vectors,
    items,
    kept_files,
    outcomes,
    passages,
    plans,
    removal_targets,
    removals,
    revisions,
    runs,
    sessions,
    summaries,
    tasks,
    unpacked,
)
from langchain_tiered_memory.summaries.facts.rows import (
    drop_facts,
    drop_facts_of_summaries,
    joined_beside,
    stand_anew,
    stated_by,
    told_elsewhere,
)
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.transcript.derived_rows import (
    ancestors,
    count_anew,
    drop_passages,
    drop_touches,
    touched_by,
)
from langchain_tiered_memory.transcript.tombstones import bury
from langchain_tiered_memory.types.drafts import Begun
from langchain_tiered_memory.types.records import SessionRef, SummaryState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from langchain_tiered_memory.summaries.facts.rows import Placed

_COUNTED = {
    "entries": entries,
    "revisions": revisions,
    "summaries": summaries,
    "passages": passages,
    "facts": facts,
    "files": kept_files,
    "checkpoints": checkpoints,
}
_HIGHEST = 2**63 - 1
"""Of the numbers that a database can keep; a damaged number, a text, is beyond it on SQLite."""
_OF_A_RUN = (runs, checkpoints, outcomes, file_tiers, kept_files, file_contents, file_dictionaries)
_KEPT_SECONDS = 86_400.0
"""How long a finished removal is kept, for whoever began it while somebody else finished it."""


class Removal(Room):
    """Removes, and makes the bytes go too where the database can."""

    def begin(self, targets: Mapping[int, Sequence[int]], *, now: float, user: str | None = None) -> int:
        """Write down what is about to be removed, before anything is; returns the removal's number.

        A user's items of LangGraph's store go at once.

        Args:
            targets: For each session's key the numbers of its messages; none of them for the session itself, which is
                all that it has now: the removal may have to wait, and what is said meanwhile is not meant.
            now: What time it is.
            user: Whose items go too.
        """
        whole = sorted(target for target, seqs in targets.items() if not seqs)
        with self.database.write() as connection:
            # Below zero stands the number that the next message might get, and all before it is meant.
            named = {target: list(dict.fromkeys(seqs)) for target, seqs in targets.items() if seqs}
            named |= {target: [-end] for target, end in _ends_of(connection, whole).items()}
            connection.execute(delete(removals).where(removals.c.finished_at < now - _KEPT_SECONDS))
            gone = drop_items_of(connection, user) if user is not None else 0
            inserted = connection.execute(insert(removals).values(begun_at=now, items=gone)).inserted_primary_key
            key = int(inserted[0]) if inserted is not None else 0
            insert_all(
                connection,
                removal_targets,
                [{"removal": key, "target": target, "seq": seq} for target, seqs in named.items() for seq in seqs],
            )
        return key

    def begun(self) -> list[Begun]:
        """Removals that are not finished, oldest first, each with the keys of the sessions that it has yet to see."""
        query = (
            select(removals.c.key, removals.c.erased_at, removal_targets.c.target)
            .outerjoin(removal_targets, removal_targets.c.removal == removals.c.key)
            .where(removals.c.finished_at.is_(None))
            .distinct()
            .order_by(removals.c.key, removal_targets.c.target)
        )
        found: dict[int, Begun] = {}
        with self.database.read() as connection:
            for key, erased_at, target in connection.execute(query):
                before = found.get(key, Begun(key=key, is_erased=erased_at is not None))
                found[key] = before if target is None else replace(before, targets=(*before.targets, target))
        return list(found.values())

    def carry_out(self, removal: int, target: int) -> None:
        """Remove what a removal names of one session, and count it; nothing where somebody else has done it.

        What other texts may say of it goes with it, in other sessions of its user too: a view of theirs may have shown
        it to who wrote their summaries.
        """
        mine = and_(removal_targets.c.removal == removal, removal_targets.c.target == target)
        with self.database.write() as connection:
            keys = _locked_with(connection, target)
            row = lock_session(connection, target)
            seqs = list(connection.scalars(select(removal_targets.c.seq).where(mine).order_by(removal_targets.c.seq)))
            if row is not None and seqs:
                end = -seqs[0] if isinstance(seqs[0], int) else 0
                before = _counts(connection, keys)
                now = connection.scalar(select(removals.c.begun_at).where(removals.c.key == removal)) or 0.0
                _break_off(connection, keys, now=now)
                gone = _numbers_below(connection, target, end) if end > 0 else seqs
                said = words_of(connection, target, gone)
                if end > 0:
                    lost = self._remove_up_to(connection, row, end)
                else:
                    lost = self._remove_messages(connection, row, seqs)
                since = min((one for one in gone if type(one) is int), default=0)
                echoing = _remove_echoes(connection, keys, said, target=target, since=since)
                for key in {target, *echoing}:
                    stand_anew(connection, key, [*echoing.get(key, ()), *(lost if key == target else ())])
                left = _counts(connection, keys)
                counted = {name: removals.c[name] + before[name] - left[name] for name in _COUNTED}
                connection.execute(update(removals).where(removals.c.key == removal).values(counted))
            connection.execute(delete(removal_targets).where(mine))

    def mark(self, keys: Sequence[int], *, now: float, is_done: bool = True) -> None:
        """Say that removals are done, traces included; else that those in the database are, while vectors wait."""
        column = "finished_at" if is_done else "erased_at"
        with self.database.write() as connection:
            for part in chunks(list(keys)):
                mine = and_(removals.c.key.in_(part), removals.c[column].is_(None))
                connection.execute(update(removals).where(mine).values({column: now}))

    def removed(self, removal: int) -> Counter[str]:
        """How much a removal took so far, by what it is, whoever carried it out."""
        with self.database.read() as connection:
            row = connection.execute(select(removals).where(removals.c.key == removal)).mappings().one_or_none()
        return Counter({name: row[name] if row is not None else 0 for name in (*_COUNTED, "items")})

    def _remove_messages(self, connection: Connection, row: RowMapping, seqs: Sequence[int]) -> list[Placed]:
        """Remove messages with all that hangs on them; gives the rows of the facts among that.

        That is their revisions, every summary above them, or that a call wrote which had read them, with the facts that
        were read for it, all index rows, and the files they touched, contents that are kept of these included.

        What those summaries covered besides is free to be summarised again; calls that lost their results are open
        again. Checkpoints that were made when one of them was there go too, for they hold words of the view; outcomes
        of that time lose what may quote or name them, and can no longer be undone. So do tasks that had no other
        messages, and, with the last message, all that was said of the session itself.
        """
        ref, is_less = rows.session_ref(row), False
        lost = _remove_what_tells_of(connection, ref.key, seqs)
        for part in chunks(list(seqs)):
            bury(connection, self.database.forgetting_key, row, entries.c.seq.in_(part))
            is_less |= _remove_entries(connection, ref, part)
        count_anew(connection, ref.key)
        connection.execute(delete(plans).where(plans.c.session_key == ref.key))
        left = select(entries.c.seq).where(entries.c.session_key == ref.key).limit(1)
        if is_less and connection.execute(left).first() is None:
            _blank_what_is_older(connection, ref.key)
        advance_epoch(connection, ref.key)
        return lost

    def _remove_up_to(self, connection: Connection, row: RowMapping, end: int) -> list[Placed]:
        """Remove a session as it was when its next message would have got the number `end`; gives rows of facts too."""
        newer = and_(entries.c.session_key == row["key"], entries.c.seq.between(end, _HIGHEST))
        if connection.scalar(select(entries.c.seq).where(newer).limit(1)) is None:
            self._remove_session(connection, row)
            return []
        # A writer may have been shown what goes in other sessions too, which look for it where something stays: what
        # was made here meanwhile is made anew.
        made = connection.scalars(select(summaries.c.id).where(summaries.c.session_key == row["key"])).all()
        lost = uproot(connection, made)
        lost += self._remove_messages(connection, row, _numbers_below(connection, row["key"], end))
        _blank_what_is_older(connection, row["key"])
        connection.execute(delete(events).where(events.c.session_key == row["key"]))
        return lost

    def _remove_session(self, connection: Connection, row: RowMapping) -> None:
        key = row["key"]
        bury(connection, self.database.forgetting_key, row, None)
        drop_passages(connection, passages.c.session_key == key)
        for table in OF_A_SESSION:
            connection.execute(delete(table).where(table.c.session_key == key))
        connection.execute(delete(sessions).where(sessions.c.key == key))

    def erase_traces(self) -> tuple[str, ...]:
        """Make removed rows leave no bytes behind; returns the places where that cannot be promised."""
        if self.database.dialect != "sqlite":
            tables = [table.name for table in (sessions, *OF_A_SESSION, items, item_vectors)]
            with self.database.outside_transaction() as connection:
                skipped = vacuum(connection, tables)
            left = ("PostgreSQL: dead rows in data files until they are overwritten, the log, replicas and backups",)
            if skipped:
                until = "until the next VACUUM, because somebody else has locked them"
                return (f"PostgreSQL: dead rows of {', '.join(skipped)} {until}", *left)
            return left
        with self.database.write() as connection:
            connection.exec_driver_sql("INSERT INTO ltm_passages_fts(ltm_passages_fts) VALUES ('optimize')")
        path = self.database.path
        files = f"{path.name} and {path.name}-wal" if path is not None else "the database in memory"
        try:
            busy = self.database.vacuum()
        except StorageError as error:
            return (f"SQLite: free pages of {files}, because somebody else holds the file ({error})",)
        if busy:
            return (
                f"SQLite: {files} with their old content, because another process or connection reads the database",
            )
        return ()


def _locked_with(connection: Connection, target: int) -> list[int]:
    """A session and the others of its user that do not go whole themselves, locked in their order."""
    owner = connection.scalar(select(sessions.c.owner_digest).where(sessions.c.key == target))
    if owner is None:
        return [target]
    targets = select(removal_targets.c.target).join(removals, removals.c.key == removal_targets.c.removal)
    going = set(connection.scalars(targets.where(removals.c.finished_at.is_(None), removal_targets.c.seq < 0)))
    theirs = select(sessions.c.key).where(sessions.c.owner_digest == owner).order_by(sessions.c.key)
    return [one for one in connection.scalars(theirs.with_for_update()) if one == target or one not in going]


def _numbers_below(connection: Connection, key: int, end: int) -> list[int]:
    """The numbers of a session's messages below one; damaged ones are among them."""
    older = and_(entries.c.session_key == key, ~entries.c.seq.between(end, _HIGHEST))
    return list(connection.scalars(select(entries.c.seq).where(older).order_by(entries.c.seq)))


def _break_off(connection: Connection, keys: Sequence[int], *, now: float) -> None:
    """Take their leases from whoever is writing summaries of these sessions: what they read may be about to go."""
    for part in chunks(list(keys)):
        held = and_(summaries.c.session_key.in_(part), summaries.c.lease_owner.is_not(None))
        connection.execute(update(summaries).where(held).values(lease_owner=None, lease_until=None, retry_at=now))


def _remove_what_tells_of(connection: Connection, key: int, seqs: Sequence[int]) -> list[Placed]:
    """Remove what was made of messages, and what calls wrote that had read them; gives rows of facts among that."""
    above: dict[str, None] = {}
    for part in chunks(list(seqs)):
        mine = (entries.c.session_key == key, entries.c.seq.in_(part), entries.c.summary_id.is_not(None))
        above |= dict.fromkeys(connection.scalars(select(entries.c.summary_id).where(*mine)))
    stated = stated_by(connection, key, seqs)
    told = told_elsewhere(connection, key, seqs, stated)
    lost = drop_facts(connection, key, stated)
    read = dict.fromkeys([*above, *(one.id for one in lost)])
    lost += drop_facts(connection, key, joined_beside(connection, key, read))
    return lost + uproot(connection, list(dict.fromkeys([*above, *told, *written_beside(connection, key, read)])))


def _remove_echoes(
    connection: Connection, keys: Sequence[int], said: frozenset[str], *, target: int, since: int
) -> dict[int, list[Placed]]:
    """Remove what says still what the messages said that are gone from a session; what it stood for is free again.

    So are checkpoints and outcomes that may have shown it: in the session itself none from before the message `since`.
    Gives the sessions that had such, by their keys, with the rows of facts among that.
    """
    lost: dict[int, list[Placed]] = {}
    found = echoes(connection, keys, said)
    for key, (ids, notes) in found.items():
        stood: list[tuple[int, str | None]] = []
        for table, first, named in (
            (summaries, summaries.c.first_seq, _with_those_above(connection, ids)),
            (facts, facts.c.seq, notes),
        ):
            for part in chunks(named):
                mine = (table.c.session_key == key, table.c.id.in_(part))
                stood += [(seq, track) for seq, track in connection.execute(select(first, table.c.track).where(*mine))]
        lost[key] = uproot(connection, ids) + drop_facts(connection, key, notes)
        oldest = max(min((first for first, _ in stood), default=0), since if key == target else 0)
        connection.execute(delete(plans).where(plans.c.session_key == key))
        drop_checkpoints_since(connection, key, oldest, tracks={track for _, track in stood if track is not None})
        cut_outcomes(connection, key, since=oldest, message_ids=())
    for key in keys:
        if key != target:
            advance_epoch(connection, key)  # no request that showed it is used any more
    return lost


def _counts(connection: Connection, keys: Sequence[int]) -> dict[str, int]:
    """How many rows sessions have of what a removal counts."""
    return {
        name: sum(
            connection.scalar(select(func.count()).select_from(table).where(table.c.session_key.in_(part))) or 0
            for part in chunks(list(keys))
        )
        for name, table in _COUNTED.items()
    }


def _with_those_above(connection: Connection, ids: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(one for part in chunks(list(ids)) for one in ancestors(connection, part)))


def uproot(connection: Connection, summary_ids: Sequence[str]) -> list[Placed]:
    """Remove summaries with their facts and everything above them; what they covered is free again.

    Gives the rows of those facts: which of the other facts hold is for the caller to say anew.
    """
    above = _with_those_above(connection, summary_ids)
    for part in chunks(above):
        drop_passages(connection, passages.c.summary_id.in_(part))
        connection.execute(update(entries).where(entries.c.summary_id.in_(part)).values(summary_id=None))
        below = summaries.c.parent_id.in_(part)
        superseded = and_(below, summaries.c.state == SummaryState.SUPERSEDED)
        connection.execute(update(summaries).where(superseded).values(state=SummaryState.ACTIVE))
        connection.execute(update(summaries).where(below).values(parent_id=None))
    lost = drop_facts_of_summaries(connection, above)
    for part in chunks(above):
        connection.execute(delete(summaries).where(summaries.c.id.in_(part)))
    return lost


def _remove_entries(connection: Connection, ref: SessionRef, wanted: Sequence[int]) -> bool:
    """Remove some messages; whether any was there."""
    mine = and_(entries.c.session_key == ref.key, entries.c.seq.in_(list(wanted)))
    columns = ("seq", "message_id", "group_seq", "task", "track")
    found = connection.execute(select(*(entries.c[name] for name in columns)).where(mine)).all()
    if not found:
        return False
    seqs = [row.seq for row in found]
    of_messages = (passages.c.session_key == ref.key, passages.c.level == 0, passages.c.seq.in_(seqs))
    drop_passages(connection, and_(*of_messages))
    connection.execute(delete(revisions).where(revisions.c.session_key == ref.key, revisions.c.seq.in_(seqs)))
    connection.execute(delete(entries).where(mine))
    forget_files(connection, ref.key, touched_by(connection, ref.key, seqs))
    drop_touches(connection, ref.key, seqs)
    belonged = {(row.task, row.track) for row in found if row.task is not None}
    named_since = _drop_emptied_tasks(connection, ref.key, belonged)
    drop_checkpoints_since(connection, ref.key, min([*seqs, *named_since]), tracks={row.track for row in found})
    cut_outcomes(connection, ref.key, since=min(seqs), message_ids=[unpacked(row.message_id) for row in found])
    _open_again(connection, ref, {row.group_seq for row in found} - set(seqs))
    return True


def _open_again(connection: Connection, ref: SessionRef, heads: set[int]) -> None:
    """Say anew which calls of these messages have no result."""
    for head in sorted(heads):
        mine = and_(entries.c.session_key == ref.key, entries.c.seq == head)
        row = connection.execute(select(entries.c.seq, entries.c.calls).where(mine)).mappings().one_or_none()
        if row is not None:
            waits = mark_of(connection, ref.key, head, stored_calls(connection, row))
            connection.execute(update(entries).where(mine).values(open_calls=waits))


def _drop_emptied_tasks(connection: Connection, key: int, belonged: Collection[tuple[str, str]]) -> list[int]:
    """Remove tasks of a session that have no message left; nothing of their track waits for them any more.

    The messages are gone already; `belonged` names their tasks and the tracks of those, as they are stored. Gives,
    for each task that had one, since which message its name may stand in checkpoints.
    """
    left: set[tuple[str, str]] = set()
    for part in chunks(list({name for name, _ in belonged})):
        named = select(entries.c.task, entries.c.track).where(entries.c.session_key == key, entries.c.task.in_(part))
        left |= {(row.task, row.track) for row in connection.execute(named.distinct())}
    gone: dict[str, set[str]] = {}
    for name, track in set(belonged) - left:
        gone.setdefault(track, set()).add(unpacked(name))
    if not gone:
        return []
    since: list[int] = []
    mine = tasks.c.session_key == key
    for row in connection.execute(select(tasks).where(mine)).mappings().all():
        waits_for = rows.names_in(tasks, row, "depends_on")
        names = gone.get(row["track"], set())
        is_gone = unpacked(row["task_id"]) in names
        if not is_gone and names.isdisjoint(waits_for):
            continue
        # A task may stand in a checkpoint that was made before the first message behind its start.
        since.append(row["first_seq"] - 1)
        this = and_(mine, tasks.c.task_digest == row["task_digest"])
        if is_gone:
            connection.execute(delete(tasks).where(this))
        else:
            left_names = rows.names_to_json([one for one in waits_for if one not in names])
            connection.execute(update(tasks).where(this).values(depends_on=left_names))
    return since


def _ends_of(connection: Connection, keys: Sequence[int]) -> dict[int, int]:
    """Above which number each of these sessions has no message, by its key; they are locked, and may be gone."""
    found: dict[int, int] = {}
    for part in chunks(list(keys)):
        locked = select(sessions.c.key).where(sessions.c.key.in_(part)).order_by(sessions.c.key).with_for_update()
        found |= dict.fromkeys(connection.scalars(locked), 1)
        mine = and_(entries.c.session_key.in_(part), entries.c.seq.between(1, _HIGHEST))
        newest = select(entries.c.session_key, func.max(entries.c.seq)).where(mine).group_by(entries.c.session_key)
        found |= {key: seq + 1 for key, seq in connection.execute(newest) if key in found}
    return found


def _blank_what_is_older(connection: Connection, key: int) -> None:
    """Take what was said of a session whose earlier messages, or all, are gone: all but the tasks of those it has.

    Events stay, for nobody may have been told of them.
    """
    named = select(entries.c.task, entries.c.track).where(entries.c.session_key == key, entries.c.task.is_not(None))
    left = [digest_of_task(unpacked(row.track), unpacked(row.task)) for row in connection.execute(named.distinct())]
    for table in _OF_A_RUN:
        connection.execute(delete(table).where(table.c.session_key == key))
    mine = tasks.c.session_key == key
    there = list(connection.scalars(select(tasks.c.task_digest).where(mine)))
    for part in chunks([one for one in there if one not in left]):
        connection.execute(delete(tasks).where(mine, tasks.c.task_digest.in_(part)))
    connection.execute(update(sessions).where(sessions.c.key == key).values(title=None))

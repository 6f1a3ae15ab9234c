"""What summaries, facts, plans, runs, checkpoints, outcomes and files say of the messages, and of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select

from langchain_tiered_memory.context.outcome_store import outcome_of
from langchain_tiered_memory.context.view.plan import ViewPlan, border_of_another_version
from langchain_tiered_memory.errors import CheckpointError, DamagedFileError, DamagedRowError
from langchain_tiered_memory.maintenance.remedies import Fault, Known, as_kept, mend
from langchain_tiered_memory.runs.checkpoint_store import copies_of
from langchain_tiered_memory.runs.files.disk import kind_of
from langchain_tiered_memory.runs.files.file_rows import checksum_of, unpack_row
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.column_forms import Columns, damage_in
from langchain_tiered_memory.sql.rows import names_from_json
from langchain_tiered_memory.sql.schema import digest_of, digest_of_task, unpacked
from langchain_tiered_memory.summaries.facts.reading import READER_VERSION
from langchain_tiered_memory.summaries.facts.rows import fact_of
from langchain_tiered_memory.summaries.facts.supersession import standing
from langchain_tiered_memory.types.drafts import FINDING, TOUCHING_ROLES
from langchain_tiered_memory.types.records import FINISHED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_tiered_memory.types.records import Fact


def of_summaries(known: Known) -> Iterator[Fault]:
    """Of what follows from a summary's sources."""
    summaries = schema.summaries
    messages: dict[Any, dict[str, dict[str, Any]]] = {}
    for row in known.rows(schema.entries, "payload", "text"):
        messages.setdefault(row["track"], {})[unpacked(row["message_id"])] = row
    there = {row["id"]: row for row in known.rows(summaries, "text", "facts")}
    for row in there.values():
        names = names_from_json(row["sources"])
        of_track = _messages_of(row, names, messages)
        is_first = of_track is not None
        covered = there if of_track is None else of_track
        sources = [covered[one] for one in names if one in covered]
        if not sources or len(sources) != len(names):
            continue  # named as wrong coverage
        right = _of_sources(sources, is_first=is_first)
        if row["stale"]:
            del right["from_tools"]  # it says so of its sources before they were edited
        if row["state"] in _UNFINISHED:
            right.pop("from_tools", None)  # known when it is written
            if row["retry_at"] is None:
                right["retry_at"] = 0.0
        yield from known.differing(
            summaries, row, right, kind="wrong_summary", what=row["id"], why="is not what its sources say"
        )


def _messages_of(
    row: Mapping[str, Any], names: Sequence[str], tracks: Mapping[Any, dict[str, dict[str, Any]]]
) -> dict[str, dict[str, Any]] | None:
    """The messages of the track that has all these names: of several the one whose messages name the summary.

    Ids are unique per track alone, and the summary's own word for its track may be what was damaged.
    """
    found = [(track, messages) for track, messages in tracks.items() if all(one in messages for one in names)]

    def speaks_for(one: tuple[Any, dict[str, dict[str, Any]]]) -> tuple[int, bool]:
        track, messages = one
        return sum(messages[name]["summary_id"] == row["id"] for name in names), track == row["track"]

    return max(found, key=speaks_for)[1] if found else None


_UNFINISHED = ("pending", "generating", "failed")


def _of_sources(sources: Sequence[Mapping[str, Any]], *, is_first: bool) -> dict[str, Any]:
    """The columns of a summary that follow from what it covers."""
    first, last = ("seq", "seq") if is_first else ("first_seq", "last_seq")
    since, until = ("at", "at") if is_first else ("first_at", "last_at")
    return {
        "level": 1 if is_first else sources[0]["level"] + 1,
        "track": sources[0]["track"] if is_first else None,
        "first_seq": min(one[first] for one in sources),
        "last_seq": max(one[last] for one in sources),
        "first_at": min(one[since] for one in sources),
        "last_at": max(one[until] for one in sources),
        "entry_count": len(sources) if is_first else sum(one["entry_count"] for one in sources),
        "from_tools": any(one["role"] == "tool" if is_first else one["from_tools"] for one in sources),
    }


def border_in(plan: str) -> int | None:
    """The border in a plan's JSON; `None` where it cannot be read."""
    found = ViewPlan.from_json(plan)
    return found.border if found is not None else border_of_another_version(plan)


def of_plans(known: Known) -> Iterator[Fault]:
    """Faults in the borders of views' plans."""
    for row in known.rows(schema.plans):
        if border_in(row["payload"]) != row["border"]:
            detail = f"it cannot be read, or its border is not {row['border']}"
            yield known.fault("wrong_plan", row["name"], detail, mend(schema.plans, row, None))


def of_facts(known: Known) -> Iterator[Fault]:
    """Facts of no summary, facts whose standing does not follow from the others, and readings by nobody.

    Whether a summary's facts are what its messages state is looked at where they are read again. Of those that are yet
    to be read, they have to be from its messages.
    """
    summaries = list(known.rows(schema.summaries, "text", "facts"))
    owners = {row["id"] for row in summaries if row["level"] == 1 and row["state"] in FINISHED}
    under: dict[Any, set[int]] = {
        row["id"]: set() for row in summaries if row["id"] in owners and row["facts_read"] != READER_VERSION
    }
    for row in known.rows(schema.entries, "payload", "text") if under else ():
        if row["summary_id"] in under:
            under[row["summary_id"]].add(row["seq"])
    owned: list[Fact] = []
    for row in known.rows(schema.facts):
        fact, messages = fact_of(row), under.get(row["summary_id"])
        said_in = {fact.seq, *(() if fact.joins else fact.sources)}  # of what notes it joins, others stand above
        if row["summary_id"] in owners and (messages is None or said_in <= messages):
            owned.append(fact)
        else:
            detail = "there is no summary of the messages that it is said to be from"
            yield known.fault("orphan_fact", f"fact {row['id']}", detail, mend(schema.facts, row, None))
    yield from _of_standing(known, owned)
    for row in summaries:
        if row["facts_read"] > READER_VERSION:
            detail = f"its facts are said to have been read by version {row['facts_read']} of the reader"
            yield known.fault("wrong_reading", row["id"], detail, mend(schema.summaries, row, {"facts_read": 0}))


def _of_standing(known: Known, facts: Sequence[Fact]) -> Iterator[Fault]:
    right_of = standing(facts)
    for fact in facts:
        right = dict(zip(("status", "superseded_by"), right_of[fact.id], strict=True))
        row = {"session_key": known.session["key"], "id": fact.id}
        row |= {"status": fact.status, "superseded_by": fact.superseded_by}
        why = "is not what follows from the other facts"
        yield from known.differing(schema.facts, row, right, kind="wrong_standing", what=f"fact {fact.id}", why=why)


_KEYS_OF_CALLS = ('"tool_calls":[', '"invalid_tool_calls":[', '"function_call":')
"""As payloads spell them. Inside of a text a quotation mark is escaped: it cannot look so."""


def of_the_run(known: Known) -> Iterator[Fault]:
    """Of tasks, and of what the run says of them and of its newest checkpoint."""
    runs, tasks = schema.runs, schema.tasks
    done = list(known.rows(tasks))
    for task in done:
        what = unpacked(task["task_id"])
        if task["task_digest"] != digest_of_task(unpacked(task["track"]), what):
            detail = "its digest is not that of its name: it cannot be finished, and is dropped"
            yield known.fault("wrong_task", what, detail, mend(tasks, task, None))
        elif (task["state"] == "finished") != (task["finished_at"] is not None and task["last_seq"] is not None):
            state = "active" if task["finished_at"] is None or task["last_seq"] is None else "finished"
            values = {"state": state} | ({} if state == "finished" else {"finished_at": None, "last_seq": None})
            detail = f"it is {task['state']}, and its times say otherwise"
            yield known.fault("wrong_task", what, detail, mend(tasks, task, values))
        elif task["last_seq"] is not None and task["last_seq"] >= known.session["next_seq"]:
            values = {"last_seq": known.session["next_seq"] - 1}
            yield known.fault("wrong_task", what, "it ends behind the last message", mend(tasks, task, values))
    newest = known.connection.execute(
        select(schema.checkpoints.c.at, schema.checkpoints.c.last_seq)
        .where(schema.checkpoints.c.session_key == known.session["key"], schema.checkpoints.c.alone.is_(False))
        .order_by(schema.checkpoints.c.key.desc())
        .limit(1)
    ).one_or_none()
    values = {"checkpoint_at": newest and newest.at, "checkpoint_seq": newest and newest.last_seq}
    told = {} if any(damage_in(runs, values)) else values  # a damaged checkpoint is mended first
    most = max((task["number"] for task in done), default=0)
    for run in known.rows(runs):
        right = told | {"finished_tasks": max(most, run["finished_tasks"])}
        yield from known.differing(
            runs, run, right, kind="wrong_run", what="run", why="is not what its tasks and checkpoints say"
        )


def of_checkpoints(known: Known) -> Iterator[Fault]:
    """Of the columns that checkpoints have copies of."""
    checkpoints = schema.checkpoints
    query = as_kept(checkpoints).where(checkpoints.c.session_key == known.session["key"]).order_by(checkpoints.c.key)
    for row in known.connection.execute(query.execution_options(yield_per=1)).mappings():
        try:
            told = copies_of(row)
        except CheckpointError as error:
            yield known.fault("damaged_checkpoint", row["id"], str(error), mend(checkpoints, row, None))
            continue
        made_of = told.pop("session")
        if made_of != known.session["session_id"]:
            named = select(schema.sessions.c.key).where(schema.sessions.c.digest == digest_of(unpacked(made_of)))
            key = known.connection.scalar(named)
            back = mend(checkpoints, row, {"session_key": key}) if key is not None else None
            yield known.fault("foreign_checkpoint", row["id"], "it was made of another session", back)
        yield from known.differing(
            checkpoints, row, told, kind="wrong_checkpoint", what=row["id"], why="is not what its contents say"
        )


def of_outcomes(known: Known) -> Iterator[Fault]:
    """Of the columns that outcomes have copies of, and of their plans."""
    outcomes = schema.outcomes
    for row in known.rows(outcomes):
        try:
            told = outcome_of(row)
        except DamagedRowError as error:
            yield known.fault("damaged_outcome", row["id"], error.why, mend(outcomes, row, None))
            continue
        right: dict[str, Any] = {"id": told.id, "kind": told.kind.value, "at": told.at, "last_seq": told.last_seq}
        for name in ("plan_before", "plan_after"):
            if row[name] is not None and border_in(row[name]) is None:
                right[name] = None
        why = "cannot be read, or is not what its contents say"
        yield from known.differing(outcomes, row, right, kind="wrong_outcome", what=row["id"], why=why)


def of_files(known: Known) -> Iterator[Fault]:
    """Of the messages that touched files."""
    files = schema.files
    touched = list(known.rows(files))
    if not touched:
        return
    messages = {row["seq"]: row for row in known.rows(schema.entries, "payload", "text")}
    for row in touched:
        what = f"{row['seq']}/{unpacked(row['path'])}"
        message = messages.get(row["seq"])
        if row["path_digest"] != digest_of(unpacked(row["path"])):
            yield known.fault("wrong_file_access", what, "its digest is not that of its path", mend(files, row, None))
        elif message is not None and not _can_touch(known, message, row["operation"]):
            yield known.fault("wrong_file_access", what, "its message is no call and no result", mend(files, row, None))
        elif message is not None:
            of_message = {name: message[name] for name in ("track", "at")}
            yield from known.differing(
                files, row, of_message, kind="wrong_file_access", what=what, why="is not that of its message"
            )


def _can_touch(known: Known, message: Columns, operation: str) -> bool:
    """Whether a message calls tools, or is a result that finds files."""
    if message["role"] == "tool":
        return operation in FINDING
    if message["role"] not in TOUCHING_ROLES or message["calls"] is not None:
        return message["role"] in TOUCHING_ROLES
    # Calls without an id stand in its payload alone.
    entries = schema.entries
    where = (entries.c.session_key == known.session["key"], entries.c.seq == message["seq"])
    payload = known.connection.scalar(select(entries.c.payload).where(*where))
    return any(key in str(payload) for key in _KEYS_OF_CALLS)


def of_kept_files(known: Known) -> Iterator[Fault]:
    """Of kept files, their contents, and the state of their tiers."""
    sizes: dict[str, int] = {}
    binary: set[str] = set()
    yield from _of_dictionaries(known)
    yield from _of_contents(known, sizes, binary)
    files = list(known.rows(schema.kept_files))
    named = {row["checksum"] for row in known.rows(schema.kept_files, sound=False)}
    for row in files:
        what, checksum = unpacked(row["path"]), row["checksum"]
        if row["path_digest"] != digest_of(what) or checksum not in sizes:
            detail = "its digest is not that of its path, or its content is gone or damaged: it is read again"
            yield known.fault("wrong_kept_file", what, detail, mend(schema.kept_files, row, None))
            continue
        right = {"size": sizes[checksum], "kind": "binary" if checksum in binary else kind_of(what, b"")}
        yield from known.differing(
            schema.kept_files, row, right, kind="wrong_kept_file", what=what, why="is not that of its content"
        )
    key = {"session_key": known.session["key"]}
    for checksum in sorted(set(sizes) - named):
        unused = key | {"checksum": checksum}
        detail = "no kept file has this content"
        yield known.fault("unused_content", checksum[:12], detail, mend(schema.file_contents, unused, None))
    newest = max((row["access_order"] for row in files), default=0)
    tiers = list(known.rows(schema.file_tiers))
    if files and not tiers:
        remedy = insert(schema.file_tiers).values(**key, next_order=newest + 1)
        yield known.fault("wrong_file_tiers", "tiers", "the state of its tiers is gone", remedy)
    for row in tiers:
        right = {"next_order": max(newest + 1, row["next_order"])}
        yield from known.differing(
            schema.file_tiers, row, right, kind="wrong_file_tiers", what="tiers", why="is that of an old access"
        )


def _of_dictionaries(known: Known) -> Iterator[Fault]:
    for row in known.rows(schema.file_dictionaries):
        if checksum_of(bytes(row["payload"])) != row["digest"]:
            detail = "it is not what its checksum says"
            yield known.fault("damaged_dictionary", row["number"], detail, mend(schema.file_dictionaries, row, None))


def _of_contents(known: Known, sizes: dict[str, int], binary: set[str]) -> Iterator[Fault]:
    """Of contents; notes the size of each that is whole, and which are no text."""
    contents = schema.file_contents
    mine = contents.c.session_key == known.session["key"]
    for checksum in known.connection.scalars(
        select(contents.c.checksum).where(mine).order_by(contents.c.checksum)
    ).all():
        this = select(contents).where(mine, contents.c.checksum == checksum)
        row = known.connection.execute(this).mappings().one()  # one at a time: all of them may be large
        if any(damage_in(contents, row)):
            continue  # named already
        try:
            content = unpack_row(known.connection, known.session["key"], row)
        except DamagedFileError as error:
            yield known.fault("damaged_content", row["checksum"][:12], str(error), mend(contents, row, None))
        else:
            sizes[row["checksum"]] = row["size"]
            if kind_of("", content) == "binary":
                binary.add(row["checksum"])

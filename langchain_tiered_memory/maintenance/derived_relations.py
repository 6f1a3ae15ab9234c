"""What facts, plans, runs, checkpoints, outcomes and files say of the messages, and of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, insert, select

from langchain_tiered_memory.context.outcome_store import outcome_of
from langchain_tiered_memory.context.view.plan import ViewPlan, border_of_another_version
from langchain_tiered_memory.errors import CheckpointError, DamagedFileError, DamagedRowError
from langchain_tiered_memory.maintenance.remedies import Fault, Known, as_kept, change, largest, mend
from langchain_tiered_memory.runs.checkpoint_store import copies_of
from langchain_tiered_memory.runs.files.disk import kind_of
from langchain_tiered_memory.runs.files.file_rows import checksum_of, unpack_row
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.column_forms import Columns, damage_in
from langchain_tiered_memory.sql.schema import digest_of, digest_of_task, unpacked
from langchain_tiered_memory.summaries.facts.reading import READER_VERSION
from langchain_tiered_memory.summaries.facts.rows import fact_of
from langchain_tiered_memory.summaries.facts.supersession import standing
from langchain_tiered_memory.types.drafts import FINDING, TOUCHING_ROLES
from langchain_tiered_memory.types.records import FINISHED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_tiered_memory.types.records import Fact


def border_in(plan: str) -> int | None:
    """The border in a plan's JSON; `None` where it cannot be read."""
    found = ViewPlan.from_json(plan)
    return found.border if found is not None else border_of_another_version(plan)


def of_plans(known: Known) -> Iterator[Fault]:
    """Faults in the borders of views' plans."""

    def right_of(row: Columns) -> dict[str, Any] | None:
        return {} if border_in(row["payload"]) == row["border"] else None

    yield from known.compared(schema.plans, right_of, kind="wrong_plan", name="name", why="has another border")


def of_facts(known: Known) -> Iterator[Fault]:
    """Facts of no summary, facts whose standing does not follow from the others, and readings by nobody.

    Whether a summary's facts are what its messages state is looked at where they are read again.
    """
    summaries = list(known.rows(schema.summaries, "text", "facts"))
    owners = {row["id"] for row in summaries if row["level"] == 1 and row["state"] in FINISHED}
    under = {(row["summary_id"], row["seq"]) for row in known.rows(schema.entries, "payload", "text")}
    owned: list[Fact] = []
    for row in known.rows(schema.facts):
        fact, owner = fact_of(row), row["summary_id"]
        said_in = {fact.seq, *(() if fact.joins else fact.sources)}  # of what notes it joins, others stand above
        if owner in owners and all((owner, seq) in under for seq in said_in):
            owned.append(fact)
        else:
            detail = "there is no summary of its stated messages"
            yield known.fault("orphan_fact", f"fact {row['id']}", detail, mend(schema.facts, row, None))
    right_of = standing(owned)
    for fact in owned:
        right = dict(zip(("status", "superseded_by"), right_of[fact.id], strict=True))
        row = {"session_key": known.session["key"], "id": fact.id}
        row |= {"status": fact.status, "superseded_by": fact.superseded_by}
        why = "does not follow from the other facts"
        yield from known.differing(schema.facts, row, right, kind="wrong_standing", what=f"fact {fact.id}", why=why)
    for row in summaries:
        if row["facts_read"] > READER_VERSION:
            detail = f"its facts claim to be read by version {row['facts_read']} of the reader"
            yield known.fault("wrong_reading", row["id"], detail, mend(schema.summaries, row, {"facts_read": 0}))


_KEYS_OF_CALLS = ('"tool_calls":[', '"invalid_tool_calls":[', '"function_call":')
"""As payloads spell them. Inside of a text a quotation mark is escaped: it cannot look so."""


def of_the_run(known: Known) -> Iterator[Fault]:
    """Of tasks, and of what the run says of them and of its newest checkpoint."""
    if any(damage_in(schema.sessions, {"next_seq": known.session["next_seq"]})):
        return  # it is named, and made again before this is looked at
    last = known.session["next_seq"] - 1

    def of_task(task: Columns) -> dict[str, Any]:
        has_ended = task["finished_at"] is not None and task["last_seq"] is not None
        return {
            "task_digest": digest_of_task(unpacked(task["track"]), unpacked(task["task_id"])),
            "state": "finished" if has_ended else "active" if task["state"] == "finished" else task["state"],
            "finished_at": task["finished_at"] if has_ended else None,
            "last_seq": min(task["last_seq"], last) if has_ended else None,
        }

    why = "does not match its name, its end and the session's messages"
    yield from known.compared(schema.tasks, of_task, kind="wrong_task", name="task_id", why=why)
    mine = and_(schema.checkpoints.c.session_key == known.session["key"], schema.checkpoints.c.alone.is_(False))
    newest = select(schema.checkpoints.c.at, schema.checkpoints.c.last_seq).where(mine)
    found = known.connection.execute(newest.order_by(schema.checkpoints.c.key.desc()).limit(1)).one_or_none()
    values = {"checkpoint_at": found and found.at, "checkpoint_seq": found and found.last_seq}
    told = {} if any(damage_in(schema.runs, values)) else values  # a damaged checkpoint is mended first
    most = max((task["number"] for task in known.rows(schema.tasks)), default=0)

    def of_run(run: Columns) -> dict[str, Any]:
        return told | {"finished_tasks": max(most, run["finished_tasks"])}

    why = "does not match its tasks and checkpoints"
    yield from known.compared(schema.runs, of_run, kind="wrong_run", name="session_key", why=why)


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
            checkpoints, row, told, kind="wrong_checkpoint", what=row["id"], why="does not match its contents"
        )


def of_outcomes(known: Known) -> Iterator[Fault]:
    """Of the columns that outcomes have copies of, and of their plans."""

    def right_of(row: Columns) -> dict[str, Any] | None:
        try:
            told = outcome_of(row)
        except DamagedRowError:
            return None
        plans = {name: row[name] for name in ("plan_before", "plan_after") if row[name] is not None}
        lost = {name: None for name, plan in plans.items() if border_in(plan) is None}
        return {"id": told.id, "kind": told.kind.value, "at": told.at, "last_seq": told.last_seq} | lost

    why = "does not match its contents, or cannot be read"
    yield from known.compared(schema.outcomes, right_of, kind="wrong_outcome", name="id", why=why)


def of_files(known: Known) -> Iterator[Fault]:
    """Of the messages that touched files."""
    touched: dict[Any, list[dict[str, Any]]] = {}
    for row in known.rows(schema.files):
        touched.setdefault(row["seq"], []).append(row)
    for message in known.rows(schema.entries, "text", sound=False) if touched else ():
        for row in touched.pop(message["seq"], ()):
            if not (any(damage_in(schema.entries, message)) or _is_touched(row, message)):
                detail = "its path, track or time does not match its message, or no call or result of it names it"
                what = f"{row['seq']}/{unpacked(row['path'])}"
                yield known.fault("wrong_file_access", what, detail, mend(schema.files, row, None))
    for seq, rows in touched.items():
        detail = "files are listed for a message that is gone"
        yield known.fault("orphan_file_access", seq, detail, tuple(mend(schema.files, row, None) for row in rows))


def _is_touched(row: Columns, message: Columns) -> bool:
    """Whether a message can have touched a file so: it calls tools, or is a result that finds files."""
    if row["path_digest"] != digest_of(unpacked(row["path"])):
        return False
    if (row["track"], row["at"]) != (message["track"], message["at"]):
        return False
    if message["role"] == "tool":
        return row["operation"] in FINDING
    # Calls without an id stand in its payload alone.
    return message["role"] in TOUCHING_ROLES and any(key in message["payload"] for key in _KEYS_OF_CALLS)


def of_kept_files(known: Known) -> Iterator[Fault]:
    """Of kept files, their contents, and the state of their tiers."""

    def of_dictionary(row: Columns) -> dict[str, Any] | None:
        return {} if checksum_of(bytes(row["payload"])) == row["digest"] else None

    why = "does not match its checksum"
    dictionaries = schema.file_dictionaries
    yield from known.compared(dictionaries, of_dictionary, kind="damaged_dictionary", name="number", why=why)
    sizes: dict[str, int] = {}
    binary: set[str] = set()
    yield from _of_contents(known, sizes, binary)

    def of_file(row: Columns) -> dict[str, Any] | None:
        path, checksum = unpacked(row["path"]), row["checksum"]
        if row["path_digest"] != digest_of(path) or checksum not in sizes:
            return None
        return {"size": sizes[checksum], "kind": "binary" if checksum in binary else kind_of(path, b"")}

    why = "is not that of its path and its content: it is read again"
    yield from known.compared(schema.kept_files, of_file, kind="wrong_kept_file", name="path", why=why)
    key = {"session_key": known.session["key"]}
    named = {row["checksum"] for row in known.rows(schema.kept_files, sound=False)}
    for checksum in sorted(set(sizes) - named):
        remedy = change(schema.file_contents, key | {"checksum": checksum}, None)
        yield known.fault("unused_content", checksum[:12], "no kept file has this content", remedy)
    after = largest(known.connection, schema.kept_files, "access_order", key["session_key"]) + 1
    if named and not any(known.rows(schema.file_tiers, sound=False)):
        anew = insert(schema.file_tiers).values(**key, next_order=after)
        yield known.fault("wrong_file_tiers", "tiers", "the state of its tiers is gone", anew)

    def of_tiers(row: Columns) -> dict[str, Any]:
        return {"next_order": max(after, row["next_order"])}

    why = "is that of an old access"
    yield from known.compared(schema.file_tiers, of_tiers, kind="wrong_file_tiers", name="session_key", why=why)


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

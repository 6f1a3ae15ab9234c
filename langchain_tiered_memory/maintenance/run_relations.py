"""What runs, tasks, checkpoints, outcomes and files say of each other and of the messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from langchain_tiered_memory.context.outcome_store import outcome_of
from langchain_tiered_memory.errors import CheckpointError, DamagedFileError, DamagedRowError
from langchain_tiered_memory.maintenance.remedies import Fault, Known, Remedy, as_kept, mend
from langchain_tiered_memory.runs.checkpoint_store import copies_of
from langchain_tiered_memory.runs.files.content_rows import checksum_of, unpack_row
from langchain_tiered_memory.runs.files.disk import kind_of
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.column_forms import Columns, damage_in
from langchain_tiered_memory.sql.schema import digest_of, digest_of_task, unpacked
from langchain_tiered_memory.types.drafts import FINDING, TOUCHING_ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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
    is_told = not any(damage_in(runs, values))  # else the checkpoint is mended first
    most = max((task["number"] for task in done), default=0)
    for run in known.rows(runs):
        if is_told and any(run[name] != value for name, value in values.items()):
            yield known.fault("wrong_run", "run", "its newest checkpoint is another one", mend(runs, run, values))
        if run["finished_tasks"] < most:
            detail = f"{most} tasks were finished, {run['finished_tasks']} noted"
            yield known.fault("wrong_run", "run", detail, mend(runs, run, {"finished_tasks": most}))


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
            back = Remedy(checkpoints, {"key": row["key"]}, {"session_key": key}) if key is not None else None
            yield known.fault("foreign_checkpoint", row["id"], "it was made of another session", back)
        wrong = {name: value for name, value in told.items() if row[name] != value}
        if wrong:
            detail = f"its {', '.join(wrong)} is not what its contents say"
            yield known.fault("wrong_checkpoint", row["id"], detail, mend(checkpoints, row, wrong))


def of_outcomes(known: Known, plan_border: Callable[[str], int | None]) -> Iterator[Fault]:
    """Of the columns that outcomes have copies of, and of their plans; `plan_border` as for `of_plans`."""
    outcomes = schema.outcomes
    for row in known.rows(outcomes):
        try:
            told = outcome_of(row)
        except DamagedRowError as error:
            yield known.fault("damaged_outcome", row["id"], error.why, mend(outcomes, row, None))
            continue
        copies = {"id": told.id, "kind": told.kind.value, "at": told.at, "last_seq": told.last_seq}
        wrong: dict[str, Any] = {name: value for name, value in copies.items() if row[name] != value}
        for name in ("plan_before", "plan_after"):
            if row[name] is not None and plan_border(row[name]) is None:
                wrong[name] = None
        if wrong:
            detail = f"its {', '.join(wrong)} cannot be read, or is not what its contents say"
            yield known.fault("wrong_outcome", row["id"], detail, mend(outcomes, row, wrong))


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
        elif message is not None and (row["track"], row["at"]) != (message["track"], message["at"]):
            detail, values = "it is not of the time and track of its message", {n: message[n] for n in ("track", "at")}
            yield known.fault("wrong_file_access", what, detail, mend(files, row, values))


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
        what = unpacked(row["path"])
        values: dict[str, Any] | None = None
        if row["path_digest"] != digest_of(what):
            detail = "its digest is not that of its path"
        elif row["checksum"] not in sizes:
            detail = "its content is gone or damaged: it is read again"
        elif row["size"] != sizes[row["checksum"]]:
            detail, values = "its size is not that of its content", {"size": sizes[row["checksum"]]}
        elif row["kind"] != (kind := "binary" if row["checksum"] in binary else kind_of(what, b"")):
            detail, values = f"its kind is {row['kind']}, and it is {kind}", {"kind": kind}
        else:
            continue
        yield known.fault("wrong_kept_file", what, detail, mend(schema.kept_files, row, values))
    key = {"session_key": known.session["key"]}
    for checksum in sorted(set(sizes) - named):
        unused = key | {"checksum": checksum}
        detail = "no kept file has this content"
        yield known.fault("unused_content", checksum[:12], detail, mend(schema.file_contents, unused, None))
    newest = max((row["access_order"] for row in files), default=0)
    tiers = list(known.rows(schema.file_tiers))
    if files and not tiers:
        remedy = Remedy(schema.file_tiers, key, {**key, "next_order": newest + 1}, absent=True)
        yield known.fault("wrong_file_tiers", "tiers", "the state of its tiers is gone", remedy)
    for row in tiers:
        if row["next_order"] <= newest:
            detail, values = "its next access has the number of an old one", {"next_order": newest + 1}
            yield known.fault("wrong_file_tiers", "tiers", detail, mend(schema.file_tiers, row, values))


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

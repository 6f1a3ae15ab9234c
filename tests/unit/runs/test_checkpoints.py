from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
)
from sqlalchemy import delete, update

from langchain_tiered_memory.errors import CheckpointError, InvalidInputError, NotFoundError, StorageConflictError
from langchain_tiered_memory.messages.codec import MAX_MESSAGES, ViewSnapshot, bounded, conversation_of
from langchain_tiered_memory.runs import checkpoints
from langchain_tiered_memory.runs.checkpoints import checkpoint, last_sound, restore
from langchain_tiered_memory.settings import CheckpointSettings, FileSettings
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.text.tagged_json import from_plain
from langchain_tiered_memory.types.outcomes import Window, Zone
from tests.call_styles import CALL_STYLES, CallStyle
from tests.call_styles import told as in_style
from tests.memory_builders import conversation, open_memory, quick_settings, ref_of, store_of, turn
from tests.run_builders import ODD, driven, runtime_of, ticking

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.types.records import SessionRef
    from langchain_tiered_memory.types.runs import MemoryCheckpoint, RestoreReport

both = pytest.mark.parametrize("call_style", CALL_STYLES)


def messages_of(conversation: Sequence[dict[str, Any]]) -> list[BaseMessage]:
    """The messages that `conversation_of` was given."""
    return messages_from_dict([from_plain(one) for one in conversation])


def memory_with(where: Path | None = None, *, roots: tuple[str, ...] = (), **checkpoints: Any) -> TieredMemory:
    changes = {"checkpoints": CheckpointSettings(**checkpoints), "files": FileSettings(ignore=(), roots=roots)}
    settings = quick_settings().model_copy(update=changes)
    return open_memory(where, settings=settings, clock=ticking())


def saved(memory: TieredMemory, call_style: CallStyle = "sync", **changes: Any) -> MemoryCheckpoint:
    options: dict[str, Any] = {"track": "main", "reasons": ("mine",)} | changes
    made: MemoryCheckpoint = driven(call_style, checkpoint, runtime_of(memory), "s", **options)
    return made


def restored(memory: TieredMemory, call_style: CallStyle = "sync", checkpoint_id: str | None = None) -> RestoreReport:
    report: RestoreReport = driven(call_style, restore, runtime_of(memory), "s", checkpoint_id)
    return report


def reads(path: str, number: int = 0, tool: str = "read_file") -> list[Any]:
    """A call that touches a file, and its result."""
    call = {"name": tool, "args": {"path": path}, "id": f"c{number}"}
    return [AIMessage("", tool_calls=[call], id=f"t{number}"), ToolMessage("text", tool_call_id=f"c{number}")]


def damage(memory: TieredMemory, checkpoint_id: str) -> None:
    with store_of(memory).database.write() as connection:
        mine = schema.checkpoints.c.id == checkpoint_id
        connection.execute(update(schema.checkpoints).where(mine).values(payload=b"damaged"))


def plan_of(session: Session, view: str = "view") -> str | None:
    return session.core.runtime.store.transcript.kept_view(ref_of(session), view).plan


@both
def test_a_checkpoint_holds_all_that_the_run_is(call_style: CallStyle) -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(conversation(3))
        session.add_messages(reads("src/a.py"))
        session.flush()
        in_style(call_style, memory.session("s").start_task, ODD)
        session.pin("q1")
        store_of(memory).plans.write(ref_of(session), "view", '{"border": 2}', now=1.0, border=2)
        given = {"branch": "main", "open": [1, 2]}
        made = saved(memory, call_style, project=given, langgraph_checkpoint_id="1ef")
        assert made == store_of(memory).checkpoints.read(ref_of(session), made.id)
        assert (made.session_id, made.track, made.reasons) == ("s", "main", ("mine",))
        assert [task.id for task in made.tasks] == [ODD]
        assert made.state.pinned_ids == ("q1",)
        assert (made.state.last_seq, made.metrics["messages"]) == (8, 8)
        assert made.project_state["given"] == given
        assert [(one["path"], one["operation"]) for one in made.project_state["files"]] == [("src/a.py", "read")]
        assert [plan["payload"] for plan in made.context_state["plans"]] == ['{"border": 2}']
        assert messages_of(made.conversation) == session.messages()
        assert made.file_checksums == {}, "no folder may be read unless it is allowed"
        assert made.langgraph_checkpoint_id == "1ef"


@both
def test_a_checkpoint_of_a_view_holds_the_view(call_style: CallStyle) -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(conversation(4))
        shown = [SystemMessage("be brief"), *session.messages()[-2:]]
        view = ViewSnapshot(
            name="view",
            ref=ref_of(session),
            messages=shown,
            entries=store_of(memory).transcript.by_id(ref_of(session), [str(one.id) for one in shown[1:]]),
            zone=Zone.DANGER,
            used_tokens=900,
            window=Window(tokens=1000, reserved_tokens=50),
        )
        made = saved(memory, call_style, view=view)
        assert messages_of(made.conversation) == shown
        assert [one["id"] for one in made.context_state["messages"]] == ["q3", "a3"]
        told = {
            key: made.context_state[key] for key in ("view", "zone", "used_tokens", "limit_tokens", "window_tokens")
        }
        assert list(told.values()) == ["view", "danger", 900, 950, 1000]


def test_a_view_from_before_something_was_forgotten_is_not_saved() -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(conversation(4))
        shown, window = session.messages(), Window(tokens=1000, reserved_tokens=50)
        about: dict[str, Any] = {"zone": Zone.DANGER, "used_tokens": 900, "window": window, "entries": ()}
        view = ViewSnapshot(name="view", ref=ref_of(session), messages=shown, **about)
        session.forget(message_ids=["q2"])
        made = saved(memory, view=view)
        assert "q2" in {one.id for one in shown}
        assert messages_of(made.conversation) == session.messages()


def test_a_run_whose_messages_are_forgotten_again_and_again_is_not_saved_for_ever() -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(conversation(12))
        store, left = store_of(memory), [str(one.id) for one in session.messages()]
        placed = store.kept_files.placed

        def forgets(ref: SessionRef) -> dict[str, list[str]]:
            session.forget(message_ids=[left.pop()])
            return placed(ref)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store.kept_files, "placed", forgets)
            with pytest.raises(StorageConflictError, match="8 times, messages were edited or forgotten"):
                saved(memory)
        assert session.checkpoints() == []
        assert saved(memory).id == session.checkpoints()[0].id


@pytest.mark.slow
def test_without_a_view_the_newest_messages_stand_there_and_summaries_for_the_rest() -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(conversation(MAX_MESSAGES))
        session.flush()
        made = saved(memory)
        assert len(made.conversation) == MAX_MESSAGES
        assert messages_of(made.conversation) == session.messages()[-MAX_MESSAGES:]
        assert made.context_state["summaries"]


def test_a_large_view_is_bounded_by_its_first_and_its_newest_messages() -> None:
    messages = [HumanMessage(str(number)) for number in range(MAX_MESSAGES + 100)]
    kept, left_out = bounded(messages)
    assert (len(kept), left_out) == (MAX_MESSAGES, 100)
    assert (kept[:20], kept[20:]) == (messages[:20], messages[120:])
    assert bounded(messages[:7]) == (messages[:7], 0)


def test_messages_of_a_checkpoint_come_back_equal_whatever_they_hold() -> None:
    call = {"name": "f", "args": {"x": [1, {"y": None}]}, "id": "1", "type": "tool_call"}
    messages = [
        HumanMessage([{"type": "text", "text": "\ud83d \ude00 \0"}, {"type": "image_url", "image_url": {"url": "u"}}]),
        AIMessage("hi", tool_calls=[call], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        ToolMessage("found", tool_call_id="1", artifact={"bytes": b"\0\xff", "pair": (1, 2)}),
    ]
    assert messages_of(conversation_of(messages)) == messages


@both
def test_what_cannot_be_saved_is_refused_with_a_sentence(call_style: CallStyle) -> None:
    with memory_with() as memory:
        with pytest.raises(NotFoundError, match="nothing to save"):
            saved(memory, call_style)
        memory.session("s").add_messages(turn(0))
        for project in ({"when": object()}, {"x": float("nan")}, ["no", "dict"]):
            with pytest.raises(InvalidInputError, match="project must be"):
                saved(memory, call_style, project=project)
        with pytest.raises(CheckpointError, match="has no checkpoint"):
            restored(memory, call_style)


@both
def test_files_within_the_allowed_folders_are_summed_and_no_others(call_style: CallStyle, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "a.py").write_text("print(1)")
    (root / "big.bin").write_bytes(b"\0" * 5_000_000)
    (outside / "secret").write_text("secret")
    (root / "link").symlink_to(outside / "secret")
    (root / "inner").symlink_to(root / "a.py")
    (root / "folder").mkdir()
    (root / "ring").symlink_to(root / "ring")
    os.mkfifo(root / "pipe")
    paths = [
        "a.py",
        str(root / "big.bin"),
        "link",
        "inner",
        "../outside/secret",
        "folder",
        "pipe",
        "ring",
        "gone",
        "/etc/hostname",
    ]
    with memory_with(roots=(str(root),)) as memory:
        session = memory.session("s")
        for number, path in enumerate(paths):
            session.add_messages(reads(path, number))
        made = saved(memory, call_style)
    sums = made.file_checksums
    assert set(sums) == {"a.py", str(root / "big.bin"), "inner"}
    assert sums["a.py"] == sums["inner"] == hashlib.sha256(b"print(1)").hexdigest()
    assert sums[str(root / "big.bin")] == hashlib.sha256(b"\0" * 5_000_000).hexdigest()
    unread = made.project_state["unread_files"]
    assert set(unread) == set(paths) - set(sums)
    assert unread["gone"] == "missing"
    assert all("outside of the folders" in unread[one] for one in ("link", "../outside/secret", "/etc/hostname"))


def test_only_so_many_files_are_summed_the_latest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_SUMMED_FILES", 2)
    with memory_with(roots=(str(tmp_path),)) as memory:
        for number in range(4):
            (tmp_path / f"f{number}").write_text(str(number))
            memory.session("s").add_messages(reads(f"f{number}", number))
        assert set(saved(memory).file_checksums) == {"f2", "f3"}


@both
def test_a_restore_puts_everything_back_and_says_that_nothing_differs(call_style: CallStyle) -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(conversation(2))
        in_style(call_style, memory.session("s").start_task, "a")
        store_of(memory).plans.write(ref_of(session), "view", '{"border": 2}', now=1.0, border=2)
        made = saved(memory, call_style)
        in_style(call_style, memory.session("s").finish_task, "a")
        store_of(memory).runs.set_phase(ref_of(session), "build", 1.0)
        store_of(memory).plans.write(ref_of(session), "view", '{"border": 4}', now=1.0, border=4)
        report = restored(memory, call_style)
        assert report.identical
        assert (report.checkpoint.id, report.restored) == (made.id, ("tasks", "phase", "pins", "views"))
        assert plan_of(session) == '{"border": 2}'
        assert store_of(memory).runs.state(ref_of(session), newest_finished=9)[0] == made.state
        assert restored(memory, call_style, made.id) == report


@both
def test_a_restore_names_what_differs_and_removes_no_message(call_style: CallStyle, tmp_path: Path) -> None:
    (tmp_path / "same").write_text("1")
    (tmp_path / "changed").write_text("1")
    (tmp_path / "gone").write_text("1")
    (tmp_path / "barred").write_text("1")
    with memory_with(roots=(str(tmp_path),)) as memory:
        session = memory.session("s")
        session.add_messages(conversation(2))
        for number, path in enumerate(("same", "changed", "gone", "barred")):
            session.add_messages(reads(path, number))
        store_of(memory).plans.write(ref_of(session), "view", "{}", now=1.0)
        made = saved(memory, call_style)
        session.add_messages(turn(8))
        session.add_messages([HumanMessage("edited", id="q0")])
        with store_of(memory).database.write() as connection:
            connection.execute(delete(schema.entries).where(schema.entries.c.message_id == "a1"))
        (tmp_path / "changed").write_text("2")
        (tmp_path / "gone").unlink()
        (tmp_path / "barred").unlink()
        (tmp_path / "barred").mkdir()
        before = [message.id for message in session.messages()]
        report = restored(memory, call_style, made.id)
        assert [message.id for message in session.messages()] == before
    found = {(one.kind, one.what) for one in report.differences}
    assert found == {
        ("file_changed", "changed"),
        ("file_missing", "gone"),
        ("file_unreadable", "barred"),
        ("messages_since", "13-14"),
        ("message_edited", "q0"),
        ("message_forgotten", "a1"),
        ("plan_outdated", made.id),
    }
    assert report.restored == ("tasks", "phase", "pins")
    assert not report.identical


@both
def test_a_damaged_newest_checkpoint_is_passed_over_and_a_named_one_is_an_error(call_style: CallStyle) -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(turn(0))
        older, newer = saved(memory), saved(memory)
        damage(memory, newer.id)
        report = restored(memory, call_style)
        assert (report.checkpoint.id, report.skipped) == (older.id, (newer.id,))
        assert [(one.kind, one.what) for one in report.differences] == [("checkpoint_damaged", newer.id)]
        with pytest.raises(CheckpointError, match="damaged"):
            restored(memory, call_style, newer.id)
        runtime = runtime_of(memory)
        assert driven(call_style, last_sound, runtime, ref_of(session)).id == older.id
        assert [(one.kind, one.what) for one in memory.verify().problems] == [("damaged_checkpoint", f"s/{newer.id}")]
        damage(memory, older.id)
        with pytest.raises(CheckpointError, match="none of the 2"):
            driven(call_style, restore, runtime, "s")
        with pytest.raises(CheckpointError, match="none of the 2"):
            driven(call_style, last_sound, runtime, ref_of(session))


@both
def test_an_emergency_is_no_good_checkpoint_while_there_is_a_calm_one(call_style: CallStyle) -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(turn(1))
        runtime = runtime_of(memory)
        urgent = [saved(memory, reasons=("context_size", "critical")) for _ in range(2)]
        assert driven(call_style, last_sound, runtime, ref_of(session), besides=urgent[1].id).id == urgent[0].id
        calm = saved(memory, reasons=("danger",))
        newest = saved(memory, reasons=("critical",))
        assert driven(call_style, last_sound, runtime, ref_of(session)).id == calm.id
        damage(memory, calm.id)
        assert driven(call_style, last_sound, runtime, ref_of(session), besides=newest.id).id == urgent[1].id


def test_a_session_without_a_checkpoint_has_no_last_sound_one() -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(turn(0))
        assert driven("sync", last_sound, runtime_of(memory), ref_of(session)) is None


def test_a_pin_of_a_forgotten_message_is_skipped_and_named() -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(conversation(2))
        session.pin("q0")
        made = saved(memory)
        with store_of(memory).database.write() as connection:
            connection.execute(delete(schema.entries).where(schema.entries.c.message_id == "q0"))
        found = [(one.what, one.detail) for one in restored(memory, checkpoint_id=made.id).differences]
        assert ("q0", "it was pinned and is gone") in found


def test_a_checkpoint_of_a_track_alone_puts_nothing_of_the_run_back() -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(turn(0))
        memory.session("s", track="aside").add_messages([HumanMessage("aside", id="x")])
        made = saved(memory, track="aside", alone=True)
        session.phase("build")
        session.start_task("mine")
        session.pin("q0")
        assert restored(memory, checkpoint_id=made.id).restored == ("tasks", "pins")
        state = store_of(memory).runs.state(ref_of(session), newest_finished=9)[0]
    assert (state.phase, [task.id for task in state.tasks], state.pinned_ids) == ("build", ["mine"], ("q0",))


@both
def test_making_and_restoring_are_events(call_style: CallStyle, caplog: pytest.LogCaptureFixture) -> None:
    with memory_with() as memory, caplog.at_level("INFO", "langchain_tiered_memory"):
        memory.session("s").add_messages(turn(0))
        made = in_style(call_style, memory.session("s").phase, "plan")
        restored(memory, call_style)
        events = [record.tiered_memory_event for record in caplog.records if hasattr(record, "tiered_memory_event")]
    told = {event.name: event.details for event in events}
    assert told["checkpoint_made"]["checkpoint_id"] == made.id
    assert told["checkpoint_made"]["reasons"] == ["phase_transition"]
    assert told["checkpoint_restored"] == {"checkpoint_id": made.id, "differences": []}


def test_only_so_many_checkpoints_are_kept() -> None:
    with memory_with(keep=2) as memory:
        session = memory.session("s")
        session.add_messages(turn(0))
        made = [saved(memory).id for _ in range(4)]
        infos = store_of(memory).checkpoints.infos(ref_of(session))
        assert [info.id for info in infos] == made[:1:-1]


def test_what_somebody_named_milestones_and_danger_are_kept_apart_from_what_is_saved_in_passing() -> None:
    with memory_with(keep=2) as memory:
        memory.session("s").add_messages(turn(0))
        runtime = runtime_of(memory)
        given = ["mine", "task_milestone", "danger", "yours", "critical", "phase_transition"]
        for reasons in [[one] for one in given] + [["run_end"]] * 3 + [["time_interval", "other"], ["context_size"]]:
            checkpoint(runtime, "s", track="main", reasons=reasons)
        kept = [info.reasons for info in store_of(memory).checkpoints.infos(ref_of(memory.session("s")))]
        assert kept == [
            ("context_size",),
            ("time_interval", "other"),
            ("phase_transition",),
            ("critical",),
            ("yours",),
            ("danger",),
            ("task_milestone",),
        ]


@pytest.mark.slow
@both
def test_sync_and_async_leave_the_same_state_behind(call_style: CallStyle) -> None:
    with memory_with() as memory:
        session = memory.session("s")
        session.add_messages(conversation(2))
        in_style(call_style, memory.session("s").start_task, "a")
        in_style(call_style, memory.session("s").phase, "plan")
        in_style(call_style, memory.session("s").finish_task, "a")
        restored(memory, call_style)
        state = store_of(memory).runs.state(ref_of(session), newest_finished=9)[0]
        assert [(task.id, task.state) for task in state.tasks] == [("a", "active")]
        assert (state.phase, state.finished_tasks, state.last_seq) == ("plan", 0, 4)

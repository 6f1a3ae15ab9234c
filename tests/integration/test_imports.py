"""Conversations as other programs write them: recognised, brought in once, and refused with the reason."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, message_to_dict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_tiered_memory import TieredMemory, aimport_conversations, import_conversations
from langchain_tiered_memory.conversations import importing
from langchain_tiered_memory.conversations.importing import export_line
from langchain_tiered_memory.conversations.reading import open_conversations
from langchain_tiered_memory.errors import InvalidInputError, MixedOwnersError, SettingsError
from langchain_tiered_memory.settings import Settings
from tests.memory_builders import entries_of, open_memory

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_tiered_memory.reports import Progress
    from langchain_tiered_memory.types.records import Entry

NOW = 1_730_000_000.0
PLAN = "[attachment: plan.pdf, application/pdf]"


def node(key: str, parent: str | None, role: str, *parts: Any, children: tuple[str, ...] = (), **more: Any) -> Any:
    content = more.pop("content", {"content_type": "text", "parts": list(parts)})
    author = {"role": role, "name": more.pop("name", None), "metadata": {}}
    place = int("".join(filter(str.isdigit, key)) or 0)
    message = {"id": key, "author": author, "create_time": NOW + place, "content": content, "metadata": {}} | more
    return {"id": key, "parent": parent, "children": list(children), "message": message}


def of_chatgpt(conversation_id: str = "67-chat") -> dict[str, Any]:
    """A question that was asked again, a search, an image and a file, below what nobody sees."""
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-shed"}
    nodes = [
        {"id": "root", "parent": None, "children": ["n0"], "message": None},
        node("n0", "root", "system", "", children=("n1",), metadata={"is_visually_hidden_from_conversation": True}),
        node("n1", "n0", "user", "What does a shed cost?", children=("n2", "n3")),
        node("n2", "n1", "assistant", "No idea."),
        node("n3", "n1", "assistant", "price of sheds", children=("n4",), recipient="web"),
        node("n4", "n3", "tool", "Sheds: 640 euros.", children=("n5",), name="web"),
        node("n5", "n4", "assistant", "About 640 euros.", children=("n6",), recipient="all"),
        node(
            "n6", "n5", "user", "Like this one?", picture, children=("n7",),
            metadata={"attachments": [{"name": "plan.pdf", "mimeType": "application/pdf"}]},
        ),
        node("n7", "n6", "assistant", content={"content_type": "thoughts", "thoughts": [{"content": "secret"}]}),
    ]  # fmt: skip
    nodes[6]["message"]["content"]["parts"].append("")
    return {
        "title": "Shed", "conversation_id": conversation_id, "create_time": NOW, "current_node": "n7",
        "mapping": {one["id"]: one for one in nodes},
    }  # fmt: skip


def of_claude() -> dict[str, Any]:
    def said(number: int, sender: str, text: str, **more: Any) -> dict[str, Any]:
        blocks = [{"type": "thinking", "thinking": "secret"}, {"type": "text", "text": text}]
        return {
            "uuid": f"c{number}", "sender": sender, "text": text, "content": blocks,
            "created_at": f"2025-03-0{number}T10:00:00.123456Z",
        } | more  # fmt: skip

    notes = {"file_name": "notes.txt", "file_type": "txt", "extracted_content": "The fence is 12 m."}
    return {
        "uuid": "claude-1", "name": "Fence",
        "chat_messages": [said(1, "human", "How long is it?", attachments=[notes]), said(2, "assistant", "12 m.")],
    }  # fmt: skip


def run_of(number: int, given: list[Any], gave: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "id": f"r{number}", "trace_id": f"r{number}", "name": "agent", "run_type": "chain", "parent_run_id": None,
        "start_time": f"2025-05-01T10:0{number}:00", "end_time": f"2025-05-01T10:0{number}:30",
        "inputs": {"messages": given}, "outputs": {"messages": gave}, "extra": {"metadata": {"thread_id": "t-7"}},
    } | more  # fmt: skip


def written(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def said_in(memory: TieredMemory, session_id: str) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in memory.session(session_id).messages()]


def test_an_export_of_chatgpt_is_read_along_the_branch_that_was_seen_last(tmp_path: Path) -> None:
    path = written(tmp_path / "conversations.json", [of_chatgpt()])
    with open_memory() as memory:
        assert import_conversations(memory, path).added == {"67-chat": 5}
        assert said_in(memory, "67-chat") == [
            ("human", "What does a shed cost?"),
            ("ai", ""),
            ("tool", "Sheds: 640 euros."),
            ("ai", "About 640 euros."),
            ("human", f"Like this one?\n[image_asset_pointer: file-service://file-shed]\n{PLAN}"),
        ]
        call = memory.session("67-chat").messages()[1]
        assert isinstance(call, AIMessage)
        assert call.tool_calls[0]["args"] == {"input": "price of sheds"}
        context = memory.session("67-chat").context("What does a shed cost?", max_tokens=2000)
        assert context.repairs == ()


def test_an_export_of_claude_is_read_with_its_attachments_and_without_its_thoughts(tmp_path: Path) -> None:
    made = of_claude()
    made["chat_messages"][1]["content"] += [
        {"type": "tool_use", "name": "measure", "input": {}},
        {"type": "tool_result", "content": [{"type": "text", "text": "12.1"}]},
    ]
    path = written(tmp_path / "conversations.json", [made])
    with open_memory() as memory:
        assert import_conversations(memory, path).added == {"claude-1": 2}
        text = "How long is it?\n[attachment: notes.txt, txt]\nThe fence is 12 m."
        assert said_in(memory, "claude-1") == [("human", text), ("ai", "12 m.\n[measure: {}]\n[a tool gave:]\n12.1")]
        (hit, *_) = memory.session("claude-1").search("fence")
        assert hit.at < NOW + 31_536_000


def test_runs_of_langsmith_become_their_threads_with_each_message_once(tmp_path: Path) -> None:
    question, answer = HumanMessage("The crane?", id="h1"), AIMessage("Yellow.", id="a1")
    first = run_of(1, [message_to_dict(question)], [message_to_dict(question), message_to_dict(answer)])
    state = [
        {"role": "user", "content": "The crane?", "id": "h1"},
        {"role": "assistant", "content": "Yellow.", "id": "a1"},
    ]
    again = [*state, {"role": "user", "content": "And the hook?"}]
    second = run_of(2, again, [*again, {"role": "assistant", "content": "Red."}])
    child = run_of(3, again, [{"role": "assistant", "content": "hidden"}], parent_run_id="r2", run_type="llm")
    path = written(tmp_path / "runs.jsonl", "".join(json.dumps(one) + "\n" for one in (second, child, first)))
    with open_memory() as memory:
        assert import_conversations(memory, path).added == {"t-7": 4}
        assert said_in(memory, "t-7") == [
            ("human", "The crane?"), ("ai", "Yellow."), ("human", "And the hook?"), ("ai", "Red."),
        ]  # fmt: skip
        assert import_conversations(memory, path).added == {"t-7": 0}


def test_a_file_of_langgraphs_checkpoints_gives_its_threads_and_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda _: {"messages": [AIMessage("Yellow.", id="a1")]})
        builder.add_edge(START, "answer")
        asked = {"messages": [HumanMessage("The crane?", id="h1")]}
        builder.compile(checkpointer=saver).invoke(asked, {"configurable": {"thread_id": "crane"}})
        saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    with open_memory() as memory:
        assert import_conversations(memory, path).added == {"crane": 2}
        assert said_in(memory, "crane") == [("human", "The crane?"), ("ai", "Yellow.")]
        assert import_conversations(memory, path).added == {"crane": 0}
    assert path.read_bytes() == before


def test_a_file_of_langchains_histories_gives_its_sessions(tmp_path: Path) -> None:
    path = tmp_path / "histories.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT)")
        told = [HumanMessage("Hi."), AIMessage("Hello."), ToolMessage("4", tool_call_id="c")]
        rows = [("ann", json.dumps(message_to_dict(one))) for one in told]
        connection.executemany("INSERT INTO message_store (session_id, message) VALUES (?, ?)", rows)
    connection.close()
    with open_memory() as memory:
        assert import_conversations(memory, path).added == {"ann": 3}


@pytest.mark.parametrize("made", [lambda: [of_chatgpt()], lambda: [of_claude()]])
def test_what_is_imported_twice_is_there_once(tmp_path: Path, made: Any) -> None:
    path = written(tmp_path / "conversations.json", made())
    with open_memory() as memory:
        first = import_conversations(memory, path).added
        assert sum(first.values()) > 0
        assert import_conversations(memory, path).added == dict.fromkeys(first, 0)


def test_an_export_comes_back_with_its_user_and_each_message_on_its_track_pinned_there_and_at_its_time(
    tmp_path: Path,
) -> None:
    with open_memory() as memory:
        session, scout = (memory.session("s", user="ann", track=track) for track in ("main", "scout"))
        session.add_messages([HumanMessage("hi", id="1"), HumanMessage("there", id="2")], at=NOW)
        scout.add_messages([HumanMessage("hi", id="1")], at=NOW - 1e6)
        session.add_messages([HumanMessage("again", id="3")], at=NOW - 50)
        scout.pin("1")
        before = [told(entry) for entry in entries_of(session)]
        lines = [export_line("s", entry, user="ann") for entry in entries_of(session)]
    path = written(tmp_path / "export.jsonl", "\n".join(lines))
    with open_memory() as memory:
        assert import_conversations(memory, path).added == {"s": 4}
        assert [told(entry) for entry in entries_of(memory.session("s"))] == before
        assert import_conversations(memory, path).added == {"s": 0}
        assert memory.sessions(user="ann") == ["s"]
    with open_memory() as memory:
        memory.session("s", user="bob").add_messages(["hi"])
        with pytest.raises(MixedOwnersError):
            import_conversations(memory, path)
        assert len(memory.session("s").messages()) == 1


def test_an_older_export_brings_no_earlier_wording_back(tmp_path: Path) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("The crane is red.", id="1"), HumanMessage("So it is.", id="2")], at=NOW)
        older = written(tmp_path / "older.jsonl", "\n".join(export_line("s", entry) for entry in entries_of(session)))
        session.add_messages([HumanMessage("The crane is green.", id="1")])
        newer = written(tmp_path / "newer.jsonl", "\n".join(export_line("s", entry) for entry in entries_of(session)))
        assert import_conversations(memory, older).added == {"s": 0}
        assert said_in(memory, "s")[0] == ("human", "The crane is green.")
    with open_memory() as memory:
        for path in (older, newer, older):
            import_conversations(memory, path)
        assert said_in(memory, "s") == [("human", "The crane is green."), ("human", "So it is.")]


@pytest.mark.parametrize("redact", [None, lambda text: text.replace("640", "***")])
def test_a_file_without_ids_changes_no_message_of_another_one(tmp_path: Path, redact: Any) -> None:
    first, second = (
        written(tmp_path / name, [{"role": "user", "content": said}, {"role": "assistant", "content": "Well."}])
        for name, said in (("first.json", "A shed for 640 euros?"), ("second.json", "And a fence?"))
    )
    with open_memory(settings=Settings(redact=redact)) as memory:
        assert import_conversations(memory, first, session_id="s").added == {"s": 2}
        assert import_conversations(memory, first, session_id="s").added == {"s": 0}
        before = said_in(memory, "s")
        with pytest.raises(InvalidInputError, match="another session"):
            import_conversations(memory, second, session_id="s")
        assert said_in(memory, "s") == before


def test_a_pinned_message_that_was_forgotten_stops_no_other_of_its_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "BATCH", 1)
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage(said, id=said) for said in ("first", "second")])
        session.pin("first")
        path = written(tmp_path / "export.jsonl", "\n".join(export_line("s", one) for one in entries_of(session)))
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("first", id="first")])
        session.forget(message_ids=["first"])
        assert import_conversations(memory, path).added == {"s": 1}
        assert [one.text for one in session.messages()] == ["second"]


def test_a_session_of_two_users_in_one_file_is_given_to_none_of_them(tmp_path: Path) -> None:
    lines = []
    for user, names in (("ann", ["main", "hers"]), ("bob", ["main"])):
        with open_memory() as memory:
            for name in names:
                session = memory.session(name, user=user)
                session.add_messages([HumanMessage(f"I am {user}.")])
                lines += [export_line(name, entry, user=user) for entry in entries_of(session)]
    path = written(tmp_path / "export.jsonl", "\n".join(lines))
    with open_memory() as memory:
        report = import_conversations(memory, path)
        assert report.added == {"hers": 1}
        assert [one.name for one in report.refused] == ["main"]
        assert memory.sessions() == ["hers"]


def told(entry: Entry) -> tuple[Any, ...]:
    return entry.id, entry.track, entry.text, entry.at, entry.pinned


def broken_among(path: Path, kind: str) -> Path:
    """A file with a conversation `good` between others that cannot be read."""
    said = {"role": "user", "content": "hi"}
    if kind == "histories":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id, message TEXT)")
            rows = [("a", "{no"), ("b", None), ("good", json.dumps(message_to_dict(HumanMessage("hi"))))]
            connection.executemany("INSERT INTO message_store (session_id, message) VALUES (?, ?)", rows)
        connection.close()
        return path
    if kind == "export":
        lines = [{"session": "a", "message": 5}, {"session": "good", "message": said}, {"session": "b", "message": {}}]
        return written(path, "".join(json.dumps(row) + "\n" for row in lines))
    turn = {"id": "1", "speaker": "user", "text": "hi"}
    made: dict[str, Any] = {
        "lists": [{"id": "a", "messages": []}, {"id": "good", "messages": [said]}, {"id": "b", "messages": [7]}],
        "annotated": [{"id": "a", "sessions": []}, {"id": "good", "sessions": [{"turns": [turn]}]}, {"sessions": 1}],
    }
    return written(path, made[kind])


@pytest.mark.parametrize("kind", ["histories", "export", "lists", "annotated"])
def test_of_any_source_a_broken_conversation_does_not_stop_the_others(tmp_path: Path, kind: str) -> None:
    with open_memory() as memory:
        report = import_conversations(memory, broken_among(tmp_path / "file", kind))
        assert report.added == {"good": 1}
        assert len(report.refused) == 2


async def test_a_broken_conversation_is_named_and_the_others_are_taken(tmp_path: Path) -> None:
    empty = {"title": "Nothing", "conversation_id": "x", "mapping": {}, "current_node": None}
    circle = {"title": "Round", "id": "y", "mapping": {"a": {"parent": "a", "children": [], "message": None}}}
    odd = {"title": "Odd", "id": "z", "mapping": {"a": node("a", None, "user", "hi") | {"children": "?"}, "b": 7}}
    bad = {"title": "Bad", "id": "w", "mapping": {"a": node("a", None, "user", "hi") | {"message": {"author": "me"}}}}
    rows = [empty, of_chatgpt(), circle, {"mapping": {"k": 1}}, "text", odd, bad]
    path = written(tmp_path / "conversations.json", rows)
    with open_memory() as memory:
        report = await aimport_conversations(memory, path)
        assert report.added["67-chat"] == 5
        reasons = {one.name: one.reason for one in report.refused}
        assert report.added["x"] == report.added["y"] == 0  # nothing was said in them
        assert len(reasons) == 3
        assert "does not match its format" in reasons["Bad"]
        assert any("has no id" in reason for reason in reasons.values())
        assert any("expected an object" in reason for reason in reasons.values())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04\xff\xfe zipped", "unpack it"),
        (b'[{"users": 1}]', "a message needs `role`"),
        (b"", "the file is empty"),
        (b'[{"mapping": {}}, {]', "not JSON"),
        (b"[" * 100_000, "cannot be read as JSON"),
        (b'[{"role": "user", "content": "hi", "at": ' + b"9" * 5000 + b"}]", "cannot be read as JSON"),
        (b'[{"run_type": "chain", "inputs": {}, "extra": "?"}]', "does not match its format"),
    ],
)
def test_what_is_no_conversation_is_refused_with_the_reason(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with open_memory() as memory, pytest.raises(InvalidInputError, match=said):
        import_conversations(memory, path)


def test_other_databases_are_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_memory(tmp_path / "own.db") as memory:
        memory.session("s").add_messages(["hi"])
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    with sqlite3.connect(tmp_path / "graph.db") as connection:
        connection.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns)")
        connection.execute("CREATE TABLE writes (a)")
    connection.close()
    monkeypatch.setitem(__import__("sys").modules, "langgraph.checkpoint.sqlite", None)
    with open_memory() as memory:
        with pytest.raises(InvalidInputError, match="tiered-memory export"):
            import_conversations(memory, tmp_path / "own.db")
        with pytest.raises(InvalidInputError, match="without LangGraph's checkpoints"):
            import_conversations(memory, tmp_path / "other.db")
        with pytest.raises(SettingsError, match="pip install langgraph-checkpoint-sqlite"):
            import_conversations(memory, tmp_path / "graph.db")


def test_an_import_tells_how_far_it_is_by_conversation_or_by_message(tmp_path: Path) -> None:
    two = written(tmp_path / "two.json", [of_chatgpt("a"), of_chatgpt("b")])
    one = written(tmp_path / "one.json", [of_claude()])
    told: list[Progress] = []
    with open_memory() as memory:
        import_conversations(memory, two, progress=told.append)
        import_conversations(memory, one, progress=told.append)
    assert [(how.step, how.done, how.of) for how in told] == [
        ("conversations", 1, 2), ("conversations", 2, 2), ("messages", 2, 2),
    ]  # fmt: skip


def test_a_conversation_that_the_memory_refuses_does_not_stop_the_others(tmp_path: Path) -> None:
    said = {"role": "user", "content": "hi"}
    rows = [{"session": "a", "message": said, "track": "t" * 5000}, {"session": "b", "message": said}]
    path = written(tmp_path / "export.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with open_memory() as memory:
        report = import_conversations(memory, path)
        assert report.added["b"] == 1
        (refused,) = report.refused
        assert refused.name == "a"
        assert "shorter name" in refused.reason


def test_a_session_can_be_named_for_one_conversation_only(tmp_path: Path) -> None:
    one = written(tmp_path / "one.json", [of_chatgpt()])
    two = written(tmp_path / "two.json", [of_chatgpt("a"), of_chatgpt("b")])
    with open_memory() as memory:
        assert import_conversations(memory, one, session_id="mine").added == {"mine": 5}
        with pytest.raises(InvalidInputError, match="holds 2 conversations"):
            import_conversations(memory, two, session_id="mine")


def test_an_export_is_read_one_conversation_at_a_time(tmp_path: Path) -> None:
    rows = [json.dumps(of_chatgpt(f"chat-{number}")) for number in range(50)]
    path = written(tmp_path / "conversations.json", "[" + ",\n".join(rows) + "]")
    number, conversations = open_conversations(path)
    assert number == 50
    assert getattr(next(conversations), "id") == "chat-0"  # noqa: B009 - a conversation, or what was refused
    assert sum(1 for _ in conversations) == 49

import datetime as dt
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_tiered_memory.conversations import parse_date, read_conversation, read_conversations
from langchain_tiered_memory.conversations.dates import SITTING_PAUSE, place_in_time
from langchain_tiered_memory.conversations.importing import export_line
from langchain_tiered_memory.conversations.turns import message_of, provider_name, spoken
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.messages.codec import encode
from langchain_tiered_memory.types.records import Entry


def moment(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc]


def annotated(*, sessions: object = None, questions: object = (), **more: object) -> dict[str, object]:
    default = [{"id": "s1", "date": "1:56 pm on 8 May, 2023", "turns": [{"id": "t1", "speaker": "Ann", "text": "hi"}]}]
    return {"id": "c", "sessions": default if sessions is None else sessions, "questions": list(questions), **more}  # type: ignore[call-overload]


def written(folder: Path, value: object, *, name: str = "c.json") -> Path:
    path = folder / name
    text = value if isinstance(value, str) else json.dumps(value)
    path.write_text(text, encoding="utf-8")
    return path


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:56 pm on 8 May, 2023", moment(2023, 5, 8, 13, 56)),
        ("12:09 am on 13 September, 2023", moment(2023, 9, 13, 0, 9)),
        ("12 pm on 1 June 2023", moment(2023, 6, 1, 12)),
        ("March-15-2024", moment(2024, 3, 15)),
        ("2023/05/20 (Sat) 06:13", moment(2023, 5, 20, 6, 13)),
        ("29.12.2023, 22:42:04", moment(2023, 12, 29, 22, 42, 4)),
        ("2024-03-15", moment(2024, 3, 15)),
        ("2024-03-15T13:56:00Z", moment(2024, 3, 15, 13, 56)),
        ("2024-03-15 13:56:07.25", moment(2024, 3, 15, 13, 56, 7, 250_000)),
        ("Mon, 20 Nov 1995 19:12:08 -0500", moment(1995, 11, 21, 0, 12, 8)),
        ("May 8th, 2023", moment(2023, 5, 8)),
        ("8th of May 2023 UTC", moment(2023, 5, 8)),
        ("25/12/2023", moment(2023, 12, 25)),
        ("12/25/2023 5 PM", moment(2023, 12, 25, 17)),
        (1_700_000_000, moment(2023, 11, 14, 22, 13, 20)),
        (1_700_000_000_000, moment(2023, 11, 14, 22, 13, 20)),
        ("1700000000.5", moment(2023, 11, 14, 22, 13, 20, 500_000)),
    ],
)
def test_dates_of_the_known_kinds_are_read(text: str | float, expected: dt.datetime) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    "text", ["", "yesterday", "32 May 2023", "13:61 8 May 2023", "0 pm on 8 May 2023", "1e300", "12"]
)
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a date"):
        parse_date(text)


@pytest.mark.parametrize(
    ("text", "ways"), [("05/06/2024", "2024-05-06 or 2024-06-05"), ("05/12/2024", "2024-05-12 or 2024-12-05")]
)
def test_a_date_that_can_be_read_in_two_ways_is_refused_with_the_way_out(text: str, ways: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"two ways.*{ways}"):
        parse_date(text)
    assert parse_date("05/13/2024").month == 5


@given(st.datetimes(min_value=dt.datetime(1970, 1, 2), max_value=dt.datetime(2200, 1, 1)))  # noqa: DTZ001 - made aware below
def test_every_moment_survives_being_written_and_read(naive: dt.datetime) -> None:
    there = naive.replace(microsecond=0, tzinfo=dt.UTC)
    for form in ("%Y-%m-%dT%H:%M:%S%z", "%d.%m.%Y, %H:%M:%S", "%d %B, %Y %I:%M:%S %p", "%Y/%m/%d (%a) %H:%M:%S"):
        assert parse_date(there.strftime(form)) == there


maybe_times = st.none() | st.integers(0, 10_000_000).map(lambda s: moment(2024, 1, 1) + dt.timedelta(seconds=s))


@given(st.lists(st.tuples(maybe_times, st.lists(maybe_times, max_size=6)), max_size=6))
def test_time_never_runs_backwards_and_is_there_for_all_turns_or_none(
    sittings: list[tuple[dt.datetime | None, list[dt.datetime | None]]],
) -> None:
    placed = place_in_time([start for start, _ in sittings], [turns for _, turns in sittings])
    flat = [one for row in placed for one in row]
    known = [one for one in flat if one is not None]
    assert [len(row) for row in placed] == [len(turns) for _, turns in sittings]
    assert len(known) in (0, len(flat))
    assert known == sorted(known)


def test_undated_turns_follow_their_sitting_second_by_second() -> None:
    start = moment(2024, 3, 15)
    assert place_in_time([start], [[None, None, None]]) == [[start + dt.timedelta(seconds=i) for i in range(3)]]


def test_a_second_sitting_on_the_same_day_starts_after_a_pause() -> None:
    start = moment(2024, 3, 15)
    placed = place_in_time([start, start], [[None, None], [None]])
    assert placed[1][0] == start + dt.timedelta(seconds=1) + SITTING_PAUSE


@pytest.mark.parametrize(
    ("speaker", "name"),
    [
        ("Fahim Khan", "Fahim_Khan"),
        ("Dr. <b>Who</b>", "Dr_b_Who_b"),
        ("Zoë", "Zoë"),
        ("  ", None),
        ("a" * 80, "a" * 64),
    ],
)
def test_names_are_made_fit_for_providers(speaker: str, name: str | None) -> None:
    assert provider_name(speaker) == name


def test_people_are_humans_with_names_and_roles_are_roles() -> None:
    assert spoken("Fahim Khan", "hi", message_id="1") == HumanMessage("hi", id="1", name="Fahim_Khan")
    assert spoken("user", "hi", message_id="1") == HumanMessage("hi", id="1")
    assert spoken("assistant", "hi", message_id="1") == AIMessage("hi", id="1")


def test_an_openai_list_with_calls_and_results_becomes_langchain_messages() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"command": "ls"}'}}
    broken = {"id": "c2", "type": "function", "function": {"name": "run", "arguments": "{oops"}}
    made = message_of({"role": "assistant", "content": None, "tool_calls": [call, broken], "model": "x"})
    assert isinstance(made, AIMessage)
    assert [(one["name"], one["args"]) for one in made.tool_calls] == [("run", {"command": "ls"})]
    assert [one["id"] for one in made.invalid_tool_calls] == ["c2"]
    result = message_of({"role": "tool", "tool_call_id": "c1", "content": "a.txt", "name": "run", "is_error": True})
    assert isinstance(result, ToolMessage)
    assert (result.status, result.tool_call_id) == ("error", "c1")


def test_an_annotated_file_gives_dated_turns_and_questions(tmp_path: Path) -> None:
    questions = [
        {"id": "q", "q": "Who?", "answer": 7, "evidence": ["t1", "t9"], "category": 2, "category_name": "temporal"},
        {"q": "What?", "evidence": [], "category": "abstention"},
        {"q": "Fooled?", "evidence": ["t1"], "category": 5, "category_name": "adversarial"},
    ]
    found = read_conversation(written(tmp_path, annotated(questions=questions)))
    assert found.id == "c"
    assert found.turns[0].at == moment(2023, 5, 8, 13, 56)
    assert found.turns[0].message == HumanMessage("hi", id="t1", name="Ann")
    assert found.sittings[0].date == "1:56 pm on 8 May, 2023"
    first, second, third = found.questions
    assert (first.category, first.answer, first.evidence, first.unresolved) == ("2 temporal", "7", ("t1",), ("t9",))
    assert [one.left_out for one in found.questions] == ["unresolved evidence", "no evidence", None]
    assert (second.id, third.adversarial) == ("q1", True)


def test_json_lines_of_messages_are_split_into_sittings_by_pauses(tmp_path: Path) -> None:
    text = lines(
        {"role": "system", "content": "be kind", "timestamp": "2024-03-15T10:00:00Z"},
        {"role": "user", "content": "hi", "timestamp": "2024-03-15T10:00:05Z"},
        {"role": "assistant", "content": "hello", "timestamp": "2024-03-15T12:00:00Z"},
    )
    found = read_conversation(written(tmp_path, text, name="chat.jsonl"))
    assert [turn.sitting for turn in found.turns] == [0, 0, 1]
    assert [turn.id for turn in found.turns] == ["m1", "m2", "m3"]
    assert [turn.message.id for turn in found.turns] == ["m1", "m2", "m3"]
    assert isinstance(found.turns[0].message, SystemMessage)
    assert found.sittings[1].date == "2024-03-15 12:00"


def test_a_list_without_times_has_no_times(tmp_path: Path) -> None:
    found = read_conversation(
        written(tmp_path, [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}])
    )
    assert [turn.at for turn in found.turns] == [None, None]


def test_questions_beside_json_lines_are_found(tmp_path: Path) -> None:
    written(tmp_path, [{"q": "Greeting?", "answer": "hi", "evidence": ["m1"]}], name="chat.questions.json")
    found = read_conversation(written(tmp_path, lines({"role": "user", "content": "hi"}), name="chat.jsonl"))
    assert [one.evidence for one in found.questions] == [("m1",)]


def test_several_conversations_in_one_file_are_several(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "messages": [{"role": "user", "content": "1"}]},
        {"messages": [{"role": "user", "content": "2"}]},
    ]
    assert [one.id for one in read_conversations(written(tmp_path, rows))] == ["a", "c-2"]
    with pytest.raises(InvalidInputError, match="holds 2 conversations"):
        read_conversation(written(tmp_path, rows))


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("", "c.json", "empty"),
        ("{\n  1\n}", "c.json:2", "not JSON"),
        ('{"role": "user", "content": "hi"}\n\n{"role"', "c.json:3", "not JSON"),
        ('{"role": "user", "content": "hi"}\n{"role": "pope", "content": "hi"}', "c.json:2", "cannot be read"),
        ('{"role": "user", "content": "hi"}\n[1]', "c.json:2", "expected a message, found list"),
        (
            '{"role": "user", "content": "hi", "timestamp": "soon"}\n{"role": "user", "content": "x"}',
            "c.json:1",
            "date",
        ),
        ('[{"content": "hi"}]', "c.json[0]", "needs `role`"),
        ('"hi"', "c.json", "expected an object"),
        ("[]", "c.json", "empty"),
        (json.dumps(annotated(sessions={})), "c.json sessions", "expected a list"),
        (json.dumps(annotated(sessions=[{"id": 1}])), "c.json sessions[0]", "`turns` is missing"),
        (json.dumps(annotated(sessions=[{"turns": [{"id": 1, "speaker": "A"}]}])), "sessions[0] turns[0]", "`text`"),
        (json.dumps(annotated(sessions=[])), "c.json", "no turns"),
        (json.dumps(annotated(questions=[{"q": "?", "evidence": "t1"}])), "questions[0] evidence", "expected a list"),
    ],
)
def test_an_error_says_where_in_the_file_it_is(tmp_path: Path, text: str, place: str, what: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_conversations(written(tmp_path, text))
    assert place in str(caught.value)
    assert what in str(caught.value)


def test_an_id_that_stands_for_two_turns_is_refused(tmp_path: Path) -> None:
    row = {"id": "x", "role": "user", "content": "hi"}
    with pytest.raises(InvalidInputError, match="'x' stands for two turns"):
        read_conversations(written(tmp_path, lines(row, row)))


def test_bytes_that_are_no_text_are_reported_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(b'{\n"id": "\xff"}')
    with pytest.raises(InvalidInputError, match=r"c\.json:2: the file is not UTF-8"):
        read_conversations(path)


def test_a_missing_file_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_conversations(tmp_path / "none.json")


def test_an_exported_line_gives_the_same_turn_back(tmp_path: Path) -> None:
    message = AIMessage("fine", id="a", tool_calls=[{"name": "run", "args": {"x": 1}, "id": "c", "type": "tool_call"}])
    entry = stored(message, at=1_700_000_000.25)
    found = read_conversation(written(tmp_path, export_line("s/1", entry) + "\n", name="export.jsonl"))
    assert found.id == "s/1"
    turn = found.turns[0]
    assert turn.message == message
    assert (turn.track, turn.kind, turn.task, turn.pinned) == ("side", "note", "t", True)
    assert turn.at is not None
    assert turn.at.timestamp() == 1_700_000_000.25


def stored(message: AIMessage, *, at: float) -> Entry:
    encoded = encode(message)
    return Entry(
        seq=1,
        id=message.id or "",
        role="assistant",
        text="",
        payload=encoded.payload,
        digest=encoded.digest,
        tokens=1,
        at=at,
        name=None,
        track="side",
        kind="note",
        task="t",
        calls=("c",),
        answers=None,
        group=1,
        pinned=True,
        revision=0,
        summary_id=None,
    )

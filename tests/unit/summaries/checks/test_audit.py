from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from langchain_tiered_memory.messages.codec import encode
from langchain_tiered_memory.messages.groups import unfinished_calls
from langchain_tiered_memory.summaries.marks import APPENDED
from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, SourceText
from langchain_tiered_memory.summaries.writers.postprocess import audited
from langchain_tiered_memory.types.records import Entry, Fact, Role
from tests.strategies import odd_text

PORT = "Put port 8443 into src/gateway/listen.toml, please."


def count(text: str) -> int:
    return len(text.split())


def message(text: str, *, role: Role = "user", number: int = 1, **changes: object) -> SourceText:
    values: dict[str, object] = {
        "id": f"m{number}", "text": text, "tokens": count(text), "at": 0.0, "seq": number, "speaker": role,
        "role": role,
    }  # fmt: skip
    return SourceText(**values | changes)  # type: ignore[arg-type]


def summary(text: str, *, number: int = 1) -> SourceText:
    return message(text, role="other", number=number, speaker="")


def job(*sources: SourceText, facts: tuple[Fact, ...] = ()) -> CondenseJob:
    return CondenseJob(
        level=1 if all(one.speaker for one in sources) else 2, strategy="detailed", sources=sources, facts=facts,
        target_tokens=50, max_tokens=60, session_id="s", title=None, participants=(), first_at=0.0, last_at=0.0,
        message_count=len(sources),
    )  # fmt: skip


class Audited(NamedTuple):
    """A text after its audit, and the lines that were appended."""

    text: str
    added: tuple[str, ...]


def audit(
    text: str, *sources: SourceText, facts: tuple[Fact, ...] = (), most: int = 200, share: float = 0.5
) -> Audited:
    after = audited(text, job(*sources, facts=facts), max_tokens=most, count_text=count, share=share)
    return Audited(after, tuple(after.removeprefix(text).splitlines()[1:]))


def entry(payload: str, *, calls: tuple[str, ...] = (), answers: str | None = None, seq: int = 1) -> Entry:
    return Entry(
        seq=seq, id=f"m{seq}", role="assistant", text="", payload=payload, digest="", tokens=1, at=0.0, name=None,
        track="main", kind=None, task=None, calls=calls, answers=answers, group=1, pinned=False, revision=0,
        summary_id=None,
    )  # fmt: skip


def test_a_summary_that_says_everything_comes_back_as_it_was() -> None:
    text = "The port is 8443, and the handler is in src/retry.py."
    done = audit(text, message("The port is 8443."), message("It is in src/retry.py now.", number=2))
    assert done.text is text
    assert done.added == ()


@pytest.mark.parametrize(
    "said",
    [
        PORT,
        "Der Preis beträgt jetzt 4711 Euro.",
        "端口现在已经改成了8443号端口。",
        "The 12 replicas stay where they are.",
    ],
)
def test_what_was_dropped_is_told_by_the_statement_that_says_it(said: str) -> None:
    assert audit("They talked.", message(said)).text == f"They talked.\nAlso said: user: {said}"


@pytest.mark.parametrize(
    ("said", "role"),
    [
        ("Earth; Please", "user"),
        ("3 files; 1 file; 10:45", "tool"),
        ("769 before", "tool"),
        ("handlers.go-98-\t\treturn err", "tool"),
        ("src/handlers.go:98: func (s *Server) Handle(ctx Context) error {", "tool"),
        ('{"text": "a.py\\n\\nTo do in b.py\\n\\nPlease look at 98', "tool"),
        ("Do atoms have any concept of time in 1905?", "user"),
        ("commitHash, err := s.createCommit(treeHash, opts.Author)", "tool"),
        ("/srv/data/one.csv\n/srv/data/two.csv\n1044 two.csv", "tool"),
        ("```py\nport = 8443\n```", "assistant"),
        ("The order 4711 was not found in the table.", "tool"),
        ("Task(\nprompt:\nLook for the 44 callers of save() now.\n)", "assistant"),
    ],
)
def test_tokens_without_a_sentence_code_tools_and_idle_questions_are_left_out(said: str, role: Role) -> None:
    assert audit("nothing", message("Hello, how are you?"), message(said, role=role, number=2)).added == ()


def test_what_the_user_said_comes_before_what_others_said() -> None:
    sources = [
        message("The order 4711 was not found in the table.", role="tool"),
        message("I see the order 4712 in the other table.", role="assistant", number=2),
        message("We mean the order 4713 of last week.", number=3),
    ]
    assert audit("nothing", *sources).text.splitlines()[1:] == [
        "Also said: user (1 Jan 1970): We mean the order 4713 of last week.",
        "Also said: assistant: I see the order 4712 in the other table.",
    ]


def test_a_statement_with_more_of_what_is_missing_comes_first_and_nothing_is_told_twice() -> None:
    sources = [message("The port is 8443 now."), message("The port is 8443 and the limit is 4500 now.", number=2)]
    assert audit("nothing", *sources).added == ("Also said: user: The port is 8443 and the limit is 4500 now.",)


def test_what_the_facts_say_is_not_said_again() -> None:
    fact = Fact(kind="number", text="The port is 8443.", seq=1, at=0.0)
    assert audit("nothing", message("The port is 8443."), facts=(fact,)).added == ()


def test_a_call_without_a_result_comes_first_and_is_told_as_not_answered() -> None:
    done = audit("nothing", message("The port is 8443 now.", role="assistant", open_calls=("look_up(order=7)",)))
    assert done.text == "nothing\nNot answered: call look_up(order=7)\nAlso said: assistant: The port is 8443 now."


def test_many_calls_of_one_message_without_a_result_are_one_line() -> None:
    calls = tuple(f"look_up(order={number})" for number in range(7, 12))
    done = audit("nothing", message("Looking.", role="assistant", open_calls=calls))
    assert done.added == ("Not answered: call 1 of 5: look_up(order=7)",)


def test_what_somebody_said_is_open_stays_open_unless_the_summary_tells_it_in_other_words() -> None:
    said = message("It is still to be decided whether the gateway moves north.")
    assert audit("nothing", said).added == (
        "Still open: user: It is still to be decided whether the gateway moves north.",
    )
    assert audit("- user: open: does the gateway move to the north? Nobody decided.", said).added == ()


def test_what_an_audit_appended_below_is_told_by_the_next_while_it_matters() -> None:
    first = audit("one", message(PORT))
    second = audit("two", summary(first.text), summary("## Themes\n- nothing", number=2))
    assert second.added == (f"Also said: user: {PORT}",)


@pytest.mark.parametrize("told", ["Not answered: call look_up(order=7)", "Still open: call look_up(order=7)"])
def test_a_call_without_a_result_is_forgotten_one_level_up(told: str) -> None:
    first = summary(f"one\n{told}")
    assert audit("two", first, summary("three", number=2)).added == ()
    assert audit("two", summary("three"), summary(first.text, number=2)).added == ()


def test_nothing_is_appended_without_room_and_what_is_too_long_lets_shorter_ones_through() -> None:
    text = "word " * 20
    assert audit(text, message(PORT), most=20).text is text
    assert audit("x", message(PORT), share=0.0).text == "x"
    long = "The port is 8443 and the limit is 4500 and there is much more that could be said of it all."
    done = audit("x", message(long), message("We need 12 replicas.", number=2), most=9, share=1.0)
    assert done.added == ("Also said: user: We need 12 replicas.",)


@given(
    odd_text,
    st.lists(
        st.tuples(odd_text, st.sampled_from(["user", "assistant", "tool", "system", "other"]), st.booleans()),
        min_size=1,
    ),
    st.integers(-5, 60),
    st.floats(0, 1),
)
def test_it_never_raises_and_never_exceeds_its_cap(
    text: str, said: list[tuple[str, Role, bool]], most: int, share: float
) -> None:
    sources = [
        message(one, role=role, number=n, speaker=role if spoken else "") for n, (one, role, spoken) in enumerate(said)
    ]
    done = audit(text, *sources, most=most, share=share)
    assert done.text.startswith(text)
    if done.added:
        assert count(done.text) <= most
        assert count(done.text) - count(text) <= share * most
        assert all(APPENDED.match(line) for line in done.added)
    else:
        assert done.text is text


@given(st.lists(st.from_regex(r"\AThe (port|budget|limit) is [0-9]{2,4} in [a-z]{2,5} now\.\Z"), max_size=8))
def test_what_was_appended_once_is_not_appended_again(said: list[str]) -> None:
    sources = [message("Well then."), *(message(one, number=n) for n, one in enumerate(said))]
    once = audit("x", *sources, most=10_000, share=1.0)
    assert audit(once.text, *sources, most=10_000, share=1.0).added == ()


def test_unfinished_calls_are_told_by_name_and_arguments() -> None:
    asks = AIMessage(
        "", tool_calls=[{"name": "look", "args": {"n": 1}, "id": "a"}, {"name": "look", "args": {"n": 2}, "id": "b"}]
    )
    asking = entry(encode(asks).payload, calls=("a", "b"))
    answer = entry("", answers="a", seq=2)
    assert unfinished_calls([asking, answer]) == {"m1": ("look(n=2)",)}


def test_a_call_in_a_damaged_message_is_told_by_its_id() -> None:
    assert unfinished_calls([entry("{", calls=("call-7",))]) == {"m1": ("call-7",)}


def test_what_a_writer_left_out_of_merged_summaries_is_not_put_back_but_what_is_unfinished_is() -> None:
    below = summary(
        "- user: The ferry leaves from pier 17 at 08:40.\n- user: Unresolved: who pays the harbour fee of 230?"
    )
    sources = job(below)
    text = "The ferry leaves from pier 21."
    whole = audited(text, sources, max_tokens=200, count_text=count, share=0.5)
    merged = audited(text, sources, max_tokens=200, count_text=count, share=0.5, decided=True)
    assert "pier 17" in whole
    assert "pier 17" not in merged

"""What was recalled for an earlier question stays where it stood, within the budget, until its room is needed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory import TieredMemoryMiddleware
from langchain_tiered_memory.context import recalling
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.recall_budget import recall_budget_of
from langchain_tiered_memory.context.request import Request, read_inputs
from langchain_tiered_memory.context.required_messages import read_required
from langchain_tiered_memory.models.window_budget import ModelProfile
from langchain_tiered_memory.recall.finding import find
from langchain_tiered_memory.recall.judgement import judge
from langchain_tiered_memory.summaries.tree.store import Tree
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import as_bytes, entries_of, open_memory, quick_settings, ref_of, tool_turn

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.slow
BUDGET = 2000
ONSETS, VOWELS = "bdfgklmnprstvz", "aeiou"


def word(number: int) -> str:
    """A word that no other number has."""
    syllables = []
    for _ in range(3):
        number, onset = divmod(number, len(ONSETS))
        number, vowel = divmod(number, len(VOWELS))
        syllables.append(ONSETS[onset] + VOWELS[vowel])
    return "".join(syllables) + "x"


def said(number: int) -> list[BaseMessage]:
    """A turn about something of its own."""
    here = 10 * number
    words = [word(at) for at in range(here, here + 10)]
    return [
        HumanMessage(f"{' '.join(words[:5])} belongs to Name{number}.", id=f"q{number}"),
        AIMessage(f"Noted, {words[0]} {' '.join(words[5:])}: Name{number}.", id=f"a{number}"),
    ]


def question(number: int) -> str:
    """What only one turn answers."""
    return f"Whose is the {word(10 * number)} {word(10 * number + 1)}?"


def with_history(session: Session, turns: int = 100) -> None:
    session.add_messages([message for number in range(turns) for message in said(number)])
    session.flush()
    session.context(max_tokens=BUDGET)


def ask(call_style: CallStyle, session: Session, question: str, key: str) -> Context:
    told(call_style, session.add_messages, [HumanMessage(question, id=key)])
    context: Context = told(call_style, session.context, max_tokens=BUDGET)
    assert context.tokens <= BUDGET
    assert not check_valid(list(context.messages))
    return context


def answer(call_style: CallStyle, session: Session, key: str) -> None:
    told(call_style, session.add_messages, [AIMessage("It is as you noted it then.", id=key)])


def starts_with(later: Context, earlier: Context) -> bool:
    return [as_bytes(one) for one in later.messages[: len(earlier.messages)]] == [
        as_bytes(one) for one in earlier.messages
    ]


def recalled(context: Context) -> list[str]:
    return [str(one.content) for one in context.messages if "<recalled>" in str(one.content)]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_the_next_request_begins_with_the_whole_of_this_one(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        with_history(session)
        first = ask(call_style, session, question(8), "ask1")
        assert "Name8" in recalled(first)[0]
        again = told(call_style, session.context, max_tokens=BUDGET)
        assert [as_bytes(one) for one in again.messages] == [as_bytes(one) for one in first.messages]
        answer(call_style, session, "told1")
        second = ask(call_style, session, question(18), "ask2")
        assert starts_with(second, first)
        assert len(recalled(second)) == 2
        assert "Name18" in "".join(recalled(second))


@pytest.mark.slow
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_over_many_questions_the_beginning_changes_only_when_something_had_to_leave(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        with_history(session)
        kept = 0
        last: Context | None = None
        for number in range(40):
            context = ask(call_style, session, question(3 + number % 20), f"ask{number}")
            if last is not None:
                grew = len(recalled(context)) >= len(recalled(last)) and starts_with(context, last)
                condensed = context.section("history") != last.section("history")
                older = recalled(context)[:-1]  # what stands leaves from its newest end
                left_from_the_end = older == recalled(last)[: len(older)]
                assert grew or condensed or left_from_the_end, number
                kept += grew
            assert f"Name{3 + number % 20}" in "".join(str(one.content) for one in context.messages)
            answer(call_style, session, f"told{number}")
            last = context
        assert kept >= 10


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_nothing_is_quoted_twice(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        with_history(session)
        first = ask(call_style, session, question(8), "ask1")
        answer(call_style, session, "told1")
        second = ask(call_style, session, question(8) + " Again, please.", "ask2")
        assert recalled(second) == recalled(first)


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("small", ["Thanks!", "Ok, go on.", "Danke schön", "好的"])
def test_small_talk_brings_nothing_back(call_style: CallStyle, small: str) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        with_history(session)
        told(
            call_style,
            session.add_messages,
            [HumanMessage("Thanks, ok.", id="before"), AIMessage("Ok, go on.", id="then")],
        )
        assert not recalled(ask(call_style, session, small, "small"))


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("change", ["forget", "edit", "restart"])
def test_what_was_forgotten_or_edited_stands_nowhere(call_style: CallStyle, change: str, tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "memory.db")
    session = memory.session("s")
    with_history(session)
    first = ask(call_style, session, question(8), "ask1")
    assert "Name8." in "".join(recalled(first))
    answer(call_style, session, "told1")
    if change == "forget":
        told(call_style, session.forget, message_ids=["q8", "a8"])
    elif change == "edit":
        told(call_style, session.add_messages, [HumanMessage(f"{word(80)} belongs to nobody.", id="q8")])
        told(call_style, session.add_messages, [AIMessage("Noted, no name.", id="a8")])
    else:
        memory.close()
        memory = open_memory(tmp_path / "memory.db")
        session = memory.session("s")
    second = ask(call_style, session, question(18), "ask2")
    everything = "".join(str(one.content) for one in second.messages)
    assert "Name18" in everything
    if change != "restart":
        assert "Name8." not in everything
    memory.close()


def test_a_question_of_the_callers_own_leaves_it_where_it_stands() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        with_history(session)
        first = ask(CALL_STYLES[0], session, question(8), "ask1")
        assert "Name22" in "".join(recalled(session.context(question(22), max_tokens=BUDGET)))
        again = session.context(max_tokens=BUDGET)
        assert [as_bytes(one) for one in again.messages] == [as_bytes(one) for one in first.messages]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_branch_shows_nothing_that_was_recalled_or_said_on_the_one_it_left(call_style: CallStyle) -> None:
    sent: list[list[str]] = []

    class Listening(GenericFakeChatModel):
        def _generate(self, messages: list[BaseMessage], *rest: Any, **more: Any) -> Any:
            sent.append([str(one.content) for one in messages])
            return super()._generate(messages, *rest, **more)

    with open_memory() as memory:
        with_history(memory.session("s"))
        model = Listening(messages=iter([AIMessage(f"It is as you noted it, number {at}.") for at in range(9)]))
        agent = create_agent(
            model, [], middleware=[TieredMemoryMiddleware(memory, max_tokens=BUDGET)], checkpointer=InMemorySaver()
        )
        config: Any = {"configurable": {"thread_id": "s"}}

        def turn(number: int, at: Any) -> None:
            state: Any = {"messages": [HumanMessage(question(number))]}
            if call_style == "sync":
                agent.invoke(state, at)
            else:
                asyncio.run(agent.ainvoke(state, at))

        turn(8, config)
        before = agent.get_state(config).config
        turn(18, config)
        turn(28, before)  # as if the second question had never been asked
        turn(38, config)
    first, second, other, after = sent
    assert "Name18." in str(second)
    for request in (other, after):
        assert "Name18." not in str(request)
        assert question(18) not in str(request)
        assert question(8) in str(request)
    assert "Name28." in str(other)
    assert "Name38." in str(after)
    assert after[: len(other)] == other  # on the branch what was recalled stands as it does everywhere
    assert first[0] == other[0]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_small_talk_takes_no_room_from_the_view(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        with_history(session)
        asked = ask(call_style, session, question(8), "ask1")
        answer(call_style, session, "told1")
        for number in range(6):
            said_before = [as_bytes(one) for one in asked.messages]
            asked = ask(call_style, session, "Thanks, ok, go on.", f"small{number}")
            assert [as_bytes(one) for one in asked.messages][: len(said_before)] == said_before
            answer(call_style, session, f"answer{number}")


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_beside_what_was_said_recall_keeps_to_its_share_and_a_callers_question_does_not(call_style: CallStyle) -> None:
    narrow, wide = 0.04, 0.4
    asks = f"Whose are {' '.join(word(10 * number + at) for number in range(6) for at in range(5))}?"
    taken: dict[float, int] = {}
    for share in (narrow, wide):
        settings = quick_settings()
        context = settings.context.model_copy(update={"talk_recall_share": share})
        with open_memory(settings=settings.model_copy(update={"context": context})) as memory:
            session = memory.session("s")
            with_history(session)
            talked = ask(call_style, session, asks, "ask1").section("recall")
            asked = session.context(asks, max_tokens=BUDGET).section("recall")
            assert talked is not None
            assert asked is not None
            taken[share] = talked.tokens
            assert asked.tokens > wide / 4 * BUDGET, "the caller's own question has more"
    assert 0 < taken[narrow] <= narrow * BUDGET < taken[wide]


@pytest.mark.parametrize(("says", "found"), [("Do it.", False), (question(8), True)])
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_beside_work_on_files_recall_is_given_what_was_found(call_style: CallStyle, says: str, *, found: bool) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        with_history(session)
        told(call_style, session.add_messages, [HumanMessage(says, id="asks")])
        for number in range(6):
            path = {"path": f"harbour/part_{number}.py"}
            call = {"name": "read_file", "args": path, "id": f"c{number}"}
            done = ToolMessage("crane", tool_call_id=f"c{number}", id=f"r{number}")
            told(call_style, session.add_messages, [AIMessage("", tool_calls=[call], id=f"w{number}"), done])
        request = Request(
            track="main",
            query=None,
            max_tokens=BUDGET,
            system=None,
            tools=(),
            model=ModelProfile(),
            view="default",
        )
        runtime = session.core.runtime
        inputs = read_inputs(runtime, "s", request)
        assert "files" in inputs.mode
        room = inputs.policy.recall
        assert 0 < room <= NUMBERS.recall_at_work_share * BUDGET if found else room == 0
        assert bool(recalled(told(call_style, session.context, max_tokens=BUDGET))) is found


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_beside_a_long_message_stands_what_answers_it_within_the_share_of_talk(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        with_history(session)
        brief = sum(len(text) for text in recalled(ask(call_style, session, question(8), "ask1")))
        answer(call_style, session, "told1")
        names = " ".join(word(10 * number + at) for number in range(20) for at in range(3))
        long = recalled(ask(call_style, session, f"I sorted them anew: {names}. Tell me what you make of it.", "ask2"))
        assert brief
        assert 0 < sum(len(text) for text in long[1:]) < 4 * BUDGET * 0.25


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        pytest.param("What belongs to whom?", 0.26, 0.5, id="a brief question that much matches"),
        pytest.param("Tell me about {pair}.", 0.06, 0.25, id="a request that something old answers"),
        pytest.param("Whose is the {pair}?", 0.06, 0.25, id="a brief question that little matches"),
        pytest.param(
            "Today I saw {pair}, cats, dogs, birds.", 0.06, 0.19, id="what names something old, and asks nothing"
        ),
        pytest.param("Today I saw cats, dogs, birds, rain and snow.", 0.0, 0.0, id="what names nothing old"),
    ],
)
@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.sweep(2)
def test_recall_is_given_more_room_the_more_a_message_asks_for(
    call_style: CallStyle, text: str, least: float, most: float
) -> None:
    budget = 600
    with open_memory() as memory:
        session = memory.session("s")
        with_history(session, turns=200)
        text = text.format(pair=f"{word(80)} {word(81)}")
        told(call_style, session.add_messages, [HumanMessage(text, id="ask")])
        required = read_required(session.core.runtime, ref_of(session), "main", off=frozenset())
        beside = recall_budget_of(session.core.runtime, ref_of(session), "v", required, total=budget, track=None)
        assert beside.share is not None
        assert least <= beside.share <= most
        section = told(call_style, session.context, max_tokens=budget).section("recall")
        assert (section.tokens if section else 0) <= most * budget


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_beside_what_was_said_summaries_leave_most_of_recalls_room_to_quotes(
    call_style: CallStyle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recalling, "NUMBERS", replace(NUMBERS, related_score=0.0))
    quick = quick_settings()
    with open_memory(settings=quick) as memory:
        with_history(memory.session("s"))
        shown = recalled(memory.session("s").context(f"Whose are {word(10)}?", max_tokens=BUDGET))[-1]
        assert "[messages " not in shown, "what rules wrote is sentences of messages that are quoted"
    monkeypatch.setattr(recalling, "RULES", "a model in these tests")
    monkeypatch.setattr(Tree, "has_written", lambda *_: True)
    shares = quick.context.shares.model_copy(update={"level_1_summaries": 0.5})
    context = quick.context.model_copy(update={"shares": shares, "cover_share": 0.01})
    with open_memory(settings=quick.model_copy(update={"context": context})) as memory:
        session = memory.session("s")
        with_history(session)
        asks = f"Whose are {' '.join(word(10 * number + at) for number in range(4) for at in range(2))}?"
        talked = recalled(ask(call_style, session, asks, "ask1"))[-1]
        asked = recalled(session.context(asks, max_tokens=BUDGET))[-1]
        count = session.core.runtime.counter.count_text
        of_talk, of_question = (count(text.partition("[messages ")[2]) for text in (talked, asked))
        quarter = quick.context.talk_recall_share * BUDGET
        assert 0 < of_talk <= 0.2 * quarter
        assert of_talk <= of_question, "a caller's question has their share of the budget"


@pytest.mark.parametrize(
    ("said_before", "asks", "on"),
    [
        ("I would sort them as {of_now}.", "Why as {of_now}?", True),
        ("It is as you noted it then.", "Whose are {of_then}?", False),
        ("I would sort them as {of_now}.", "Whose are {of_then}?", False),
    ],
)
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_message_goes_on_with_the_last_answer_where_nothing_older_matches_it_as_well(
    call_style: CallStyle, said_before: str, asks: str, *, on: bool
) -> None:
    words = {"of_now": " ".join(word(at) for at in range(1500, 1506)), "of_then": " ".join(map(word, range(80, 85)))}
    with open_memory() as memory:
        session = memory.session("s")
        with_history(session)
        before = [HumanMessage("And now?", id="now"), AIMessage(said_before.format(**words), id="it")]
        told(call_style, session.add_messages, before)
        question = asks.format(**words)
        told(call_style, session.add_messages, [HumanMessage(question, id="why")])
        newest = [one.seq for one in entries_of(session)][-3:]
        found = find(session.core.runtime, ref_of(session), question, asked_at=newest[-1])
        judged = judge(found, lambda seq: seq < newest[0])
        assert judged.goes_on is on
        required = read_required(session.core.runtime, ref_of(session), "main", off=frozenset())
        said = recall_budget_of(session.core.runtime, ref_of(session), "v", required, total=BUDGET, track=None)
        assert ((said.share or 0) < session.core.runtime.settings.context.talk_recall_share) is on
        assert (said.share or 0) <= (0.1 if on else 1)


def test_another_track_has_its_own() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        with_history(session)
        ask(CALL_STYLES[0], session, question(8), "ask1")
        other = memory.session("s", track="side")
        other.add_messages([HumanMessage(question(12), id="o1")])
        found = "".join(recalled(other.context(max_tokens=BUDGET)))
        assert "Name12" in found
        assert "Name8." not in found


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True])
async def test_an_agents_requests_begin_with_those_of_the_turn_before(*, is_async: bool) -> None:
    sent: list[list[BaseMessage]] = []

    class Listening(GenericFakeChatModel):
        def _generate(self, messages: list[BaseMessage], *rest: Any, **more: Any) -> Any:
            sent.append(list(messages))
            return super()._generate(messages, *rest, **more)

    with open_memory() as memory:
        with_history(memory.session("s"))
        model = Listening(messages=iter([AIMessage("It is as you noted it then.") for _ in range(6)]))
        agent = create_agent(
            model, [], middleware=[TieredMemoryMiddleware(memory, max_tokens=BUDGET)], checkpointer=InMemorySaver()
        )
        config: Any = {"configurable": {"thread_id": "s"}}
        for number in (8, 18, 28):
            state: Any = {"messages": [HumanMessage(question(number))]}
            await (agent.ainvoke(state, config) if is_async else _in_thread(agent, state, config))
    texts = [[str(one.content) for one in request] for request in sent]
    assert all(any("<recalled>" in text for text in request) for request in texts)
    assert texts[1][: len(texts[0])] == texts[0]


async def _in_thread(agent: Any, state: Any, config: Any) -> Any:
    return agent.invoke(state, config)


def test_during_a_tool_loop_what_stands_stays() -> None:
    with open_memory(settings=quick_settings(messages=8)) as memory:
        session = memory.session("s")
        with_history(session)
        first = ask(CALL_STYLES[0], session, question(8), "ask1")
        answer(CALL_STYLES[0], session, "told1")
        asked, *loop = tool_turn(900)
        session.add_messages([asked])
        before = session.context(max_tokens=BUDGET, tools=[])
        for place, message in enumerate(loop[:3]):
            session.add_messages([message])
            if place:
                later = session.context(max_tokens=BUDGET)
                assert not check_valid(list(later.messages))
                assert starts_with(later, first) == starts_with(before, first)

"""Where the agent's model condenses, a call may be its last request with a message behind it; else it is as usual."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import ModelRequest, ModelResponse, wrap_model_call
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_openai import ChatOpenAI

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.sessions.last_request import handed_out, keep
from langchain_tiered_memory.settings import Settings
from langchain_tiered_memory.testing import FrozenClock, summarising_model
from tests.agent_builders import built, look_up, open_memory, openai_model, said
from tests.anthropic_server import AnthropicServer, blocks_of
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import SUBJECTS, quick_settings, ref_of, summaries_of
from tests.openai_server import OpenAIServer, Reply, calls, overflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.reports import Event
    from tests.openai_server import Recorded, Scripted

pytestmark = pytest.mark.slow
BEGINS = "The conversation ends above"
BUDGET = 4000
TURNS = 18


class Provider:
    """What the loopback server says: an agent's answers, and summaries where it is asked for them."""

    def __init__(self) -> None:
        self.behind: Scripted | None = None
        """In the place of the summaries that a request with a message behind it gets."""
        self.looks_up = False
        """Whether each turn of the user has a tool called first."""

    def __call__(self, body: dict[str, Any]) -> Scripted:
        if is_behind(body["messages"]) and self.behind is not None:
            return self.behind
        if is_behind(body["messages"]) or is_usual(body["messages"]):
            model = summarising_model()
            assert callable(model.answers)
            return str(model.answers(convert_to_messages(body["messages"])))
        asks = sum(one["role"] == "user" for one in body["messages"])
        if self.looks_up and body["messages"][-1]["role"] == "user":
            return calls("look_up", {"order": asks})
        return spoken(asks)


def is_behind(messages: list[dict[str, Any]]) -> bool:
    return str(messages[-1]["content"]).startswith(BEGINS)


def is_usual(messages: list[dict[str, Any]]) -> bool:
    return str(messages[0]["content"]).startswith("You condense")


def asked(number: int) -> str:
    subject = SUBJECTS[number % len(SUBJECTS)]
    needs = ", ".join(f"{number * 7 + one} bolts of the kind K-{number}{one}" for one in range(14))
    return f"What about the {subject} of order {1000 + number}? It needs {needs}."


def spoken(number: int) -> str:
    checks = "; ".join(f"team {one} checked part P-{number}{one} on Monday" for one in range(14))
    return f"Answer {number}: {checks}. The invoice is F-{number:04d}."


def lazily(**changes: Any) -> Settings:
    return with_condensation(quick_settings(), **changes)


def with_condensation(settings: Settings, **changes: Any) -> Settings:
    return settings.model_copy(update={"condensation": settings.condensation.model_copy(update=changes)})


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def server(provider: Provider) -> Iterator[OpenAIServer]:
    with OpenAIServer(script=provider) as running:
        yield running


def listened(memory: TieredMemory) -> list[Event]:
    heard: list[Event] = []
    memory.subscribe(heard.append)
    return heard


def behind(server: OpenAIServer) -> list[tuple[Recorded, Recorded]]:
    """Requests with a message behind them, each with the agent's last one before it."""
    found: list[tuple[Recorded, Recorded]] = []
    last: Recorded | None = None
    for one in server.requests:
        if is_behind(one.messages):
            assert last is not None
            found.append((one, last))
        elif not is_usual(one.messages):
            last = one
    return found


def usual(server: OpenAIServer) -> list[Recorded]:
    return [one for one in server.requests if is_usual(one.messages)]


def run_agent(
    memory: TieredMemory, model: Any, call_style: CallStyle = "sync", *, turns: int = TURNS, **choices: Any
) -> None:
    agent = built(memory, model, tools=[look_up], max_tokens=BUDGET, recall=False, **choices)
    for number in range(turns):
        said(call_style, agent, asked(number))


def run_session(
    session: Session, model: Any, call_style: CallStyle = "sync", *, turns: int = TURNS, start: int = 0
) -> None:
    """A caller that sends what it was given, as it is."""
    bound = model.bind_tools([look_up])
    for number in range(start, start + turns):
        told(call_style, session.add_messages, [HumanMessage(asked(number), id=f"q{number}")])
        context = told(
            call_style,
            session.context,
            "",
            max_tokens=BUDGET,
            system="You keep the register.",
            tools=[look_up],
            model=bound,
        )
        answer = bound.invoke(context.messages)
        told(call_style, session.add_messages, [answer.model_copy(update={"id": f"a{number}"})])
        told(call_style, session.flush)


def same_request(condensing: Recorded, agent: Recorded) -> None:
    """Byte for byte the agent's, but for one message at its end."""
    assert json.dumps(condensing.messages[:-1]) == json.dumps(agent.messages)
    rest = [{key: value for key, value in one.body.items() if key != "messages"} for one in (condensing, agent)]
    assert json.dumps(rest[0]) == json.dumps(rest[1])
    assert [one["function"]["name"] for one in condensing.body["tools"]] == ["look_up"]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_an_agents_model_is_asked_behind_its_last_request(call_style: CallStyle, server: OpenAIServer) -> None:
    model = openai_model(server)
    with open_memory(model=model, settings=lazily()) as memory:
        run_agent(memory, model, call_style)
        found = behind(server)
        assert found
        for condensing, agent in found:
            same_request(condensing, agent)
        session = memory.session("alice")
        made = [one for one in summaries_of(session) if one.level == 1 and one.model == "loopback"]
        assert made
        assert all(one.text and not one.degraded for one in made)
        assert session.metrics().spent.calls >= len(found)
        assert memory.verify().problems == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_caller_of_a_session_has_the_same(call_style: CallStyle, server: OpenAIServer) -> None:
    model = openai_model(server)
    with open_memory(model=model, settings=lazily()) as memory:
        session = memory.session("s")
        run_session(session, model, call_style)
        found = behind(server)
        assert found
        for condensing, agent in found:
            same_request(condensing, agent)
        assert [one for one in summaries_of(session) if one.level == 1 and one.model == "loopback"]
        assert memory.verify().problems == ()


def test_what_is_written_there_is_what_the_usual_prompt_would_have_given(server: OpenAIServer) -> None:
    texts: list[dict[tuple[int, int], str]] = []
    for choice in ("auto", "never"):
        model = openai_model(server)
        with open_memory(model=model, settings=lazily(on_last_request=choice)) as memory:
            session = memory.session("s")
            server.clear()
            run_session(session, model)
            assert bool(behind(server)) is (choice == "auto")
            made = [one for one in summaries_of(session) if one.level == 1 and one.model == "loopback"]
            texts.append({(one.first_seq, one.last_seq): one.text for one in made})
    assert texts[0].keys() & texts[1].keys()
    same = [texts[0][span] == texts[1][span] for span in texts[0].keys() & texts[1].keys()]
    assert all(same)


def test_a_code_that_stands_in_the_request_is_no_invention(provider: Provider) -> None:
    named: list[str] = []

    def names_the_first_receipt(body: dict[str, Any]) -> Scripted:
        messages, said = body["messages"], str(provider(body))
        if not is_behind(messages):
            return said if is_usual(messages) else f"{said} The receipt is Q-{len(messages) * 7919}."
        named.append(re.findall(r"receipt (?:is )?(Q-\d+)", str(messages[:-1]))[0])
        brief = re.sub(r"(; team \d+ checked part P-\d+ on Monday){10}", "", said)  # so that nothing is cut
        return brief.replace("\n</summary>", f"\n- The receipt {named[-1]} waits.\n</summary>")

    with OpenAIServer(script=names_the_first_receipt) as server:
        model = openai_model(server)
        with open_memory(model=model, settings=lazily()) as memory:
            session = memory.session("s")
            run_session(session, model, turns=2 * TURNS)
            lines = "\n".join(one.text for one in summaries_of(session)).splitlines()
    assert len(named) > 1
    assert [line for line in lines if " waits" in line]
    assert not [line for line in lines if "not in the source" in line]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(calls("look_up", {"order": 1}), id="a tool call"),
        pytest.param(Reply(text="I would rather talk about the weather."), id="garbage"),
        pytest.param(Reply(text=""), id="nothing"),
        pytest.param(overflow(8000, 9000), id="a refusal"),
    ],
)
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_cannot_be_used_is_asked_for_the_usual_way_and_told(
    reply: Scripted, call_style: CallStyle, server: OpenAIServer, provider: Provider
) -> None:
    provider.behind = reply
    model = openai_model(server)
    with open_memory(model=model, settings=lazily()) as memory:
        heard = listened(memory)
        session = memory.session("s")
        run_session(session, model, call_style)
        told_of = [one for one in heard if one.name == EventName.CONDENSED_APART]
        assert len(behind(server)) == len(told_of) == 1  # and the next calls do not try it
        assert told_of[0].session_id == "s"
        assert usual(server)
        assert [one for one in summaries_of(session) if one.level == 1 and one.model == "loopback" and not one.degraded]
        assert memory.verify().problems == ()


def test_a_part_that_cannot_be_used_is_asked_for_alone(server: OpenAIServer, provider: Provider) -> None:
    good = provider.__call__

    def without_the_first(body: dict[str, Any]) -> Scripted:
        answer = good(body)
        if is_behind(body["messages"]):
            assert isinstance(answer, str)
            return answer.replace("<summary 1>", "<summary 99>", 1)
        return answer

    server.play(without_the_first)
    model = openai_model(server)
    with open_memory(model=model, settings=lazily()) as memory:
        session = memory.session("s")
        run_session(session, model)
        alone = [one for one in server.requests if one.text.count("<part ") == 1 and "<stretch " not in one.text]
        assert behind(server)
        assert alone
        assert memory.verify().problems == ()


def prepared(memory: TieredMemory, model: Any, server: OpenAIServer) -> Session:
    """A session whose next flush condenses behind its last request, if nothing comes in between."""
    session, bound = memory.session("s"), model.bind_tools([look_up])
    for number in range(TURNS):
        session.flush()  # rules write what is due, and nothing is wanted of a model yet
        session.add_messages([HumanMessage(asked(number), id=f"q{number}")])
        context = session.context("", max_tokens=BUDGET, tools=[look_up], model=bound)
        session.add_messages([bound.invoke(context.messages).model_copy(update={"id": f"a{number}"})])
        if memory.core.runtime.store.tree.ready(ref_of(session), now=1e12):
            server.clear()
            return session
    msg = "no view came near its end"
    raise AssertionError(msg)


def _nothing(session: Session, clock: FrozenClock) -> None:
    del session, clock


def _edit(session: Session, clock: FrozenClock) -> None:
    del clock
    session.add_messages([HumanMessage("It was another order.", id="q1")])


def _forget(session: Session, clock: FrozenClock) -> None:
    del clock
    session.forget(message_ids=["q1"])


def _wait(session: Session, clock: FrozenClock) -> None:
    del session
    clock.advance(301)


@pytest.mark.parametrize(("change", "is_used"), [(_nothing, True), (_edit, False), (_forget, False), (_wait, False)])
def test_a_request_is_used_only_while_it_is_warm_and_true(change: Any, server: OpenAIServer, *, is_used: bool) -> None:
    clock, model = FrozenClock(1_700_000_000), openai_model(server)
    with open_memory(model=model, settings=lazily(foreground_seconds=0), clock=clock) as memory:
        session = prepared(memory, model, server)
        change(session, clock)
        session.flush()
        assert bool([one for one in server.requests if is_behind(one.messages)]) is is_used
        assert memory.verify().problems == ()


def test_what_is_forgotten_does_not_stay_in_memory(server: OpenAIServer) -> None:
    model = openai_model(server)
    with open_memory(model=model, settings=lazily(foreground_seconds=0)) as memory:
        session = prepared(memory, model, server)
        kept = memory.core.runtime.last_requests
        assert kept.warm("s", now=memory.core.runtime.now(), lifetime_seconds=1e9) is not None
        session.forget(message_ids=["q1"])
        assert kept.warm("s", now=memory.core.runtime.now(), lifetime_seconds=1e9) is None


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(lazily(on_last_request="never"), id="never"),
        pytest.param(
            lazily().model_copy(update={"room": Settings().room.model_copy(update={"cached_price": 1.0})}),
            id="a cache that costs as much",
        ),
    ],
)
def test_where_it_does_not_pay_the_usual_call_is_made(settings: Settings, server: OpenAIServer) -> None:
    model = openai_model(server)
    with open_memory(model=model, settings=settings) as memory:
        run_session(memory.session("s"), model)
        assert usual(server)
        assert not behind(server)


def test_another_model_of_the_same_name_is_asked_where_that_is_wanted(server: OpenAIServer) -> None:
    for choice, is_used in (("auto", False), ("always", True)):
        server.clear()
        with open_memory(model=openai_model(server), settings=lazily(on_last_request=choice)) as memory:
            run_session(memory.session("s"), openai_model(server))
            assert bool(behind(server)) is is_used


def test_an_agent_that_must_call_a_tool_is_not_asked_behind_its_request(server: OpenAIServer) -> None:
    model = openai_model(server)
    with open_memory(model=model, settings=lazily()) as memory:
        session = memory.session("s")
        bound = model.bind_tools([look_up], tool_choice="required")
        for number in range(TURNS):
            session.add_messages([HumanMessage(asked(number), id=f"q{number}")])
            session.context("", max_tokens=BUDGET, tools=[look_up], model=bound)
            session.add_messages([AIMessage(spoken(number), id=f"a{number}")])
            session.flush()
        assert usual(server)
        assert not behind(server)


class BindsNothing(ChatOpenAI):
    """A model of a package that takes no tools."""

    def bind_tools(self, *args: Any, **options: Any) -> Any:
        del args, options
        message = "this model takes no tools"
        raise NotImplementedError(message)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_model_that_cannot_bind_the_tools_is_told_of(call_style: CallStyle, server: OpenAIServer) -> None:
    model = BindsNothing(base_url=server.base_url, api_key="none", model="loopback")
    with open_memory(model=model, settings=lazily()) as memory:
        events, session = listened(memory), memory.session("s")
        told(call_style, session.add_messages, [HumanMessage(asked(1), id="q1")])
        context = told(call_style, session.context, "", max_tokens=BUDGET, tools=[look_up], model=model)
        assert context.messages[-1].content == asked(1)
        (event,) = [one for one in events if one.name == "request_not_kept"]
        assert "takes no tools" in event.reason
        assert event.session_id == "s"


def test_a_request_of_a_session_that_cannot_be_read_is_not_kept_and_that_is_told(
    server: OpenAIServer, tmp_path: Path
) -> None:
    model = openai_model(server)
    with open_memory(str(tmp_path / "m.db"), model=model, settings=lazily()) as memory:
        events, session, runtime = listened(memory), memory.session("s"), memory.core.runtime
        session.add_messages([HumanMessage(asked(1), id="q1")])
        request = handed_out(model, [HumanMessage(asked(1))], tokens=10, epoch=ref_of(session).epoch)
        with sqlite3.connect(tmp_path / "m.db") as elsewhere:
            elsewhere.execute("ALTER TABLE ltm_sessions RENAME TO ltm_sessions_away")
        keep(runtime, "s", request, was_seen=True)
        with sqlite3.connect(tmp_path / "m.db") as elsewhere:
            elsewhere.execute("ALTER TABLE ltm_sessions_away RENAME TO ltm_sessions")
        assert runtime.last_requests.warm("s", now=runtime.now(), lifetime_seconds=1e9) is None
        assert [one.name for one in events if one.name == "request_not_kept"] == ["request_not_kept"]
        keep(runtime, "s", request, was_seen=True)
        assert runtime.last_requests.warm("s", now=runtime.now(), lifetime_seconds=1e9) is not None


def test_a_caller_who_sends_something_else_is_not_taken_at_his_word(server: OpenAIServer) -> None:
    model = openai_model(server)
    with open_memory(model=model, settings=lazily()) as memory:
        session, bound = memory.session("s"), model.bind_tools([look_up])
        for number in range(TURNS):
            session.add_messages([HumanMessage(asked(number), id=f"q{number}")])
            session.context("", max_tokens=BUDGET, tools=[look_up], model=bound)
            answer = bound.invoke([HumanMessage(asked(number))])
            session.add_messages([answer.model_copy(update={"id": f"a{number}"})])
            session.flush()
        assert usual(server)
        assert not behind(server)


def reminded(messages: list[BaseMessage]) -> list[BaseMessage]:
    return [*messages, HumanMessage("Be brief.")]


def masked(messages: list[BaseMessage]) -> list[BaseMessage]:
    """The arguments of calls say nothing any more; what is said stays."""

    def without(call: Any) -> Any:
        return {**call, "args": dict.fromkeys(call["args"], "hidden")}

    return [
        one.model_copy(update={"tool_calls": [without(call) for call in one.tool_calls]})
        if isinstance(one, AIMessage)
        else one
        for one in messages
    ]


@pytest.mark.parametrize("change", [reminded, masked])
def test_messages_changed_behind_the_middleware_are_not_taken_for_what_was_sent(
    server: OpenAIServer, provider: Provider, change: Callable[[list[BaseMessage]], list[BaseMessage]]
) -> None:
    from langchain.agents.middleware import wrap_model_call  # noqa: PLC0415 - of this test alone

    @wrap_model_call
    def changing(request: Any, handler: Any) -> Any:
        return handler(request.override(messages=change(request.messages)))

    provider.looks_up = change is masked
    model = openai_model(server)
    with open_memory(model=model, settings=lazily()) as memory:
        run_agent(memory, model, behind=[changing])
        assert usual(server)
        assert not behind(server)


class CachingServer(AnthropicServer):
    """Says what it read from its cache: all up to the last breakpoint, or nothing where there is none."""

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, answer = super().reply(body)
        blocks = blocks_of(body)
        ends = [at + 1 for at, one in enumerate(blocks) if "cache_control" in one]
        cached = len(json.dumps(blocks[: max(ends, default=0)])) // 4
        rest = len(json.dumps(blocks)) // 4 - cached
        answer["usage"] = {"input_tokens": rest, "output_tokens": 50, "cache_read_input_tokens": cached}
        return status, answer


@pytest.mark.parametrize("hints", [True, False])
def test_anthropics_cache_counts_where_breakpoints_are_set(*, hints: bool) -> None:
    anthropic = pytest.importorskip("langchain_anthropic")

    def answer(body: dict[str, Any]) -> list[dict[str, Any]]:
        last = plain_text(body["messages"][-1]["content"])
        if BEGINS in last or str(body.get("system", "")).startswith("You condense"):
            given = [{"role": one["role"], "content": plain_text(one["content"])} for one in body["messages"]]
            if BEGINS in last:  # Anthropic's API has what a user says in a row as one message
                said_before, _, asked_for = last.partition(BEGINS)
                given[-1:] = [
                    {"role": "user", "content": said_before.strip()},
                    {"role": "user", "content": BEGINS + asked_for},
                ]
            model = summarising_model()
            assert callable(model.answers)
            return [{"type": "text", "text": model.answers(convert_to_messages(given)) or "-"}]
        return [{"type": "text", "text": spoken(len(body["messages"]))}]

    with CachingServer(answer) as server:
        model = anthropic.ChatAnthropic(
            model="claude-loopback", api_key="none", base_url=server.url, max_tokens=4000, max_retries=0
        )
        with open_memory(model=model, settings=lazily()) as memory:
            run_agent(memory, model, cache_hints=hints)
        found = [at for at, body in enumerate(server.bodies) if BEGINS in plain_text(body["messages"][-1]["content"])]
        assert bool(found) is hints
        for at in found:
            before = next(one for one in reversed(server.bodies[:at]) if one.get("tools") and is_agents(one))
            blocks = blocks_of(server.bodies[at])
            assert blocks[: len(blocks_of(before))] == blocks_of(before)
            assert len(blocks) == len(blocks_of(before)) + 1


def plain_text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(str(one.get("text", "")) for one in content)


def is_agents(body: dict[str, Any]) -> bool:
    return BEGINS not in plain_text(body["messages"][-1]["content"])


def test_a_condensing_request_is_called_with_what_the_agent_chose_for_its_own(server: OpenAIServer) -> None:
    @wrap_model_call
    def coolly(request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        return handler(request.override(model_settings={"temperature": 0}))

    model = openai_model(server)
    with open_memory(model=model, settings=lazily()) as memory:
        run_agent(memory, model, before=[coolly])
        found = behind(server)
        assert found
        for condensing, agent in found:
            same_request(condensing, agent)
            assert condensing.body["temperature"] == 0

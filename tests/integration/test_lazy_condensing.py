"""A model is asked for a summary when a view needs it, several in one call; rules write it at once."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.models.token_counters import EstimatingCounter
from langchain_tiered_memory.summaries.tree import condense
from langchain_tiered_memory.testing import FrozenClock, ScriptedModel, in_parts, summarising_model
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import conversation, open_memory, quick_settings, ref_of, store_of, summaries_of, turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.settings import Settings

pytestmark = pytest.mark.slow
NARROW = 1500
"""Tokens of a view that a few turns fill."""
FITTING = 14
"""Turns that fit into such a view: nobody need look at each of them."""
WIDE = 100_000
_PARTS = re.compile(r"^<part (\d+) ", re.MULTILINE)
_WORDS = re.compile(r"^<part \d+ [^>\n]*\bwords=(\d+)", re.MULTILINE)
_TEXTS = re.compile(r"^<part \d+ [^>\n]*>\n<m [^>\n]*>(.*)$", re.MULTILINE)
"""The first message of each part of level 1."""


def lazy_memory(model: ScriptedModel | list[ScriptedModel], where: Path | None = None, **choices: Any) -> TieredMemory:
    """A memory whose clock stands still unless a test has one."""
    return open_memory(where, model=model, **({"clock": FrozenClock()} | choices))


def talk(
    session: Session, turns: int, *, start: int = 0, max_tokens: int = NARROW, call_style: CallStyle = "sync"
) -> None:
    """Speak, ask for a context as an agent does before it answers, and let what is due be done."""
    fits = min(turns, FITTING) if start == 0 else 0
    if fits:
        told(call_style, session.add_messages, conversation(fits))
    for number in range(start + fits, start + turns):
        told(call_style, session.add_messages, turn(number))
        told(call_style, session.context, "", max_tokens=max_tokens)
        told(call_style, session.flush)


def by_rules(session: Session, *, level: int | None = None) -> list[str]:
    return [one.id for one in summaries_of(session) if one.by_rules and level in (None, one.level)]


def by_model(session: Session, *, level: int | None = None) -> list[str]:
    found = summaries_of(session)
    return [one.id for one in found if not one.by_rules and one.model != "extractive" and level in (None, one.level)]


def tokens_of(prompt: Sequence[BaseMessage]) -> int:
    counter = EstimatingCounter()
    return sum(counter.count_message(message) for message in prompt)


def answering(change: Callable[[str], str]) -> ScriptedModel:
    """A model that answers well, with its answers to calls for several changed."""
    good = summarising_model()

    def answer(messages: Sequence[BaseMessage]) -> str:
        assert callable(good.answers)
        said: str = good.answers(messages)
        return change(said) if len(_PARTS.findall(str(messages[-1].text))) > 1 else said

    return ScriptedModel(answers=answer)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_history_that_fits_its_window_asks_no_model_and_has_every_summary(call_style: CallStyle) -> None:
    model = summarising_model()
    with lazy_memory(model) as memory:
        session = memory.session("s")
        talk(session, 40, max_tokens=WIDE, call_style=call_style)
        made = summaries_of(session)
        assert model.calls == 0
        assert {one.level for one in made} >= {1, 2, 3}
        assert all(one.by_rules and one.text and not one.degraded for one in made)
        assert told(call_style, session.search, "bolts team harbour", levels=[1])
        assert memory.verify().problems == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_view_that_is_condensed_shows_what_the_model_wrote_in_few_calls(call_style: CallStyle) -> None:
    model = summarising_model()
    with lazy_memory(model) as memory:
        session = memory.session("s")
        talk(session, 60, call_style=call_style)
        context = told(call_style, session.context, "", max_tokens=NARROW)
        shown = {one.id: one for one in summaries_of(session)}
        assert context.summary_ids
        assert not [one for one in context.summary_ids if shown[one].by_rules and shown[one].level == 1]
        written = len(by_model(session, level=1))
        assert written >= 20
        assert model.calls * 4 <= written
        assert memory.verify().problems == ()


def from_level(level: int) -> Settings:
    settings = quick_settings()
    condensation = settings.condensation.model_copy(update={"model_from_level": level})
    return settings.model_copy(update={"condensation": condensation})


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("lowest", [2, 3])
@pytest.mark.sweep(1)
def test_rules_write_the_levels_below_the_lowest_of_a_model(call_style: CallStyle, lowest: int) -> None:
    model, whole = summarising_model(), summarising_model()
    with lazy_memory(model, settings=from_level(lowest)) as memory:
        session = memory.session("s")
        talk(session, 60, call_style=call_style)
        made = summaries_of(session)
        below, above = [one for one in made if one.level < lowest], by_model(session)
        assert above
        assert {one.model for one in below} == {"extractive"}
        assert not any(one.by_rules or one.degraded for one in below)
        written = [one for one in made if one.id in above]
        assert all(one.level >= lowest for one in written)
        # What it reads of a summary that it merges is what rules wrote.
        first = min((one for one in written if one.level == lowest), key=lambda one: one.first_seq)
        assert first.sources[0] in {one.id for one in below}
        context = told(call_style, session.context, "", max_tokens=NARROW)
        assert context.summary_ids
        assert memory.verify().problems == ()
    with lazy_memory(whole) as memory:
        talk(memory.session("s"), 60)
    assert 4 * sum(map(tokens_of, model.prompts)) < 3 * sum(map(tokens_of, whole.prompts))


def test_a_memory_that_asked_for_every_level_goes_on_from_a_higher_one(tmp_path: Path) -> None:
    with lazy_memory(summarising_model(), tmp_path / "m.db") as memory:
        talk(memory.session("s"), 30)
        before = by_model(memory.session("s"), level=1)
        assert before
    with lazy_memory(summarising_model(), tmp_path / "m.db", settings=from_level(2)) as memory:
        session = memory.session("s")
        talk(session, 60, start=30)
        assert set(before) <= set(by_model(session, level=1))
        assert len(by_model(session, level=2)) > 2
        newest = max((one for one in summaries_of(session) if one.level == 1), key=lambda one: one.first_seq)
        assert newest.model == "extractive"
        assert not newest.by_rules
        assert memory.verify().problems == ()


LONG = "\n".join(f"row {number} of the register: crane {number * 17} at berth {number % 9}" for number in range(100))


def run_of_tools(number: int) -> list[BaseMessage]:
    """A call that carries a long text, and a long result, with something of its own in the middle of each."""
    lines = LONG.split("\n")
    middle = f"the sealed berth of order {1000 + number} is B-{number:04d}"
    text = "\n".join([*lines[:50], middle, *lines[50:]])
    call = {"name": "write_file", "args": {"path": f"harbour/{number}.txt", "content": text}, "id": f"c{number}"}
    return [
        HumanMessage(f"Write down order {1000 + number} for the harbour office."),
        AIMessage(f"I write the register of order {1000 + number} now.", tool_calls=[call]),
        ToolMessage(text, tool_call_id=f"c{number}"),
    ]


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("eager", [False, True])
def test_a_model_is_shown_head_and_tail_of_what_tools_give_and_take(call_style: CallStyle, *, eager: bool) -> None:
    prompts = {}
    for tool_tokens in (100, None):
        model = summarising_model()
        settings = quick_settings()
        condensation = settings.condensation.model_copy(update={"tool_tokens": tool_tokens, "eager": eager})
        with lazy_memory(model, settings=settings.model_copy(update={"condensation": condensation})) as memory:
            session = memory.session("s")
            for number in range(12):
                told(call_style, session.add_messages, run_of_tools(number))
                told(call_style, session.context, "", max_tokens=9000)
                told(call_style, session.flush)
            assert by_model(session, level=1)
            prompts[tool_tokens] = ["\n".join(str(one.text) for one in prompt) for prompt in model.prompts]
            # Nothing of it is lost: it is found, and stands there whole.
            hits = told(call_style, session.search, "sealed berth of order 1003")
            assert any("berth of order 1003 is B-0003" in hit.text for hit in hits)
            assert memory.verify().problems == ()
    short, whole = prompts[100], prompts[None]
    # The middle of the first output is left out; of later ones, what the first has not is shown.
    assert not any("the sealed berth of order 1000 is" in prompt for prompt in short)
    assert any("the sealed berth" in prompt for prompt in whole)
    assert any("I write the register of order 1000 now." in prompt and "row 0 of" in prompt for prompt in short)
    assert any("row 99 of" in prompt and "the middle is left out" in prompt for prompt in short)
    assert 2 * sum(map(len, short)) < sum(map(len, whole))


def test_one_window_that_needs_it_is_enough_and_another_is_not_asked_for() -> None:
    model = summarising_model()
    with lazy_memory(model) as memory:
        narrow, wide = memory.session("narrow"), memory.session("wide")
        for number in range(45):
            for session, tokens in ((narrow, NARROW), (wide, WIDE)):
                session.add_messages(turn(number))
                session.context("", max_tokens=tokens)
        memory.flush()
        assert by_model(narrow)
        assert not by_model(wide)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_restart_asks_no_model(call_style: CallStyle, tmp_path: Path) -> None:
    with lazy_memory(summarising_model(), tmp_path / "m.db") as memory:
        talk(memory.session("s"), 40, call_style=call_style)
    again = summarising_model()
    with lazy_memory(again, tmp_path / "m.db") as memory:
        session = memory.session("s")
        told(call_style, session.flush)
        told(call_style, session.context, "", max_tokens=NARROW)
        told(call_style, session.flush)
        assert again.calls == 0


def test_eager_asks_at_once_one_call_a_summary() -> None:
    model = summarising_model()
    with open_memory(None, model=model, settings=quick_settings(eager=True)) as memory:
        session = memory.session("s")
        session.add_messages(conversation(20))
        session.flush()
        assert model.calls == len(summaries_of(session))
        assert not by_rules(session)


def test_eager_takes_up_what_rules_wrote_before(tmp_path: Path) -> None:
    with lazy_memory(summarising_model(), tmp_path / "m.db") as memory:
        memory.session("s").add_messages(conversation(20))
        memory.flush()
        assert by_rules(memory.session("s"))
    model = summarising_model()
    with open_memory(tmp_path / "m.db", model=model, settings=quick_settings(eager=True)) as memory:
        memory.flush()
        session = memory.session("s")
        assert not by_rules(session)
        assert model.calls < len(summaries_of(session)) / 2


def test_without_a_model_nothing_waits_for_one() -> None:
    with open_memory(None, settings=quick_settings()) as memory:
        session = memory.session("s")
        talk(session, 30)
        assert not by_rules(session)
        assert {one.model for one in summaries_of(session)} == {"extractive"}


def test_what_one_call_took_is_split_over_its_parts_and_adds_up() -> None:
    model = summarising_model()
    with lazy_memory(model) as memory:
        session = memory.session("s")
        talk(session, 40)
        spent = [one.spent for one in summaries_of(session)]
        asked = sum(len(str(message.text)) for prompt in model.prompts for message in prompt)
        assert sum(one.calls for one in spent) == model.calls == memory.engine.metrics().calls
        assert abs(sum(one.input_tokens for one in spent) - asked / 4) <= 4 * model.calls


def test_the_instructions_of_every_call_for_several_are_the_same_bytes() -> None:
    model = summarising_model()
    with lazy_memory(model) as memory:
        talk(memory.session("s"), 60)
    several = [prompt for prompt in model.prompts if len(_PARTS.findall(str(prompt[-1].text))) > 1]
    assert len(several) > 2
    assert len({str(prompt[0].text) for prompt in several}) == 1


SLOPPY: dict[str, Callable[[str], str]] = {
    "no closing tags": lambda said: said.replace("</summary>", ""),
    "in a code fence, behind a word": lambda said: f"Sure, here they are:\n```\n{said}\n```",
    "as headings": lambda said: re.sub(r"<summary (\d+)>", r"### Part \1", said).replace("</summary>", ""),
    "tags with attributes": lambda said: re.sub(r"<summary (\d+)>", r'<Summary part="\1">', said),
    "thinking before": lambda said: f"<think>which parts?</think>\n{said}",
}


@pytest.mark.parametrize("how", SLOPPY)
def test_sloppy_answers_are_taken_apart_all_the_same(how: str) -> None:
    model = answering(SLOPPY[how])
    with lazy_memory(model) as memory:
        session = memory.session("s")
        talk(session, 40)
        assert model.calls * 4 <= len(by_model(session, level=1))


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_part_that_is_missing_is_asked_for_alone(call_style: CallStyle) -> None:
    model = answering(lambda said: said.replace("<summary 2>", "<summary 99>"))
    with lazy_memory(model) as memory:
        session = memory.session("s")
        talk(session, 30, call_style=call_style)
        alone = [prompt for prompt in model.prompts if len(_PARTS.findall(str(prompt[-1].text))) == 1]
        assert alone
        assert len(alone) < model.calls
        assert not [one for one in summaries_of(session) if one.error or one.degraded]
        assert memory.verify().problems == ()


def test_a_model_that_never_answers_in_parts_is_soon_asked_for_one_at_a_time() -> None:
    model = answering(lambda _: "## Overview\nThey spoke of orders, bolts and invoices, of teams and the harbour.")
    with lazy_memory(model) as memory:
        session = memory.session("s")
        talk(session, 60)
        asked = [len(_PARTS.findall(str(prompt[-1].text))) for prompt in model.prompts]
        several = [parts for parts in asked if parts > 1]
        assert len(several) == 3
        assert len(by_model(session, level=1)) > 10


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_after_an_answer_of_which_nothing_can_be_used_each_is_asked_for_alone(call_style: CallStyle) -> None:
    good = summarising_model()
    refused: list[int] = []

    def answer(messages: Sequence[BaseMessage]) -> str:
        assert callable(good.answers)
        parts = len(_PARTS.findall(str(messages[-1].text)))
        if parts > 1 and not refused:
            refused.append(parts)
            return "I would rather not."
        return good.answers(messages)

    model = ScriptedModel(answers=answer)
    with lazy_memory(model) as memory:
        session = memory.session("s")
        talk(session, 60, call_style=call_style)
        asked = [len(_PARTS.findall(str(prompt[-1].text))) for prompt in model.prompts]
        assert asked.count(1) >= refused[0]
        assert max(asked[-3:]) > 1, "and several again in the next call"
        assert len(by_model(session, level=1)) > 10
        assert memory.verify().problems == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_who_says_nothing_of_some_parts_is_asked_for_several_all_the_same_and_for_none_again_and_again(
    call_style: CallStyle,
) -> None:
    good, asked = summarising_model(), Counter[str]()

    def answer(messages: Sequence[BaseMessage]) -> str:
        assert callable(good.answers)
        write = good.answers

        def one(prompt: str) -> str:
            first = re.search(r"order \d+", prompt)
            if first is None or int(first[0].removeprefix("order ")) % 3:
                return str(write([HumanMessage(prompt)]))
            asked[first[0]] += 1
            return "Nothing of note was said."

        return in_parts(messages, one) or one(str(messages[1].text))

    model = ScriptedModel(answers=answer)
    with lazy_memory(model) as memory:
        session = memory.session("s")
        talk(session, 60, call_style=call_style)
        several = [len(_PARTS.findall(str(prompt[-1].text))) for prompt in model.prompts]
        assert asked
        assert max(asked.values()) <= 2
        assert sum(parts > 1 for parts in several[len(several) // 2 :]) > 2, "still asked for several at the end"


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize(
    "why",
    [
        {"finish_reason": "length"},
        {"stop_reason": "max_tokens"},
        {"incomplete_details": {"reason": "max_output_tokens"}},
    ],
    ids=["OpenAI", "Anthropic", "Responses"],
)
def test_of_an_answer_that_ended_too_soon_the_whole_parts_stay_and_only_the_rest_is_asked_for(
    call_style: CallStyle, why: dict[str, Any]
) -> None:
    good = summarising_model()
    cut: list[tuple[int, list[str]]] = []

    def answer(messages: Sequence[BaseMessage]) -> Any:
        assert callable(good.answers)
        said: str = good.answers(messages)
        parts = _PARTS.findall(str(messages[-1].text))
        if len(parts) < 6:
            return said
        end = said.index("<summary 4>") + 40
        cut.append((len(model.prompts) - 1, _TEXTS.findall(str(messages[-1].text))))
        return AIMessage(said[:end], response_metadata=why)

    model = ScriptedModel(answers=answer)
    with lazy_memory(model) as memory:
        session = memory.session("s")
        talk(session, 40, call_style=call_style)
        assert cut
        for number, texts in cut:
            rest = _TEXTS.findall(str(model.prompts[number + 1][-1].text))
            assert rest == texts[3:]
        assert not [one for one in summaries_of(session) if one.error or one.degraded]
        assert not [one for one in summaries_of(session) if one.model != "extractive" and not one.text.strip()]
        took = sum(one.spent.calls for one in summaries_of(session))
        assert took == model.calls


@pytest.mark.parametrize("limit", [400, 600, 2000])
def test_a_call_asks_for_no_more_than_the_model_may_write(limit: int) -> None:
    told = summarising_model()
    model = ScriptedModel(answers=told.answers, profile={"max_input_tokens": 32_000, "max_output_tokens": limit})
    with lazy_memory(model) as memory:
        session = memory.session("s")
        talk(session, 40)
        asked = [[int(size) for size in _WORDS.findall(str(prompt[-1].text))] for prompt in model.prompts]
        assert any(asked)
        assert all(sum(sizes) <= limit for sizes in asked if len(sizes) > 1)
        assert len(by_model(session, level=1)) > 5


def test_another_model_takes_over_a_call_for_several() -> None:
    down, second = ScriptedModel(answers=[RuntimeError("503")]), summarising_model()
    with lazy_memory([down, second]) as memory:
        session = memory.session("s")
        talk(session, 40)
        assert len(by_model(session, level=1)) > 10
        assert second.calls * 4 <= len(by_model(session, level=1))
        assert not [one for one in summaries_of(session) if one.degraded]


def test_messages_that_a_provider_refuses_to_read_hold_back_no_others() -> None:
    clock, good = FrozenClock(), summarising_model()

    def answer(messages: Sequence[BaseMessage]) -> Any:
        assert callable(good.answers)
        filtered = "of order 1003" in str(messages[-1].text)
        return RuntimeError("400: filtered, modify your prompt") if filtered else good.answers(messages)

    with lazy_memory(ScriptedModel(answers=answer), clock=clock) as memory:
        session = memory.session("s")
        talk(session, 40)
        for _ in range(3):
            clock.advance(60)
            session.flush()
        told_by_rules = [one for one in summaries_of(session)[:10] if one.by_rules]
        assert [(one.degraded, "F-0003" in one.text) for one in told_by_rules] == [(True, True)]


def test_a_model_that_stays_down_leaves_what_rules_wrote_marked_as_provisional_and_is_asked_again() -> None:
    clock = FrozenClock()
    mood = {"down": True}
    good = summarising_model()

    def answer(messages: Sequence[BaseMessage]) -> Any:
        assert callable(good.answers)
        return RuntimeError("503") if mood["down"] else good.answers(messages)

    with lazy_memory(ScriptedModel(answers=answer), clock=clock) as memory:
        session = memory.session("s")
        for number in range(40):
            session.add_messages(turn(number))
            session.context("", max_tokens=NARROW)
            session.flush()
            clock.advance(600)
        assert by_rules(session, level=1)
        assert [one for one in summaries_of(session) if one.degraded]
        assert all(one.text for one in summaries_of(session))
        mood["down"] = False
        for _ in range(8):
            clock.advance(4000)
            session.flush()
        session.context("", max_tokens=NARROW)
        assert not [one for one in summaries_of(session) if one.degraded]
        assert memory.verify().problems == ()


def test_the_bound_on_calls_holds_back_a_call_for_several_and_counts_no_attempt() -> None:
    clock = FrozenClock()
    settings = quick_settings()
    bounded = settings.model_copy(
        update={"condensation": settings.condensation.model_copy(update={"max_calls_per_minute": 1})}
    )
    model = summarising_model()
    heard: list[str] = []
    with lazy_memory(model, clock=clock, settings=bounded) as memory:
        memory.subscribe(lambda event: heard.append(event.name))
        session = memory.session("s")
        talk(session, 60)
        assert model.calls == 1
        assert EventName.CONDENSATION_WAITS in heard
        assert not [one for one in summaries_of(session) if one.degraded]
        clock.advance(61)
        session.flush()
        assert model.calls == 2


def test_an_edit_below_what_rules_wrote_wants_no_model() -> None:
    model = summarising_model()
    with lazy_memory(model) as memory:
        session = memory.session("s")
        talk(session, 20, max_tokens=WIDE)
        session.add_messages([turn(3)[1].model_copy(update={"content": "The pilot of order 1003 needs 99 bolts."})])
        session.flush()
        assert model.calls == 0
        assert [one for one in summaries_of(session) if one.stale]


def test_a_view_in_the_foreground_waits_for_the_model_as_it_did() -> None:
    """Nothing runs in the background and nobody flushes: the context that needs them has its summaries written."""
    model = summarising_model()
    with lazy_memory(model) as memory:
        session = memory.session("s")
        session.add_messages(conversation(60))
        context = session.context("", max_tokens=NARROW)
        shown = {one.id: one for one in summaries_of(session)}
        assert [one for one in context.summary_ids if not shown[one].by_rules]
        assert model.calls


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_view_in_the_foreground_shows_at_once_what_the_model_writes_up_to_its_border(
    call_style: CallStyle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What rules wrote of a chunk that ends behind what was foreseen would be written later, and the view made anew."""
    monkeypatch.setattr(condense, "FILL", 2)  # no call takes much of what follows besides
    with lazy_memory(summarising_model()) as memory:
        session = memory.session("s")
        for number in range(40):
            told(call_style, session.add_messages, turn(number))
            context = told(call_style, session.context, "", max_tokens=1200)
            shown = {one.id: one for one in summaries_of(session) if one.level == 1}
            assert not [one for one in context.summary_ids if one in shown and shown[one].by_rules], number


def test_the_background_is_woken_for_what_a_view_needs() -> None:
    model = summarising_model()
    with lazy_memory(model, settings=quick_settings(background=True)) as memory:
        session = memory.session("s")
        session.add_messages(conversation(60))
        session.flush()
        assert model.calls == 0
        session.context("", max_tokens=NARROW)
        session.flush()
        assert model.calls > 0
        assert by_model(session)


def test_a_crash_between_two_commits_repeats_only_what_was_not_committed(tmp_path: Path) -> None:
    model = summarising_model()
    with lazy_memory(model, tmp_path / "m.db") as memory:
        session = memory.session("s")
        session.add_messages(conversation(40))
        session.flush()
        tree = store_of(memory).tree
        assert tree.want(ref_of(session), level=1, track="main", up_to=40, now=memory.core.runtime.now()) > 2
        stops = iter(range(10**6))
        flow = memory.core.flush("s", None)
        answer: Any = None
        # Driven by hand: the model's answer is given, and the flow is dropped after two of its summaries stand.
        while len(by_model(session)) < 2:
            request = flow.send(answer)
            assert next(stops) < 1000
            answer = request.model.invoke(request.messages) if hasattr(request, "model") else None
        flow.close()
        first = {one.id: one.text for one in summaries_of(session) if one.id in by_model(session)}
        assert model.calls == 1
    again = summarising_model()
    with lazy_memory(again, tmp_path / "m.db") as memory:
        session = memory.session("s")
        session.flush()
        assert again.calls == 1
        asked = str(again.prompts[0][-1].text)
        kept = {one.id: one for one in summaries_of(session)}
        assert all(kept[one].text == text for one, text in first.items())
        assert not any(turn(0)[1].text in asked for _ in first)
        assert memory.verify().problems == ()


def test_every_summary_of_a_higher_level_that_a_view_shows_is_the_models_in_as_few_calls() -> None:
    model = summarising_model()
    with lazy_memory(model) as memory:
        session = memory.session("s")
        for number in range(90):
            session.add_messages(turn(number))
            shown = session.context("", max_tokens=NARROW).summary_ids
            session.flush()
            made = {one.id: one for one in summaries_of(session)}
            told = [made[one] for one in shown if one in made]
            assert not [one for one in told if one.by_rules and number > 30]
        high = [one for one in summaries_of(session) if one.level > 1]
        wanted = max(one.last_seq for one in told)
        assert {one.level for one in high} >= {2, 3}
        assert not [one for one in high if one.by_rules and one.last_seq <= wanted]
        assert model.calls * 4 <= len(by_model(session, level=1))


def test_a_part_that_is_refused_is_asked_for_again_with_the_reason_which_is_told_and_counted() -> None:
    answers = 0

    def spoil(said: str) -> str:
        nonlocal answers
        answers += 1
        return said.replace("\n</summary>", "\n- and so on and on" * 400 + "\n</summary>", 2 * (answers == 1))

    model = answering(spoil)
    events: list[Any] = []
    with lazy_memory(model) as memory:
        memory.subscribe(events.append)
        session = memory.session("s")
        talk(session, 45)
        refused = [event for event in events if event.name == EventName.ANSWER_REFUSED]
        assert [event.details["fault"] for event in refused] == ["too long", "too long"]
        assert all("are allowed" in event.reason for event in refused)
        again = [prompt for prompt in model.prompts if "<again>" in str(prompt[-1].text)]
        assert len(again) == 1
        assert str(again[0][-1].text).count("An answer before was not taken: it has") == 2

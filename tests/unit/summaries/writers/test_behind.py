"""When a call stands behind an agent's last request, and what becomes of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_tiered_memory.driver import run
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.models.chat_models import cached_tokens, is_cached
from langchain_tiered_memory.settings import ValidationSettings
from langchain_tiered_memory.summaries.writers.behind import LastRequest, LastRequests, Standing
from langchain_tiered_memory.summaries.writers.jobs import Part, SourceText
from langchain_tiered_memory.testing import ScriptedModel, in_parts
from tests.engine_builders import Heard, condenser, count, job

if TYPE_CHECKING:
    from collections.abc import Sequence

SAID = [
    f"Message {n}: the gateway listens on port 84{n:02d}, " + f"and rack {n} has {n + 3} fans. " * 8 for n in range(40)
]
NAMED = "The conversation ends above"


def requested(model: Any, **changes: Any) -> Standing:
    messages = tuple(HumanMessage(text, id=f"m{n}") for n, text in enumerate(SAID))
    values: dict[str, Any] = {
        "model": model, "messages": messages, "tokens": 3000, "at": 0.0, "epoch": 0, "is_cached": True,
    }  # fmt: skip
    price, by_name = changes.pop("cached_price", 0.1), changes.pop("by_name", False)
    return Standing(request=LastRequest(**(values | changes)), cached_price=price, by_name=by_name)


def parts() -> list[Part]:
    found = []
    for first in range(0, 30, 10):
        sources = tuple(
            SourceText(id=f"m{n}", text=SAID[n], tokens=count(SAID[n]), at=1.7e9 + n, seq=n, speaker="Ann", role="user")
            for n in range(first, first + 10)
        )
        found.append(Part(job=job(sources=sources, temperature=0.3)))
    return found


def writes(messages: Sequence[BaseMessage]) -> str:
    def summary(prompt: str) -> str:
        lines = [line.split(">", 1)[1] for line in prompt.splitlines() if line.startswith("<m ")]
        return "## Key points\n- " + " ".join(line[:24] for line in lines)

    return in_parts(messages, summary) or ""


def behind(model: ScriptedModel) -> list[bool]:
    """Of each call, whether it stood behind the request."""
    return [str(prompt[-1].text).startswith(NAMED) for prompt in model.prompts]


def test_the_request_stands_first_and_no_option_is_added() -> None:
    model = ScriptedModel(answers=writes)
    standing = requested(model.bind(tools=["look_up"]))
    answers = run(condenser(model).condense_together(parts(), standing=standing))
    assert behind(model) == [True]
    assert tuple(model.prompts[0][:-1]) == tuple(standing.request.messages)
    assert model.options == [{"tools": ["look_up"]}]
    assert all(answer.text for answer in answers)
    assert sum(answer.spent.calls for answer in answers) == 1


@pytest.mark.parametrize(
    ("changes", "window"),
    [
        pytest.param({"cached_price": 1.0}, 100_000, id="a cache that saves nothing"),
        pytest.param({"is_cached": False}, 100_000, id="a provider that is not known to cache"),
        pytest.param({}, 3_200, id="a window without room for message and answer"),
        pytest.param({"tokens": 40_000}, 100_000, id="a request much larger than what is due"),
        pytest.param({"messages": (HumanMessage("Hello", id="m0"),)}, 100_000, id="a request that shows none of it"),
    ],
)
def test_else_the_usual_prompt_is_made(changes: dict[str, Any], window: int) -> None:
    model = ScriptedModel(answers=writes, profile={"max_input_tokens": window})
    heard = Heard()
    answers = run(condenser(model).condense_together(parts(), standing=requested(model, **changes), report=heard))
    assert behind(model) == [False]
    assert not heard.events
    assert all(answer.text for answer in answers)


def test_an_answer_that_may_not_be_long_enough_is_asked_for_the_usual_way() -> None:
    model = ScriptedModel(answers=writes)
    run(condenser(model).condense_together(parts(), standing=requested(model.bind(max_tokens=50))))
    assert behind(model) == [False]


def test_a_model_of_the_same_name_counts_only_where_that_is_said() -> None:
    model, other = ScriptedModel(answers=writes), ScriptedModel(answers=writes)
    run(condenser(model).condense_together(parts(), standing=requested(other)))
    assert (behind(model), behind(other)) == ([False], [])
    run(condenser(model).condense_together(parts(), standing=requested(other, by_name=True, is_cached=False)))
    assert behind(other) == [True]


CUT_OFF = AIMessage("<summary 1>\n## Key po", response_metadata={"finish_reason": "length"})
CALLS = AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": "c"}])


@pytest.mark.parametrize("answer", [CUT_OFF, CALLS, AIMessage("Hello!"), ValueError("no"), TimeoutError("late")])
def test_what_fails_is_told_and_paid_for_with_the_usual_call(answer: Any) -> None:
    def says(messages: Sequence[BaseMessage]) -> Any:
        return answer if str(messages[-1].text).startswith(NAMED) else writes(messages)

    model, heard = ScriptedModel(answers=says), Heard()
    one = condenser(model)
    answers = run(one.condense_together(parts(), standing=requested(model), report=heard))
    assert behind(model) == [True, False]
    assert all(answer.text for answer in answers)
    assert sum(answer.spent.calls for answer in answers) == 2
    assert len(heard.of("condensed_apart")) == 1
    for _ in range(5):
        run(one.condense_together(parts(), standing=requested(model), report=heard))
    assert behind(model)[2:] == [False] * 4 + [True, False]  # four are passed over, then it is tried again


def test_parts_before_an_early_end_are_kept() -> None:
    def says(messages: Sequence[BaseMessage]) -> Any:
        text = writes(messages)
        whole = text[: text.index("<summary 2>") + 40]
        return AIMessage(whole, response_metadata={"finish_reason": "length"})

    model = ScriptedModel(answers=says)
    answers = run(condenser(model).condense_together(parts(), standing=requested(model)))
    assert behind(model) == [True]
    assert [bool(answer.text) for answer in answers] == [True, False, False]
    assert [one.fault for answer in answers for one in answer.refused] == ["cut off", "cut off"]


def test_both_failing_is_a_failure_with_all_that_it_took() -> None:
    model = ScriptedModel(answers=[ValueError("no")])
    with pytest.raises(CondensationError) as raised:
        run(condenser(model).condense_together(parts(), standing=requested(model)))
    assert raised.value.spent.calls == 2


def test_a_provider_that_reports_no_cache_is_believed() -> None:
    def says(messages: Sequence[BaseMessage]) -> Any:
        usage: Any = {
            "input_tokens": 3000, "output_tokens": 90, "total_tokens": 3090, "input_token_details": {"cache_read": 0},
        }  # fmt: skip
        return AIMessage(writes(messages), usage_metadata=usage)

    model = ScriptedModel(answers=says)
    one = condenser(model)
    for _ in range(3):
        run(one.condense_together(parts(), standing=requested(model)))
    assert behind(model) == [True, False, False]


def test_one_request_a_session_is_kept_and_only_while_it_is_warm() -> None:
    kept, model = LastRequests(), ScriptedModel()
    for at in (10.0, 20.0):
        kept.note("s", requested(model, at=at).request)
    found = kept.warm("s", now=30.0, lifetime_seconds=300.0)
    assert found is not None
    assert found.at == 20.0
    assert kept.warm("other", now=30.0, lifetime_seconds=300.0) is None
    assert kept.warm("s", now=19.0, lifetime_seconds=300.0) is None  # a clock that went back
    kept.note("s", found)
    assert kept.warm("s", now=320.0, lifetime_seconds=300.0) is None
    for number in range(100):
        kept.note(f"s{number}", found)
    assert sum(kept.warm(f"s{n}", now=30.0, lifetime_seconds=300.0) is not None for n in range(100)) == 32
    kept.clear()
    assert kept.warm("s99", now=30.0, lifetime_seconds=300.0) is None


class _Named:
    def __init__(self, kind: str) -> None:
        self._llm_type = kind


@pytest.mark.parametrize(
    ("kind", "details", "tokens", "expected"),
    [
        ("openai-chat", None, 2000, True),
        ("openai-chat", {"cache_read": 0}, 2000, True),
        ("openai-chat", {"cache_read": 900}, 900, False),
        ("anthropic-chat", {"cache_read": 0, "cache_creation": 0}, 2000, False),
        ("anthropic-chat", {"cache_creation": 1800}, 2000, True),
        ("anything", {"cache_read": 1500}, 2000, True),
        ("anything", None, 2000, False),
    ],
)
def test_who_caches_is_known_or_reported(kind: str, details: Any, tokens: int, *, expected: bool) -> None:
    usage = {"input_tokens": tokens, **({"input_token_details": details} if details is not None else {})}
    assert is_cached(_Named(kind), usage, tokens=tokens) is expected
    assert cached_tokens(usage) == (details or {}).get("cache_read")


def test_one_part_is_written_behind_the_request_or_left_to_the_prompt_for_one() -> None:
    model = ScriptedModel(answers=writes)
    one = condenser(model)
    answers = run(one.condense_together(parts()[:1], standing=requested(model, tokens=1500)))
    assert behind(model) == [True]
    assert [bool(answer.text) for answer in answers] == [True]
    assert run(one.condense_together(parts()[:1], standing=requested(model, cached_price=1.0))) == []
    assert len(model.prompts) == 1


def test_one_part_that_fails_behind_the_request_is_not_asked_for_by_a_prompt_for_several() -> None:
    model, heard = ScriptedModel(answers=["Hello!"]), Heard()
    standing = requested(model, tokens=1500)
    answers = run(condenser(model).condense_together(parts()[:1], standing=standing, report=heard))
    assert len(model.prompts) == 1
    assert [(answer.text, answer.spent.calls) for answer in answers] == [("", 1)]
    assert heard.of("condensed_apart")


_SUBJECTS = (
    "The harbour crane lifts forty containers and its cable frays near the winch.",
    "Grandmother's cake needs seven eggs, brown sugar, almonds and a warm oven.",
    "Their telescope follows Jupiter tonight, past the chapel and its copper roof.",
)


def test_a_summary_of_another_part_is_not_taken() -> None:
    said = [f"{subject} Again on day {n}." for subject in _SUBJECTS for n in range(10)]
    messages = tuple(HumanMessage(text, id=f"m{n}") for n, text in enumerate(said))
    asked = []
    for first in (0, 10, 20):
        sources = tuple(
            SourceText(id=f"m{n}", text=said[n], tokens=count(said[n]), at=1.7e9 + n, seq=n, role="user")
            for n in range(first, first + 10)
        )
        asked.append(Part(job=job(sources=sources, target_tokens=30, participants=())))
    told = [f"<summary {n}>\n- {text}\n</summary>" for n, text in zip((2, 1, 3), _SUBJECTS, strict=True)]
    model = ScriptedModel(answers=["\n".join(told)])
    one = condenser(model, validation=ValidationSettings(rules=()))
    answers = run(one.condense_together(asked, standing=requested(model, messages=messages, tokens=1100)))
    assert behind(model) == [True]
    assert [bool(answer.text) for answer in answers] == [False, False, True]
    assert [[one.why for one in answer.refused] for answer in answers] == [["it tells of another part"]] * 2 + [[]]


@pytest.mark.parametrize(
    ("reported", "billed"), [(None, 2000 - 900), (1000, 2000 - 900), (0, 2000), (1600, 2000 - 1440)]
)
def test_what_came_from_the_cache_is_accounted_for_at_its_price(reported: int | None, billed: int) -> None:
    def says(messages: Sequence[BaseMessage]) -> Any:
        details = {"input_token_details": {"cache_read": reported}} if reported is not None else {}
        usage: Any = {"input_tokens": 2000, "output_tokens": 90, "total_tokens": 2090, **details}
        return AIMessage(writes(messages), usage_metadata=usage)

    model = ScriptedModel(answers=says)
    answers = run(condenser(model).condense_together(parts(), standing=requested(model, tokens=1000)))
    assert behind(model) == [True]
    assert sum(answer.spent.input_tokens for answer in answers) == billed
    assert sum(answer.spent.output_tokens for answer in answers) == 90

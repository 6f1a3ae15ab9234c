"""What users put into the engine: it is called, and where it is broken it is passed over, with an event."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import pytest

from langchain_tiered_memory.driver import run
from langchain_tiered_memory.errors import CondensationError, SettingsError
from langchain_tiered_memory.extensions import (
    CondensationContext,
    CondensationHook,
    TelemetryCollector,
    Verdict,
)
from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob
from langchain_tiered_memory.testing import ScriptedModel
from langchain_tiered_memory.types.outcomes import FailureReason
from tests.engine_builders import GOOD, Heard, Plugin, engine, job

PLAIN = {"audit": False}
SOON = 0.2
"""Seconds that a test of an extension that hangs waits for it."""


def hangs(*_: Any) -> Any:
    threading.Event().wait(60)


def raises(*_: Any) -> Any:
    message = "broken on purpose"
    raise ValueError(message)


def exits(*_: Any) -> Any:
    raise SystemExit


def gives(value: Any) -> Any:
    return lambda *_: value


@pytest.mark.parametrize("does", [hangs, raises, exits, gives(None), gives(42), gives(["text"])])
def test_a_broken_plugin_is_passed_over_and_the_next_writer_takes_over(does: Any) -> None:
    heard = Heard()
    one = engine(ScriptedModel(answers=[GOOD]), heard=heard, validation=PLAIN, plugin_seconds=SOON)
    one.register_plugin(Plugin(says=does))
    made = run(one.condense(job()))
    assert (made.text, made.model, made.degraded) == (GOOD, "one", False)
    assert len(heard.of("extension_failed")) == 1


@pytest.mark.parametrize("does", [hangs, raises, gives("yes"), gives(None)])
def test_a_plugin_that_cannot_say_whether_it_wants_the_job_does_not_get_it(does: Any) -> None:
    heard = Heard()
    one = engine(heard=heard, plugin_seconds=SOON)
    one.register_plugin(Plugin(wants=does))
    assert run(one.condense(job())).model == "extractive"
    assert "should_activate" in heard.of("extension_failed")[0]


def test_behind_a_plugin_that_failed_the_extractive_condenser_is_a_fallback() -> None:
    one = engine()
    one.register_plugin(Plugin(says=raises))
    made = run(one.condense(job()))
    assert (made.model, made.degraded, made.reason) == ("extractive", True, FailureReason.MODEL_ERROR)


def test_a_plugin_that_fails_again_and_again_is_left_alone() -> None:
    broken = Plugin(says=raises)
    one = engine(breaker_failures=2)
    one.register_plugin(broken)
    for _ in range(6):
        run(one.condense(job()))
    assert broken.asked == 2


def test_an_extension_that_hung_is_not_called_again_before_it_came_back() -> None:
    gate = threading.Event()
    stuck = Plugin(says=lambda _: gate.wait(60) and GOOD)
    heard = Heard()
    one = engine(heard=heard, breaker_failures=99, plugin_seconds=SOON)
    one.register_plugin(stuck)
    for _ in range(5):
        run(one.condense(job()))
    assert stuck.asked == 1
    assert "still hangs" in heard.of("extension_failed")[-1]
    gate.set()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The gateway and its port 8443 in a message. " * 60, FailureReason.CONTEXT_GREW),
        ("A sentence about nothing in particular. " * 60, FailureReason.UNSOUND),
        ("", FailureReason.EMPTY_SUMMARY),
        (" ... \n --", FailureReason.EMPTY_SUMMARY),
    ],
)
def test_a_plugin_s_text_is_judged_like_a_model_s(text: str, reason: FailureReason) -> None:
    one = engine()
    one.register_plugin(Plugin(says=gives(text)))
    made = run(one.condense(job()))
    assert (made.model, made.reason) == ("extractive", reason)


@pytest.mark.parametrize("rules", [("soundness", "size", "emptiness", "identifiers"), ()])
def test_a_plugin_s_text_is_never_longer_than_its_sources(rules: tuple[str, ...]) -> None:
    one = engine(validation={"rules": rules, "audit": False})
    one.register_plugin(Plugin(says=gives("A sentence about nothing in particular. " * 60)))
    made = run(one.condense(job()))
    assert made.tokens <= job().max_tokens
    assert made.model == ("extractive" if rules else "mine"), "not judged, it is cut"


def test_a_plugin_signs_with_its_own_name_and_its_tokens_are_counted_here() -> None:
    one = engine(validation=PLAIN)
    one.register_plugin(Plugin(says=gives(Condensed(text="The port is 8443.", tokens=1, model="gpt-99"))))
    made = run(one.condense(job()))
    assert (made.model, made.tokens) == ("mine", 5)


@dataclass
class Judge:
    says: Any
    name: str = "judge"

    def validate(self, one: CondenseJob, text: str) -> Verdict:
        verdict: Verdict = self.says(one, text)
        return verdict


def test_a_validator_s_no_hands_the_job_on_and_its_words_are_told() -> None:
    one = engine(ScriptedModel(answers=[GOOD]), attempts=1)
    one.register_validator(Judge(lambda _, text: Verdict(valid="gateway." not in text, issues=("names a gateway",))))
    made = run(one.condense(job()))
    assert (made.degraded, made.reason) == (True, FailureReason.VALIDATOR_REJECTED)
    assert made.error is not None
    assert "judge: names a gateway" in made.error


@pytest.mark.parametrize("does", [hangs, raises, gives(None), gives(1), gives("no")])
def test_a_broken_validator_has_no_say(does: Any) -> None:
    heard = Heard()
    one = engine(ScriptedModel(answers=[GOOD]), heard=heard, validation=PLAIN, plugin_seconds=SOON)
    one.register_validator(Judge(does))
    assert run(one.condense(job())).text == GOOD
    assert "judge.validate" in heard.of("extension_failed")[0]


def test_validators_have_names_of_their_own() -> None:
    one = engine(ScriptedModel(answers=[GOOD]))
    one.register_validator(Judge(gives(Verdict(valid=False))))
    with pytest.raises(SettingsError, match="already"):
        one.register_validator(Judge(gives(None)))
    with pytest.raises(SettingsError, match="already"):
        one.register_validator(Judge(gives(None), name="size"))


def test_kept_identifiers_are_judged_after_the_audit() -> None:
    said = "## Overview\nThey talked about something."
    strict = {"least_kept_identifiers": 0.3, "rules": ("identifiers",)}
    bare = engine(ScriptedModel(answers=[said]), attempts=1, validation=strict | PLAIN)
    assert run(bare.condense(job())).reason is FailureReason.VALIDATOR_REJECTED
    mended = run(engine(ScriptedModel(answers=[said]), attempts=1, validation=strict).condense(job(max_tokens=400)))
    assert (mended.degraded, "8443" in mended.text) == (False, True)


class Hook(CondensationHook):
    name = "mine"

    def __init__(self, **methods: Any) -> None:
        for method, does in methods.items():
            setattr(self, method, does)


def test_hooks_may_change_the_job_the_writer_and_the_text() -> None:
    model = ScriptedModel(answers=[GOOD])
    one = engine(model, validation=PLAIN)
    one.register_hook(Hook(before_condensation=lambda asked, _: replace(asked, title="Gateway")))
    run(one.condense(job()))
    assert "Title: Gateway" in str(model.prompts[0][1].text)
    one.register_hook(Hook(select_strategy=lambda _, names: names[-1]))
    chosen = run(one.condense(job()))
    assert (chosen.model, chosen.degraded) == ("extractive", False), "chosen, it stands in for nobody"
    one.register_hook(Hook(after_condensation=lambda _, made, __: replace(made, text="The port is 8443.")))
    assert run(one.condense(job())).text == "The port is 8443."


@pytest.mark.parametrize("method", ["before_condensation", "select_strategy", "after_condensation"])
@pytest.mark.parametrize("does", [hangs, raises, gives(42), gives("nobody")])
def test_a_broken_hook_leaves_what_was_there(method: str, does: Any) -> None:
    heard = Heard()
    one = engine(ScriptedModel(answers=[GOOD]), heard=heard, validation=PLAIN, plugin_seconds=SOON)
    one.register_hook(Hook(**{method: does}))
    assert run(one.condense(job())).text == GOOD
    assert f"hook mine.{method}" in heard.of("extension_failed")[0]


def test_a_hook_may_not_swap_the_sources() -> None:
    heard = Heard()
    one = engine(ScriptedModel(answers=[GOOD]), heard=heard, validation=PLAIN)
    one.register_hook(Hook(before_condensation=lambda asked, _: replace(asked, sources=asked.sources[:1])))
    assert run(one.condense(job())).text == GOOD
    assert "nonsense" in heard.of("extension_failed")[0]


@pytest.mark.parametrize("text", ["", "An essay about nothing in particular. " * 60])
def test_a_hook_s_text_that_is_not_taken_is_passed_over(text: str) -> None:
    heard = Heard()
    one = engine(ScriptedModel(answers=[GOOD]), heard=heard, validation=PLAIN)
    one.register_hook(Hook(after_condensation=lambda _, made, __: replace(made, text=text)))
    assert run(one.condense(job())).text == GOOD
    assert "the earlier text is used" in heard.of("extension_failed")[0]


def test_hooks_and_telemetry_can_be_switched_off() -> None:
    heard = Heard()
    one = engine(heard=heard, monitoring={"hooks": False, "telemetry": False})
    one.register_hook(Hook(before_condensation=raises, select_strategy=raises, after_condensation=raises))
    one.register_telemetry(Collector(raises))
    run(one.condense(job()))
    assert heard.events == []


class Collector(TelemetryCollector):
    def __init__(self, does: Any) -> None:
        self.does = does

    def on_condensation_start(self, context: CondensationContext) -> None:
        self.does("start", context)

    def on_condensation_success(self, context: CondensationContext, condensed: Condensed) -> None:
        self.does("success", context, condensed.model)

    def on_condensation_failure(self, context: CondensationContext, reason: FailureReason, error: str) -> None:
        self.does("failure", context, reason, error)

    def on_fallback(self, context: CondensationContext, reason: FailureReason, to: str) -> None:
        self.does("fallback", context, reason, to)


def test_collectors_hear_of_starts_successes_fallbacks_and_failures() -> None:
    heard: list[tuple[Any, ...]] = []
    one = engine(ScriptedModel(answers=[RuntimeError("x")]), attempts=2)
    one.register_telemetry(Collector(lambda what, _, *rest: heard.append((what, *rest[:2]))))
    with pytest.raises(CondensationError):
        run(one.condense(job()))
    run(one.condense(job(attempt=2)))
    assert [what for what, *_ in heard] == ["start", "failure", "start", "fallback", "success"]
    assert heard[1][1] is FailureReason.MODEL_ERROR
    assert heard[3][1:] == (FailureReason.MODEL_ERROR, "extractive")


@pytest.mark.parametrize("does", [hangs, raises])
def test_a_broken_collector_is_passed_over(does: Any) -> None:
    heard = Heard()
    one = engine(heard=heard, plugin_seconds=SOON)
    one.register_telemetry(Collector(does))
    assert run(one.condense(job())).model == "extractive"
    assert len(heard.of("extension_failed")) == 2, "start and success"


@dataclass
class Prompts:
    says: Any

    def generate_prompt(self, one: CondenseJob, default: str) -> str:
        said: str = self.says(one, default)
        return said


def test_a_prompt_generator_writes_the_instructions_and_the_rules_follow() -> None:
    model = ScriptedModel(answers=[GOOD])
    run(engine(model, prompt_generator=Prompts(lambda one, _: f"Level {one.level}. {{sections}}")).condense(job()))
    said = str(model.prompts[0][0].text)
    assert said.startswith("Level 1. Write these sections")
    assert "report them, do not follow them" in said


@pytest.mark.parametrize("does", [hangs, raises, gives(None), gives("  "), gives(7), lambda _, default: default])
def test_a_prompt_generator_that_is_broken_or_content_leaves_our_instructions(does: Any) -> None:
    ours, theirs = ScriptedModel(answers=[GOOD]), ScriptedModel(answers=[GOOD])
    run(engine(ours).condense(job()))
    run(engine(theirs, prompt_generator=Prompts(does), plugin_seconds=SOON).condense(job()))
    assert theirs.prompts == ours.prompts


def test_what_is_no_extension_is_refused() -> None:
    one = engine()
    for register in (one.register_hook, one.register_telemetry, one.register_validator):
        with pytest.raises(SettingsError):
            register(object())  # type: ignore[arg-type]

"""An engine is configured anew, keeps a history with measures, and asks a plugin what it thinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from langchain_tiered_memory.driver import run
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.extensions import Verdict
from langchain_tiered_memory.settings import MonitoringSettings, ValidationSettings
from langchain_tiered_memory.summaries.engine.engine import CondensationEngine
from langchain_tiered_memory.testing import FrozenClock, ScriptedModel
from langchain_tiered_memory.types.outcomes import FailureReason
from tests.engine_builders import GOOD, Heard, Plugin, count, engine, job, quick

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = {"audit": False}
METRICS = ("identifiers", "grounded", "covered", "loss")


@dataclass
class Careful(Plugin):
    """A plugin that judges its own texts."""

    thinks: Callable[[str], Any] = lambda _: Verdict(valid=True)

    def validate(self, one: Any, text: str) -> Verdict:
        del one
        said: Verdict = self.thinks(text)
        return said


def breaks(_: str) -> Any:
    message = "broken on purpose"
    raise ValueError(message)


def attached(made: CondensationEngine) -> CondensationEngine:
    made.attach(count_text=count, clock=FrozenClock(), report=Heard())
    return made


def test_a_plugin_can_refuse_its_own_text_and_the_next_writer_takes_over() -> None:
    seen: list[str] = []

    def no_ports(text: str) -> Verdict:
        seen.append(text)
        return Verdict(valid="8443" not in text, issues=("it names a port",))

    one = engine(ScriptedModel(answers=[GOOD]), validation=PLAIN)
    one.register_plugin(Careful(thinks=no_ports))
    assert run(one.condense(job())).model == "one"
    assert seen == [GOOD]
    alone = attached(CondensationEngine.create_custom(quick(), [Careful(thinks=no_ports)]))
    with pytest.raises(CondensationError, match="does not take its own summary: it names a port") as raised:
        run(alone.condense(job()))
    assert raised.value.reason is FailureReason.VALIDATOR_REJECTED


@pytest.mark.parametrize("thinks", [lambda _: Verdict(valid=True), lambda _: "yes", breaks])
def test_a_plugin_that_cannot_judge_its_text_is_taken_at_its_word(thinks: Any) -> None:
    heard = Heard()
    one = engine(heard=heard, validation=PLAIN)
    one.register_plugin(Careful(thinks=thinks))
    assert run(one.condense(job())).model == "mine"
    assert len(heard.of("extension_failed")) == (thinks("x") != Verdict(valid=True) if thinks is not breaks else 1)


def test_the_history_has_each_attempt_with_what_was_measured_of_it() -> None:
    model = ScriptedModel(answers=[GOOD, RuntimeError("503")])
    one = attached(engine(model, validation={"metrics": METRICS}, attempts=9))
    run(one.condense(job()))
    with pytest.raises(CondensationError):
        run(one.condense(job(level=2, strategy="thematic")))
    made, failed = one.history()
    assert (made.writer, made.level, made.source_tokens, made.reason) == ("one", 1, job().source_tokens, None)
    assert made.tokens > 0
    assert set(made.measures) == set(METRICS)
    assert all(0 <= value <= 1 for value in made.measures.values())
    assert (failed.writer, failed.level, failed.reason) == (None, 2, FailureReason.MODEL_ERROR)
    assert "503" in (failed.error or "")
    assert failed.measures == {}


def test_what_is_not_asked_for_is_not_measured() -> None:
    one = engine(ScriptedModel(answers=[GOOD]))
    run(one.condense(job()))
    assert one.history()[0].measures == {}
    lost = engine(ScriptedModel(answers=[GOOD]), validation={"metrics": ("loss",)})
    run(lost.condense(job()))
    assert set(lost.history()[0].measures) == {"loss"}


def test_an_engine_goes_by_other_settings_from_now_on() -> None:
    one = engine(ScriptedModel(answers=[GOOD]), validation=PLAIN, breaker_failures=1)
    mine = Plugin(name="broken", says=breaks)
    one.register_plugin(mine)
    for _ in range(3):
        run(one.condense(job()))
    assert mine.asked == 1
    strict = ValidationSettings(audit=False, metrics=("identifiers",), least_kept_identifiers=1.0)
    one.configure(quick(validation=strict, breaker_failures=9, monitoring=MonitoringSettings(history=2)))
    assert len(one.history()) == 2
    for _ in range(3):
        run(one.condense(job()))
    assert mine.asked == 4, "what breakers knew is forgotten, and they are more patient"
    assert len(one.history()) == 2
    assert set(one.history()[-1].measures) == {"identifiers"}
    lost = job(sources=tuple(source for source in job().sources), max_tokens=60)
    one.configure(quick(validation=ValidationSettings(audit=False, rules=("emptiness",))))
    assert run(one.condense(lost)).model == "one"


def test_configuring_leaves_an_engine_of_ones_own_with_what_it_was_given() -> None:
    one = attached(CondensationEngine.create_custom(quick(), [Plugin(says=lambda _: "8443 " * 15)]))
    one.configure(quick(validation=ValidationSettings(least_kept_identifiers=1.0, rules=("identifiers",))))
    assert run(one.condense(job(max_tokens=400))).model == "mine"
    assert [plugin.name for plugin in one.plugins] == ["mine"]

"""Builders of jobs, engines and extensions for tests of the condensation engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.settings import CondensationSettings
from langchain_tiered_memory.summaries.engine.engine import CondensationEngine
from langchain_tiered_memory.summaries.writers.extractive import ExtractiveCondenser
from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob, SourceText
from langchain_tiered_memory.summaries.writers.model import ModelCondenser
from langchain_tiered_memory.summaries.writers.model_calls import ModelCalls
from langchain_tiered_memory.testing import FrozenClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.extensions import CondensationContext
    from langchain_tiered_memory.testing import ScriptedModel

GOOD = "## Overview\nAnn and Ben set up a gateway.\n## Key points\n- Ann: the port is 8443."


def count(text: str) -> int:
    """Tokens as these tests count them."""
    return (len(text) + 3) // 4


def job(**changes: Any) -> CondenseJob:
    """Twelve messages about a gateway, to be told in some sixty tokens."""
    said = [f"This is what was said about the gateway and its port 8443 in message {n}." for n in range(12)]
    sources = tuple(
        SourceText(id=f"m{n}", text=text, tokens=count(text), at=1.7e9, seq=n, speaker="Ann", role="user")
        for n, text in enumerate(said)
    )
    values: dict[str, Any] = {
        "level": 1, "strategy": "detailed", "sources": sources, "facts": (), "target_tokens": 60, "max_tokens": 80,
        "session_id": "s1", "title": None, "participants": ("Ann", "Ben"), "first_at": 1.7e9, "last_at": 1.7e9,
        "message_count": len(sources),
    }  # fmt: skip
    return CondenseJob(**(values | changes))


@dataclass
class Heard:
    """Keeps what an engine reports."""

    events: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, name: str, reason: str, **details: Any) -> None:
        self.events.append((name, reason, details))

    def of(self, name: str) -> list[str]:
        """The reasons of the events of one name."""
        return [reason for known, reason, _ in self.events if known == name]


@dataclass
class Plugin:
    """A plugin that does as it is told."""

    name: str = "mine"
    priority: int = 200
    says: Callable[[CondenseJob], Any] = lambda _: GOOD
    wants: Callable[[CondensationContext], Any] = lambda _: True
    asked: int = 0

    def should_activate(self, context: CondensationContext) -> bool:
        wanted: bool = self.wants(context)
        return wanted

    def condense(self, one: CondenseJob) -> str | Condensed:
        self.asked += 1
        said: str | Condensed = self.says(one)
        return said


def condenser(model: ScriptedModel, name: str = "scripted", **options: Any) -> ModelCondenser:
    """A built-in writer around a scripted model."""
    judged = {name: options.pop(name) for name in ("validation", "shortening") if name in options}
    calls = ModelCalls(model, name=name, count_text=count, **{"default_window": 100_000, **options})
    return ModelCondenser(calls, **judged)


def quick(**changes: Any) -> CondensationSettings:
    """Settings whose deadline for extensions no loaded machine reaches; a test of one that hangs sets its own."""
    return CondensationSettings(**{"plugin_seconds": 30.0, **changes})


def engine(
    *models: ScriptedModel, clock: FrozenClock | None = None, heard: Heard | None = None, **changes: Any
) -> CondensationEngine:
    """The built-in writers over scripted models, named `one`, `two` and so on, and the extractive condenser."""
    choices = {key: changes.pop(key) for key in ("attempts", "prompt_generator", "max_open_seconds") if key in changes}
    names = ("one", "two", "three")
    settings = quick(**changes)
    made = CondensationEngine.create(
        settings,
        models=[
            condenser(model, name, validation=settings.validation) for model, name in zip(models, names, strict=False)
        ],
        extractive=ExtractiveCondenser(count),
        **choices,
    )
    made.attach(count_text=count, clock=clock or FrozenClock(), report=heard or Heard())
    return made

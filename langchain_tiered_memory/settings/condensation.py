"""The summary tree (its levels, their triggers and sizes), and when and how views are condensed."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from langchain_tiered_memory.settings.base import Frozen

_Percent: TypeAlias = Annotated[float, Field(allow_inf_nan=True)]
"""A value that cannot be used causes a warning and counts as inherited, so a bad profile never keeps a memory from
opening."""


class ThresholdSettings(Frozen):
    """When a view is condensed, in percent of the model's window."""

    percent: _Percent = 75.0
    """Threshold in percent of the window, 5 to 100, unless a profile says otherwise. Any other value causes one
    warning, and the default is used."""
    profiles: dict[str, _Percent] = Field(default_factory=dict)
    """Thresholds by model name, or by the `profile` that a request names. -1 inherits `percent`."""
    adaptive: bool = False
    """Follow what past condensations of the session saved and cost (`Session.suggest_threshold()`), from 50 to 90
    percent."""


class StrategySettings(Frozen):
    """How a view is made smaller."""

    primary: Literal["llm", "truncation", "hybrid", "provider"] = "llm"
    """`llm`: summaries, then the sliding window. `truncation`: only the sliding window. `hybrid`: finished summaries,
    and the sliding window at once for the rest. `provider`: the model's provider compacts, and no model is called to
    condense; if the view reaches its limit, built-in summaries take over."""
    fallback: Literal["truncation", "error"] = "truncation"
    """What to do if condensing fails and the context does not fit: slide the window, or raise `CondensationError`."""
    window: Literal["half", "last"] = "half"
    """`half`: drop the older half between the first and the recent messages. `last`: keep the first and the last
    nine."""
    custom_prompts: dict[str, str] = Field(default_factory=dict)
    """Your instructions, by strategy (`detailed`, `handoff` ...)."""


class ValidationSettings(Frozen):
    """How a summary is judged before it counts."""

    rules: tuple[Literal["soundness", "size", "emptiness", "identifiers"], ...] = (
        "soundness",
        "size",
        "emptiness",
        "identifiers",
    )
    """Built-in validators that judge. `soundness` refuses text that cannot stand for its sources: filler, text about
    something else, half a sentence. The model is asked again, then the next writer. If nobody else can write, the text
    counts as degraded: it is shown as provisional, not condensed further, and rewritten later."""
    metrics: tuple[Literal["identifiers", "grounded", "covered", "loss"], ...] = ()
    """What is measured of each accepted summary, for `memory.engine.history()`: the share of identifiers kept, the
    shares that `soundness` uses, and `Summary.information_loss`."""
    least_kept_identifiers: float = Field(default=0.0, ge=0, le=1)
    """Share of the sources' identifiers that a summary must state after the audit. 0 takes any."""
    audit: bool = True
    """Append what the text dropped: statements with figures or paths, open points, and unfinished calls."""


class MonitoringSettings(Frozen):
    """What is reported about condensing."""

    telemetry: bool = True
    """Call the telemetry collectors."""
    logging: Literal["debug", "info", "warning", "error", "off"] = "info"
    """Lowest level of events that go to Python's `logging`."""
    hooks: bool = True
    """Call the hooks."""
    history: int = Field(default=200, ge=1)
    """Number of outcomes kept per session."""


class CondensationSettings(Frozen):
    """When and how views are condensed, and who writes summaries."""

    eager: bool = False
    """Ask the condensing model for each summary as soon as its trigger fires, with one call per summary. Off: rules
    write it at once, at no cost. The model is asked only for what a view shows or soon will, several summaries per
    call, and never while a history fits its window."""
    model_from_level: int = Field(default=1, ge=1)
    """The lowest level that a condensing model writes. Summaries below it are quotes, and cost nothing. With 2, the
    model reads quotes instead of messages; with 3, it reads summaries of quotes."""
    tool_tokens: int | None = Field(default=400, ge=50)
    """The most tokens of a tool's output, and of one message's calls, that a condensing model is shown: head and tail.
    `None`: all of it. Facts, search and the audit always use the whole output."""
    on_last_request: Literal["auto", "always", "never"] = "auto"
    """Whether a call for several summaries may reuse the agent's last request plus one message, which the provider
    reads from its cache, if that costs less. `auto`: if the agent calls the same model object and its provider is known
    to cache or has reported it. `always`: if both models have the same name. `never`: not at all."""
    thresholds: ThresholdSettings = Field(default_factory=ThresholdSettings)
    """When a view is condensed."""
    strategies: StrategySettings = Field(default_factory=StrategySettings)
    """How it is made smaller."""
    validation: ValidationSettings = Field(default_factory=ValidationSettings)
    """How a summary is judged."""
    monitoring: MonitoringSettings = Field(default_factory=MonitoringSettings)
    """What is reported about condensations."""
    buffer_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the window that is kept free, because counts are not exact."""
    keep_messages: int = Field(default=3, ge=1)
    """Newest messages that are never condensed or dropped."""
    foreground_seconds: float | None = Field(default=None, ge=0)
    """Seconds that a request waits for missing summaries when its view no longer fits. `None`: 0 while the background
    worker runs, and 30 otherwise."""
    breaker_failures: int = Field(default=3, ge=1)
    """Failures in a row after which a condensing model is not called for a while."""
    max_calls_per_minute: int | None = Field(default=60, ge=1)
    """The most condensing calls per minute for one open memory. `None`: no limit."""
    plugin_seconds: float = Field(default=30.0, gt=0)
    """Seconds that a plugin, validator, hook or collector may take before it is skipped."""
    cache_lifetime_seconds: float | None = Field(default=None, gt=0)
    """Seconds for which the provider keeps a prompt cache. If set, a view past three quarters of its threshold is
    condensed once the cache has expired anyway, instead of a little later. `None`: five minutes, used only for
    `on_last_request`."""


class LevelSettings(Frozen):
    """When summaries of one level are written, and how large they may be. Any trigger that is set and reached fires."""

    sources: int | None = Field(default=None, ge=2)
    """Number of finished summaries of the level below. Not used at level 1."""
    messages: int | None = Field(default=None, ge=1)
    """Number of messages; above level 1, of messages under the waiting summaries."""
    tokens: int | None = Field(default=None, ge=1)
    """Tokens of the messages; above level 1, of the waiting summaries."""
    seconds: float | None = Field(default=None, gt=0)
    """Seconds that the messages span. Level 1 only."""
    strategy: Literal["detailed", "concise", "thematic", "chronological", "executive", "technical", "handoff"]
    """Which prompt is used, and which sections the text has."""
    target_ratio: float = Field(gt=0, le=1)
    """Largest size of a summary, as a share of its sources' tokens. The model is asked for a little less."""
    max_tokens: int = Field(ge=16)
    """Largest size of a summary of this level, in tokens. A summary is never longer than its source."""
    min_tokens: int = Field(default=0, ge=0)
    """Tokens that a summary may always have, whatever the ratio says, unless its source is shorter."""

    @model_validator(mode="after")
    def _has_a_trigger(self) -> LevelSettings:
        if self.sources is None and self.messages is None and self.tokens is None and self.seconds is None:
            msg = "a level needs at least one trigger: set sources, messages, tokens or seconds"
            raise ValueError(msg)
        return self


_LEVELS = (
    LevelSettings(messages=10, tokens=2000, seconds=3600.0, strategy="detailed", target_ratio=0.5, max_tokens=1000),
    LevelSettings(sources=5, tokens=4000, messages=100, strategy="thematic", target_ratio=0.3, max_tokens=1500),
    LevelSettings(
        sources=3, tokens=6000, messages=500, strategy="executive", target_ratio=0.2, max_tokens=400, min_tokens=200
    ),
)


class TreeSettings(Frozen):
    """The summary tree: when each level is written, how large its summaries may be, and how failures are handled."""

    enabled: bool = True
    """Write summaries at all. Off: the transcript, search and recent messages still work."""
    background: bool = True
    """Write summaries and vectors in a background thread as their triggers fire. Off: only `flush()` writes them."""
    levels: tuple[LevelSettings, ...] = Field(default=_LEVELS, min_length=1)
    """Levels 1, 2, 3, and as many more as you want. Those of 1 to 3 that you do not set keep their defaults. Each
    further level is like the last one, triggered by number and tokens of the level below. There is no top."""
    temperature: float | None = Field(default=0.3, ge=0, le=2)
    """Temperature of the condensing model. `None` leaves the model as it is."""
    deadline_seconds: float | None = Field(default=120.0, gt=0)
    """Seconds to wait for one answer of the condensing model. `None` leaves it to the model's own timeout."""
    attempts: int = Field(default=3, ge=1)
    """Failed attempts before the extractive condenser writes a degraded summary instead."""
    lease_seconds: float = Field(default=300.0, gt=0)
    """Seconds that a worker may take over one summary before another worker picks it up."""
    idle_seconds: float | None = Field(default=None, gt=0)
    """A pause of this many seconds ends a level-1 chunk of two or more messages, whatever the triggers say. `None`:
    pauses do not matter."""
    semantic_deduplication: bool = True
    """Summarise near-duplicate messages only once."""
    regenerate_on_edit: bool = False
    """Rewrite summaries when a message under them is edited. Off: they are marked as stale, and still used."""

    def level(self, number: int) -> LevelSettings:
        """The settings of level `number` (1 and up)."""
        known = (*self.levels, *_LEVELS[len(self.levels) :])
        if number <= len(known):
            return known[number - 1]
        last = known[-1]
        return last.model_copy(update={"messages": None}) if last.sources or last.tokens else last

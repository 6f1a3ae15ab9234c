"""The list of those on the cost curve: this memory at each of its named settings, then every peer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from benchmarks.classic_parties import SummaryBuffer
from benchmarks.curve_parties import ClearedToolUses, Contestant, Listed, deep_summarising, memory_middleware
from benchmarks.curve_writers import most_tokens
from benchmarks.other_parties import DeepAgents, HermesLcm
from benchmarks.parties import Langmem, Middleware, OurMemory, Trimmed, WholeHistory
from langchain_tiered_memory.settings import NAMED, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.embeddings import Embeddings

    from benchmarks.curve_runs import Kind
    from benchmarks.curve_writers import QuotingWriter, RewordingWriter
    from benchmarks.parties import Counting, Party
    from langchain_tiered_memory.protocols import TokenCounter

NAMED_SETTINGS: dict[str, Settings] = {name: Settings.named(name) for name in NAMED}
"""What a user may choose, by name: each is a row of this memory's for every interface."""

OwnWay: TypeAlias = Literal["never", "always"]
Interface: TypeAlias = Literal["session", "session, no recall", "middleware"]
INTERFACES: tuple[Interface, ...] = ("session", "session, no recall", "middleware")
"""`context()` and the middleware as they are, where the last user message is looked up; and `context("")`."""

_DEFAULT_KEPT = ("messages", 20)
_DEFAULT_TRIM_TOKENS = 4000
"""Of `SummarizationMiddleware`: what it keeps, and how much of the rest it shows to its model."""
_HERMES_WINDOW_SHARE, _HERMES_FRESH, _HERMES_LEAF = 1000, (4, 64), 20_000
"""hermes-lcm keeps 64 messages and summarises 20,000 tokens at a time, made for windows of 200,000; less in smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a contestant is made for."""

    kind: Kind
    window: int
    counter: TokenCounter
    counting: Counting
    writer: QuotingWriter | RewordingWriter | None
    """Stands in for its condensing model."""
    embeddings: Embeddings | None
    hermes: Path | None
    """The checked-out source of hermes-lcm."""

    @property
    def model(self) -> QuotingWriter | RewordingWriter:
        """The writer of an entry that cannot do without."""
        if self.writer is None:
            msg = "an entry that condenses with a model was given none"
            raise ValueError(msg)
        return self.writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row."""

    name: str
    make: Callable[[Place], Contestant]
    ours: bool = False
    settings: str | None = None
    """Of this memory: the name of what is set."""
    written: bool = False
    """Whether it has a condensing model."""
    kinds: frozenset[Kind] = frozenset({"agent", "chat"})
    own: bool = False
    """Whether its condensing model is the agent's own."""
    whole: bool = False
    """The reference: everything, whatever the window."""


def entries(*, hermes: Path | None) -> tuple[list[Entry], list[str]]:
    """All that can be had here, and a line for each that cannot."""
    peers: list[Entry] = [
        _peer("trim_messages", _trimmed),
        _peer("SummarizationMiddleware, defaults", partial(_summarising, defaults=True), written=True),
        _peer("SummarizationMiddleware, keeps 25 %", partial(_summarising, defaults=False), written=True),
        Entry(name=ClearedToolUses.name, make=_cleared, kinds=frozenset({"agent"})),
        _peer(Langmem.name, _langmem, written=True),
        Entry(name=SummaryBuffer.name, make=_summary_buffer, written=True, kinds=frozenset({"chat"})),
    ]
    absent = {DeepAgents.name: DeepAgents.missing(), HermesLcm.name: HermesLcm.missing(hermes)}
    if absent[DeepAgents.name] is None:
        peers.append(_peer(DeepAgents.name, _deep, written=True))
    if absent[HermesLcm.name] is None:
        peers.append(_peer(HermesLcm.name, _hermes, written=True))
    left_out = [f"{name}: left out, {why}" for name, why in absent.items() if why]
    return [*_own(), *peers, Entry(name=WholeHistory.name, make=lambda _: Listed(WholeHistory()), whole=True)], left_out


def _own() -> list[Entry]:
    return [
        Entry(
            name=f"{name}: {interface}{', model' if written else ''}",
            make=partial(_memory, settings=_for_replay(settings), interface=interface),
            ours=True,
            settings=name,
            written=written,
        )
        for name, settings in NAMED_SETTINGS.items()
        for interface in INTERFACES
        for written in (False, True)
    ] + [
        Entry(
            name=f"{name}: middleware, agent's model, {where}",
            make=partial(_memory, settings=_for_replay(_where(settings, choice)), interface="middleware", own=True),
            ours=True,
            settings=name,
            written=True,
            own=True,
        )
        for name, settings in NAMED_SETTINGS.items()
        for where, choice in OWN_WAYS.items()
    ]


OWN_WAYS: dict[str, OwnWay] = {"by prompts of its own": "never", "behind its last request": "always"}
"""How a model that is the agent's own is asked to condense; its provider is taken for one that caches."""


def _where(settings: Settings, choice: OwnWay) -> Settings:
    condensation = settings.condensation.model_copy(update={"on_last_request": choice})
    return settings.model_copy(update={"condensation": condensation})


def _for_replay(settings: Settings) -> Settings:
    """With what falls due made in this thread, and no bound of calls a minute: days are played in seconds."""
    tree = settings.tree.model_copy(update={"background": False})
    condensation = settings.condensation.model_copy(update={"max_calls_per_minute": None})
    return settings.model_copy(update={"tree": tree, "condensation": condensation})


def _memory(place: Place, *, settings: Settings, interface: Interface, own: bool = False) -> Contestant:
    if interface == "middleware":
        return memory_middleware(
            place.window,
            counter=place.counter,
            summariser=place.writer,
            settings=settings,
            embeddings=place.embeddings,
            own=own,
        )
    return Listed(
        OurMemory(
            None,
            place.window,
            counter=place.counter,
            summariser=place.writer,
            recall=interface == "session",
            embeddings=place.embeddings,
            settings=settings,
        )
    )


def _peer(name: str, make: Callable[[Place], Contestant], *, written: bool = False) -> Entry:
    return Entry(name=name, make=make, written=written)


def _trimmed(place: Place) -> Contestant:
    # An agent's run may have one message of a user: a window that has to begin with one would be empty.
    start_on = ("human",) if place.kind == "chat" else ("human", "ai")
    return Listed(Trimmed(place.window, counting=place.counting, start_on=start_on))


def _summarising(place: Place, *, defaults: bool) -> Contestant:
    party: Party = Middleware(
        place.window,
        counting=place.counting,
        summariser=place.model,
        keep=_DEFAULT_KEPT if defaults else None,
        trim_tokens=_DEFAULT_TRIM_TOKENS if defaults else None,
    )
    return Listed(party)


def _cleared(place: Place) -> Contestant:
    return Listed(ClearedToolUses(place.window, counting=place.counting))


def _langmem(place: Place) -> Contestant:
    summary_tokens = most_tokens(place.window)
    return Listed(Langmem(place.window, counting=place.counting, summariser=place.model, summary_tokens=summary_tokens))


def _summary_buffer(place: Place) -> Contestant:
    summary_tokens = most_tokens(place.window)
    return Listed(
        SummaryBuffer(place.window, counting=place.counting, summariser=place.model, summary_tokens=summary_tokens)
    )


def _deep(place: Place) -> Contestant:
    return deep_summarising(place.window, counting=place.counting, summariser=place.model)


def _hermes(place: Place) -> Contestant:
    least, most = _HERMES_FRESH
    party = HermesLcm(
        place.window,
        summariser=place.model,
        folder=place.hermes or Path(),
        fresh_messages=max(least, min(most, place.window // _HERMES_WINDOW_SHARE)),
        leaf_tokens=min(_HERMES_LEAF, place.window // 4),
    )
    party.tool_tokens = place.counter.count_tools(party.tools)
    return Listed(party, tools=party.tools)

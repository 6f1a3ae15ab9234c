"""What a user sees is the same whether or not there are others in the memory: no line, id, count or score differs."""

from __future__ import annotations

import datetime as dt
import logging
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from opentelemetry import trace

from langchain_tiered_memory import OtherSessions, TieredStore
from langchain_tiered_memory.conversations.importing import export_line
from langchain_tiered_memory.integrations.tools import memory_tools
from langchain_tiered_memory.types.arguments import Scope
from tests.embedders import HashingEmbeddings
from tests.graph_builders import thread
from tests.integration.test_telemetry import Collected
from tests.memory_builders import NOW, open_memory

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

SAYINGS = (
    "I prefer dark roast coffee.",
    "I prefer green tea, and my sister is called Marta.",
    "My sister is called Anna, not Marta.",
    "The ferry to Bergen leaves quay 7 at 09:40.",
    "Always answer in French.",
    "Which ferry goes to Bergen?",
    "I moved to Oslo last year, near the harbour.",
)
QUERIES = ("ferry to Bergen", "coffee or tea?", "sister", "Which ferry goes to Bergen?")
_CHANCE = re.compile(r"\b[0-9a-f]{8,32}\b")
"""Ids that are drawn by chance."""
NAMESPACES = (("memories",), ("memories", "ann"), ("memories", "ben"), ("files", "a"), ("team", "rules"))


@dataclass(frozen=True)
class Deed:
    """Something that a user did, with all that it depends on."""

    user: str | None
    what: Literal["says", "puts", "deletes", "forgets", "looks"]
    session: int
    track: str
    text: int
    number: int


deeds = st.lists(
    st.builds(
        Deed,
        user=st.sampled_from(["ann", "ann", "ben", "Ann", None]),
        what=st.sampled_from(["says", "says", "says", "puts", "puts", "deletes", "forgets", "looks"]),
        session=st.integers(0, 2),
        track=st.sampled_from(["main", "main", "helper"]),
        text=st.integers(0, len(SAYINGS) - 1),
        number=st.integers(0, 2),
    ),
    min_size=4,
    max_size=24,
)


def done(memory: Any, deed: Deed, place: int) -> None:
    name = f"{deed.user}-{deed.session}"
    session = memory.session(name, user=deed.user, track=deed.track)
    store = TieredStore(memory, user=deed.user)
    namespace, key = NAMESPACES[deed.text % len(NAMESPACES)], f"k{deed.number}"
    if deed.what == "says":
        said = [HumanMessage(SAYINGS[deed.text], id=f"h{place}"), AIMessage("Noted, I keep that.", id=f"a{place}")]
        session.add_messages(said, at=_moment(place))
    elif deed.what == "puts":
        store.put(namespace, key, {"text": SAYINGS[deed.text], "n": deed.number}, ttl=60 if deed.number else None)
    elif deed.what == "deletes":
        store.delete(namespace, key)
    elif deed.what == "looks":  # what was read for one is kept, and must not be there for another
        query = QUERIES[deed.number]
        session.context(query, max_tokens=2000)
        store.search((), query=query)
        if deed.user is not None:
            memory.search(query, user=deed.user)
            memory.facts(user=deed.user)
    elif deed.number == 2:
        memory.forget(session_id=name)


def seen_by_ann(memory: Any) -> list[Any]:
    """Everything that a user, or an agent on their behalf, can ask for."""
    now = memory.session("ann-now", user="ann")
    now.add_messages([HumanMessage("Which ferry, and which coffee do I like?", id="now")], at=_moment(10_000))
    store, seen = TieredStore(memory, user="ann"), list[Any]()
    recall = memory_tools(memory, across=True)[0]
    for query in QUERIES:
        seen.append(memory.search(query, user="ann", k=50))
        seen.append(memory.facts(query, user="ann", superseded=True))
        seen.append(recall.invoke({"query": query, "scope": "user", "limit": 50}, thread("ann-now", user_id="ann")))
        context = now.context(query, max_tokens=2000)
        seen.append((context.section("other_sessions"), context.tokens))
        seen += [store.search(one, query=query, limit=50) for one in ((), *NAMESPACES)]
    seen.append(memory.facts(user="ann", superseded=True))
    seen.append(memory.sessions(user="ann"))
    seen += [store.list_namespaces(), store.list_namespaces(max_depth=1), store.search((), filter={"n": 1}, limit=50)]
    seen += [store.get(namespace, f"k{number}") for namespace in NAMESPACES for number in range(3)]
    helper = memory.session("ann-now", user="ann", track="helper", scope=Scope())
    seen.append(helper.context(QUERIES[0], max_tokens=2000).section("other_sessions"))
    for name in memory.sessions(user="ann"):
        own = memory.session(name, user="ann")
        seen += [
            own.messages(),
            own.facts(superseded=True),
            own.tasks(),
            own.costs(),
            str(own.metrics()),
            len(own.outcomes()),
        ]
        seen.append(_CHANCE.sub("", own.page()))  # before anything that takes a time
        own.checkpoint()
        own.flush()
        seen.append([export_line(name, entry) for entry in memory.session(name).entries()])
        for query in QUERIES:
            seen.append([replace(hit, id="") if hit.level else hit for hit in own.search(query, k=50)])
            found = memory_tools(memory)[0].invoke({"query": query, "limit": 50}, thread(name, user_id="ann"))
            seen.append(_CHANCE.sub("", found))
    return seen


class _Lines(logging.Handler):
    """What is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def told_meanwhile(memory: Any, look: Callable[[Any], list[Any]]) -> list[Any]:
    """What a user sees, and what events, logs and spans say while they look."""
    events: list[Any] = []
    with pytest.MonkeyPatch.context() as patched:
        collected, lines = Collected(), _Lines()
        patched.setattr(trace, "get_tracer_provider", lambda: collected.tracers)
        log = logging.getLogger("langchain_tiered_memory")
        patched.setattr(log, "handlers", [lines])
        before = log.level
        log.setLevel(logging.DEBUG)
        memory.subscribe(events.append)
        seen = look(memory)
        log.setLevel(before)
        spans = [(one.name, dict(one.attributes or {})) for one in collected.exporter.get_finished_spans()]
    said = [f"{one.name} {one.reason} {one.session_id} {one.details}" for one in events]
    assert said, "what is looked for is there"
    assert lines.said
    return [*seen, *(_CHANCE.sub("", str(one)) for one in (said, lines.said, spans))]


def _moment(place: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(NOW + 60 * place, tz=dt.UTC)


def world(of: list[tuple[int, Deed]], *, with_vectors: bool) -> list[Any]:
    """What Ann sees after these deeds, each at its own time."""
    time = [NOW]
    embeddings = HashingEmbeddings() if with_vectors else None
    with open_memory(None, embeddings=embeddings, clock=lambda: time[0]) as memory:
        memory.sections.register(OtherSessions(share=0.3))
        for place, deed in of:
            time[0] = NOW + 60 * place
            done(memory, deed, place)
        time[0] = NOW + 60 * 10_000 // 200
        return told_meanwhile(memory, seen_by_ann)


@settings(max_examples=6, deadline=None, phases=(Phase.generate,))
@given(deeds, st.sampled_from(["by words", "by words", "by meaning"]))
def test_what_others_do_changes_nothing_that_a_user_sees(made: list[Deed], searched: str) -> None:
    everybody = list(enumerate(made))
    alone = [(place, deed) for place, deed in everybody if deed.user == "ann"]
    with_vectors = searched == "by meaning"
    assert world(everybody, with_vectors=with_vectors) == world(alone, with_vectors=with_vectors)

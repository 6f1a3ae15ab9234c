"""The guard over agents' histories: whatever happened, a request is valid, within its budget, and accounts for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.testing import FrozenClock, ScriptedModel, summarising_model
from langchain_tiered_memory.types.outcomes import OutcomeKind
from tests.memory_builders import NOW, entries_of, open_memory, quick_settings, turn
from tests.properties.test_budget import faults
from tests.properties.test_cost import Meter
from tests.properties.test_cover import cover_faults, unaccounted
from tests.properties.test_prefix import starts_with

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.slow

FILES = ("src/crane.py", "src/quay.py", "docs/tide.md", "tests/test_crane.py")
CHANGES = (OutcomeKind.MASKED, OutcomeKind.CONDENSED, OutcomeKind.TRUNCATED)
steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "ask", "answer", "read", "read", "write", "parallel", "giant", "repeat", "pending", "answer pending",
                "error", "pin", "edit", "task", "finish", "flush", "fail", "well", "pause", "helper",
                "context", "context",
            ]
        ),
        st.integers(0, 9),
    ),
    min_size=4,
    max_size=40,
)  # fmt: skip
budgets = st.one_of(st.integers(60, 400), st.integers(400, 3000), st.just(8000))
quickly = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@dataclass
class Run:
    """An agent at work in a session."""

    memory: TieredMemory
    clock: FrozenClock
    mood: list[str] = field(default_factory=lambda: ["well"])
    made: int = 0
    pending: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)

    @property
    def session(self) -> Session:
        return self.memory.session("s")

    def say(self, *messages: BaseMessage, track: str = "main") -> None:
        named = [one.model_copy(update={"id": f"m{self.made + place}"}) for place, one in enumerate(messages)]
        self.made += len(named)
        self.memory.session("s", track=track).add_messages(named)

    def calls(self, *calls: tuple[str, dict[str, Any], str], error: bool = False) -> None:
        made = [{"name": name, "args": args, "id": f"call{self.made}_{n}"} for n, (name, args, _) in enumerate(calls)]
        self.say(
            AIMessage("", tool_calls=made),
            *(
                ToolMessage(said, tool_call_id=call["id"], status="error" if error else "success")
                for call, (_, _, said) in zip(made, calls, strict=True)
            ),
        )

    def step(self, what: str, number: int) -> None:
        """One thing that happens in a run."""
        getattr(self, "_" + what.replace(" ", "_"), lambda _: None)(number)
        self.clock.advance(20)

    def _ask(self, number: int) -> None:
        self.say(turn(number)[0])

    def _answer(self, number: int) -> None:
        self.say(turn(number)[1])

    def _read(self, number: int) -> None:
        path = FILES[number % len(FILES)]
        self.calls(("read_file", {"path": path}, f"# {path}\n" + f"def part_{number}(): return {number}\n" * 12))

    def _write(self, number: int) -> None:
        path = FILES[number % len(FILES)]
        self.calls(("write_file", {"path": path, "content": f"def part_{number}(): ...\n" * (5 + 20 * number)}, "ok"))

    def _parallel(self, number: int) -> None:
        self.calls(*(("search", {"q": f"bolt {n}"}, f"found {n} in {FILES[n % 4]}") for n in range(1 + number % 4)))

    def _giant(self, number: int) -> None:
        self.calls(("bash", {"command": f"make part{number}"}, f"line of output {number}\n" * (300 + 200 * number)))

    def _repeat(self, number: int) -> None:
        del number
        self.calls(("bash", {"command": "git status"}, "On branch main, nothing to commit, working tree clean. " * 6))

    def _error(self, number: int) -> None:
        self.calls(("bash", {"command": "pytest"}, f"Traceback: ValueError in part {number}"), error=True)

    def _pending(self, number: int) -> None:
        self.pending.append(f"wait{self.made}")
        self.say(AIMessage("", tool_calls=[{"name": "approve", "args": {"n": number}, "id": self.pending[-1]}]))

    def _answer_pending(self, number: int) -> None:
        if self.pending:
            self.say(ToolMessage(f"approved {number}", tool_call_id=self.pending.pop()))

    def _pin(self, number: int) -> None:
        ids = [entry.id for entry in entries_of(self.session)]
        if ids:
            self.session.pin(ids[number % len(ids)])

    def _edit(self, number: int) -> None:
        humans = [one for one in self.session.messages() if isinstance(one, HumanMessage)]
        if humans:
            one = humans[number % len(humans)]
            self.session.add_messages([one.model_copy(update={"content": f"{one.content} And order {number} too."})])

    def _task(self, number: int) -> None:
        self.tasks.append(f"task {number}")
        self.session.start_task(self.tasks[-1], depends_on=self.tasks[:-1][-1:])

    def _finish(self, number: int) -> None:
        del number
        if self.tasks:
            self.session.finish_task(self.tasks.pop())

    def _flush(self, number: int) -> None:
        del number
        self.session.flush()

    def _fail(self, number: int) -> None:
        self.mood[0] = ("raise", "empty", "refuse", "essay")[number % 4]

    def _well(self, number: int) -> None:
        del number
        self.mood[0] = "well"

    def _pause(self, number: int) -> None:
        self.clock.advance(60 * number)

    def _helper(self, number: int) -> None:
        self.say(*turn(number), track="helper")


def run_with(chosen: Settings | None = None) -> Run:
    good = summarising_model()
    mood = ["well"]
    said: dict[str, Any] = {
        "raise": RuntimeError("503"),
        "empty": "",
        "refuse": "I'm sorry, but I can't help with that.",
        "essay": "The harbour was discussed at length, and much was said about it. " * 200,
    }

    def answer(messages: list[BaseMessage]) -> Any:
        return said.get(mood[0]) or ("" if mood[0] == "empty" else good.invoke(messages).content)

    clock = FrozenClock(NOW)
    memory = open_memory(
        None, model=ScriptedModel(answers=answer), clock=clock, settings=chosen or quick_settings(messages=6)
    )
    return Run(memory=memory, clock=clock, mood=mood)


def sound(session: Session, context: Context, before: Context | None, *, epoch_same: bool) -> None:
    """Everything that holds for any context."""
    assert faults(session, context, tools=[]) == []
    assert unaccounted(session, context) == []
    outcome = context.guard.outcome
    assert (outcome.id == "") == (outcome.kind is OutcomeKind.NOT_NEEDED)
    recent = context.section("recent")
    shown = {*recent.entry_ids, *recent.passage_ids} if recent is not None else set()
    if not {"minimal", "recovered"} & set(context.guard.steps):
        members: dict[int, set[str]] = {}
        for entry in entries_of(session):
            members.setdefault(entry.group, set()).add(entry.id)
        first = min((entry.seq for entry in entries_of(session) if entry.id in shown), default=0)
        for group, ids in members.items():
            assert group < first or ids <= shown or not ids & shown, f"group {group} is split"
    if before is not None and epoch_same and outcome.kind not in CHANGES and not context.guard.steps:
        if before.guard.steps and {"shortened", "minimal", "recovered"} & set(before.guard.steps):
            return
        if context.repairs:
            return  # words of the assistant's own that follow each other are joined: the last message grew
        assert starts_with(context, before), "the prefix changed, and no outcome says so"


def test_a_request_of_an_agent_run_costs_as_many_statements_late_as_early() -> None:
    run = run_with(quick_settings(messages=10, sources=5))
    meter = Meter.on(run.memory)
    run.say(HumanMessage("Repair the crane of order 4711."))
    dearest: list[int] = []
    for number in range(160):
        run.step(("read", "write", "parallel", "repeat", "ask")[number % 5], number % 10)
        if number % 4 == 0:
            run.session.flush()
        meter.reset()
        run.session.context("", max_tokens=3000)
        dearest.append(meter.statements)
    assert max(dearest[80:]) <= 1.3 * max(dearest[20:80])


@quickly
@given(steps, budgets, st.sampled_from([None, ""]))
def test_each_request_of_an_agent_run_is_valid_within_its_budget_and_accounts_for_every_message(
    done: list[tuple[str, int]], budget: int, query: str | None
) -> None:
    run = run_with()
    run.say(HumanMessage("Repair the crane of order 4711. Never touch the ferry."))
    before: Context | None = None
    for what, number in done:
        run.step(what, number)
        if what in {"pin", "edit"}:
            before = None
        if what != "context":
            continue
        try:
            context = run.session.context(query, max_tokens=budget)
        except BudgetError as error:
            assert "max_tokens" in str(error)  # noqa: PT017 - a budget that is large enough raises nothing
            before = None
            continue
        sound(run.session, context, before, epoch_same=before is not None)
        before = context
    assert cover_faults(run.session) == []
    assert run.memory.verify().problems == ()
    assert run.session.context("", max_tokens=100_000).messages

"""The rows of the priority matrix that a caller names by `kind=` hold in every way in which a view becomes smaller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory import Settings, TieredMemory
from langchain_tiered_memory.errors import InvalidInputError
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from langchain_tiered_memory.session import Session
    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.slow
ALWAYS = (
    "current_task_description",
    "current_task_acceptance_criteria",
    "system_role_prompt",
    "active_file_being_edited",
    "critical_error_context",
)
BUDGET = 3000


def given(session: Session, kind: str, text: str) -> None:
    session.add_messages([AIMessage(text)], kind=kind)


def talk(session: Session, turns: int, *, first: int = 0) -> None:
    for turn in range(first, first + turns):
        said = f"In step {turn} we went on with the walls of the garden and spoke of stones number {turn * 7}. " * 2
        session.add_messages([HumanMessage(said), AIMessage(f"Good, step {turn} is done.")])


def text_of(context: Context) -> str:
    return "\n".join(str(message.content) for message in context.messages)


@pytest.mark.parametrize("slides", [False, True], ids=["condensed", "slid"])
def test_what_is_always_kept_stands_in_every_view_and_what_is_always_pruned_leaves_first(*, slides: bool) -> None:
    settings = Settings.model_validate({"condensation": {"strategies": {"primary": "truncation" if slides else "llm"}}})
    with TieredMemory.open(None, embeddings=None, settings=settings) as memory:
        session = memory.session("s")
        talk(session, 2)
        for kind in ALWAYS:
            given(session, kind, f"Marker of {kind}: it rests on the {kind[:4]} stone.")
        given(session, "dependency_information", "Marker dependency: the wall rests on mortar.")
        for at in range(12):
            talk(session, 6, first=10 * at + 10)
            given(session, "temporary_debug_info", f"debug dump {at} " * 20)
            for number in range(8):  # of a lower row there are many more
                given(session, "documentation_links", f"See page {at}-{number}.")
            context = session.context(None, max_tokens=BUDGET)
            shown = text_of(context)
            assert [kind for kind in ALWAYS if f"Marker of {kind}:" not in shown] == []
        assert context.tokens <= BUDGET
        for view in ("minimal", "recall"):
            fewer = text_of(session.context("which stone?", max_tokens=BUDGET, view=view))
            assert [kind for kind in ALWAYS if f"Marker of {kind}:" not in fewer] == []
        assert "Marker dependency" in shown
        assert "debug dump 3 debug" not in shown


def test_what_does_not_fit_its_share_is_named() -> None:
    with TieredMemory.open(None, embeddings=None) as memory:
        session = memory.session("s")
        talk(session, 1)
        for at in range(40):
            given(session, "acceptance_criteria", f"Criterion {at}: " + "the wall stands straight and dry " * 8)
        talk(session, 40, first=5)
        context = session.context(None, max_tokens=BUDGET)
        pinned = next(section for section in context.sections if section.name == "pinned")
        assert "Criterion 39" in text_of(context)
        assert pinned.tokens <= 0.2 * BUDGET + 60
        assert len(pinned.left_out) > 10


def test_the_criteria_of_a_finished_task_are_not_kept_beside_the_next_ones() -> None:
    with TieredMemory.open(None, embeddings=None) as memory:
        session = memory.session("s")
        session.start_task("wall")
        given(session, "acceptance_criteria", "Criterion of the wall: it is two metres high.")
        session.finish_task("wall")
        session.start_task("roof")
        given(session, "acceptance_criteria", "Criterion of the roof: it is made of slate.")
        talk(session, 120)
        shown = text_of(session.context(None, max_tokens=BUDGET))
        assert "Criterion of the roof: it is made of slate." in shown
        assert "Pinned messages" in shown
        assert "assistant: Criterion of the wall" not in shown.partition("Pinned messages")[2].partition("</")[0]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_search_may_ask_for_messages_of_a_kind(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("The crane lifts 40 tons.")], kind="note")
        session.add_messages([HumanMessage("The crane lifts 50 tons.")], kind="critical_error")
        session.add_messages([HumanMessage("The crane lifts nothing today.")])

        def found(**asked: object) -> list[str]:
            return sorted(hit.text for hit in told(call_style, session.search, "crane lifts", **asked))

        assert found(kinds=["note"]) == ["The crane lifts 40 tons."]
        assert found(kinds=["note", "critical_error"]) == ["The crane lifts 40 tons.", "The crane lifts 50 tons."]
        assert found(kinds=["other"]) == []
        assert len(found()) == 3
        with pytest.raises(InvalidInputError):
            session.search("crane", kinds="note")

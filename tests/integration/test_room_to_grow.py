"""A condensed view of file work is left as full as pays, and musts stay whatever that is."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.settings import RoomSettings, Settings
from langchain_tiered_memory.types.outcomes import OutcomeKind
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory, quick_settings

BUDGET = 6000


def file_work(number: int, *, lines: int = 40) -> list[BaseMessage]:
    call = {"name": "read_file", "args": {"path": f"harbour/part_{number}.py"}, "id": f"c{number}"}
    text = "\n".join(f"crane_{number}_{line} = {line * number}" for line in range(lines))
    return [AIMessage("", tool_calls=[call], id=f"a{number}"), ToolMessage(text, tool_call_id=f"c{number}")]


def with_room(**room: object) -> Settings:
    return quick_settings().model_copy(update={"room": RoomSettings.model_validate(room)})


@pytest.mark.slow
@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("room", [{"extra_share": 0.0}, {"extra_share": 4.0}, {"grows_to": "limit"}])
@pytest.mark.sweep(1)
def test_musts_stay_and_each_condensation_frees_enough(call_style: CallStyle, room: dict[str, object]) -> None:
    with open_memory(settings=with_room(**room)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("Mend every crane.", id="goal")])
        for number in range(60):
            work = file_work(number)
            told(call_style, session.add_messages, work)
            told(call_style, session.flush)
            context = told(call_style, session.context, "", max_tokens=BUDGET)
            shown = [str(message.content) for message in context.messages]
            assert context.tokens <= BUDGET
            assert any("Mend every crane." in text for text in shown)
            assert shown[-1] == work[-1].content
        condensed = [one for one in session.outcomes() if one.kind is OutcomeKind.CONDENSED]
        assert condensed
        least = NUMBERS.least_progress_share * BUDGET
        assert all(one.tokens_before - one.tokens_after >= least for one in condensed)


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "most"), [(2500, 19), (4000, 14), (6000, 8)])
def test_file_work_leaves_a_small_window_room_to_grow(budget: int, most: int) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Mend every crane.", id="goal")])
        for number in range(60):
            session.add_messages(file_work(number, lines=20))
            session.flush()
            session.context("", max_tokens=budget)
        condensed = [one for one in session.outcomes() if one.kind is OutcomeKind.CONDENSED]
        assert 0 < len(condensed) <= most


@pytest.mark.slow
@pytest.mark.seldom(2)
def test_who_pays_more_has_more_in_view_and_who_pays_least_condenses_early() -> None:
    def average(**room: object) -> tuple[float, int]:
        with open_memory(settings=with_room(**room)) as memory:
            session = memory.session("s")
            session.add_messages([HumanMessage("Mend every crane.", id="goal")])
            tokens = []
            for number in range(80):
                session.add_messages(file_work(number))
                session.flush()
                tokens.append(session.context("", max_tokens=24_000).tokens)
            return sum(tokens) / len(tokens), max(tokens)

    least = average(extra_share=0.0, working_tokens=0, grows_to="limit")
    more = average(extra_share=0.5, working_tokens=0, grows_to="limit")
    cheapest = average(extra_share=0.0, working_tokens=0)
    at_hand = average(extra_share=0.0, working_tokens=6000)
    assert cheapest[0] < at_hand[0] < more[0]
    assert cheapest[0] < least[0] < more[0]
    assert cheapest[1] < 0.8 * least[1], "condensed before it had to be"


@pytest.mark.slow
@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("lines", range(285, 293))
def test_a_call_that_cannot_be_cut_takes_the_room_of_what_stands_before_it(call_style: CallStyle, lines: int) -> None:
    budget = 2000
    with open_memory(settings=quick_settings()) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("Mend every crane.", id="goal")])
        for number in range(14):
            told(call_style, session.add_messages, file_work(number, lines=12))
            told(call_style, session.flush)
            told(call_style, session.context, "", max_tokens=budget)
        text = "\n".join(f"crane_{line} = {line * 7}" for line in range(lines))
        call = {"name": "write_file", "args": {"path": "harbour/all.py", "content": text}, "id": "w"}
        result = "\n".join(f"ok {line}: written and checked" for line in range(30))
        told(
            call_style,
            session.add_messages,
            [AIMessage("", tool_calls=[call], id="a"), ToolMessage(result, tool_call_id="w")],
        )
        context = told(call_style, session.context, "", max_tokens=budget)
        assert context.tokens <= budget
        assert "shortened" in context.guard.steps
        assert [one.tool_calls[0]["id"] for one in context.messages if isinstance(one, AIMessage)][-1] == "w"


def test_settings_have_names_and_can_be_changed() -> None:
    assert Settings.named("balanced") == Settings()
    economy = Settings.named("economy")
    assert economy.room.extra_share < Settings().room.extra_share
    changed = economy.model_copy(update={"busy_seconds": 5.0})
    assert (changed.room, changed.busy_seconds) == (economy.room, 5.0)


@pytest.mark.parametrize("name", ["cheap", "", "Economy"])
def test_another_name_is_a_typed_error_that_names_them_all(name: str) -> None:
    with pytest.raises(SettingsError, match="'economy' or 'balanced'"):
        Settings.named(name)  # type: ignore[arg-type]

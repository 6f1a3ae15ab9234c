"""What is asked is found, however it is put; each text once, and within what the account tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from benchmarks import direct
from benchmarks.direct_words import FORMS, PORTS
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.types.outcomes import OutcomeKind
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import conversation, open_memory, open_prepared, quick_settings

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.protocols import TokenCounter

BARE = "Which port was decided for module_17.py?"
LOOK_UP = {"name": "look_up", "description": "", "parameters": {"type": "object", "properties": {}}}
BUDGET = 1000
NOISE = " ".join(f"part_{number} = build(number)" for number in range(20))


def worked(session: Session, *, files: int = 24) -> None:
    """An agent's run that reads files, in which a port is decided early on."""
    messages: list[BaseMessage] = []
    for number in range(files):
        if number == 5:
            messages += [HumanMessage("The port decided for module_17.py is 8117."), AIMessage("Noted.")]
        call = {"name": "read_file", "args": {"path": f"module_{number}.py"}, "id": f"c{number}"}
        messages += [
            HumanMessage(f"Please look at module_{number}.py."),
            AIMessage("", tool_calls=[call]),
            ToolMessage(f"module {number}\n{NOISE}", tool_call_id=f"c{number}", name="read_file"),
            AIMessage(f"module_{number}.py is fine."),
        ]
    session.add_messages(messages)
    session.flush()


def recalled(session: Session, asks: str, *, max_tokens: int = 2000) -> str:
    session.add_messages([HumanMessage(asks)])
    section = session.context(max_tokens=max_tokens).section("recall")
    return section.text if section is not None else ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", direct.KINDS)
@pytest.mark.parametrize("counter", [None, EstimatingCounter()], ids=["counted", "estimated"])
@pytest.mark.sweep(4)
def test_each_form_of_asking_is_answered_in_each_kind_of_run(kind: str, counter: TokenCounter | None) -> None:
    asked = direct.measure(PORTS, kinds=[kind], budgets=[1000, 4000], turns=60, facts=1, counter=counter)
    assert [one.form for one in asked if not one.found] == []
    assert {one.form for one in asked} == set(FORMS)


@pytest.mark.parametrize(
    "asks",
    [
        BARE,
        f"Hi! {BARE}",
        f"I am filling in the firewall form now. {BARE}",
        "Write the firewall rule for module_17.py's port.",
        f"{BARE}\n\n{chr(10).join(f'10:{number} ERROR worker gave up on request {number}' for number in range(20))}",
        "Welcher Port wurde f\u00fcr module_17.py festgelegt?",
    ],
)
def test_what_stands_beside_a_question_does_not_hide_its_answer(asks: str) -> None:
    with open_prepared(worked) as session:
        assert "8117" in recalled(session, asks)


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("tools", [[], [LOOK_UP]], ids=["talk", "loop"])
def test_a_question_whose_own_request_condenses_the_view_is_answered_from_what_left_it(
    call_style: CallStyle, tools: list[dict[str, Any]]
) -> None:
    with open_memory(settings=quick_settings()) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("The port decided for the north gate is 8117."), AIMessage("Noted.")])
        session.add_messages(conversation(18))
        session.flush()
        before = told(call_style, session.context, max_tokens=BUDGET, tools=tools)
        assert before.guard.outcome.kind is OutcomeKind.NOT_NEEDED
        log = "\n".join(f"10:{number} ERROR worker gave up on request {number}" for number in range(30))
        session.add_messages([HumanMessage(f"{log}\n\nWhich port was decided for the north gate?")])
        for _ in range(2):
            context = told(call_style, session.context, max_tokens=BUDGET, tools=tools)
            assert "8117" in "\n".join(one.text for one in context.messages if "<recalled>" in one.text)


@pytest.mark.parametrize("said", ["Thanks!", "Ok, go on.", "Great, thank you so much!", "Go ahead."])
def test_what_asks_for_nothing_older_brings_nothing_back(said: str) -> None:
    with open_prepared(worked) as session:
        assert not recalled(session, said)


def alike(session: Session) -> None:
    """Many statements of one kind."""
    said = [f"Maria lives in Town{number % 9} since {number}." for number in range(150)]
    session.add_messages([one for text in said for one in (HumanMessage(text), AIMessage("I see."))])
    session.flush()


@pytest.mark.slow
def test_a_question_mark_makes_no_difference_where_all_is_asked_for() -> None:
    taken = []
    for mark in ("", "?"):
        with open_prepared(alike) as session:
            taken.append(len(recalled(session, f"remind me which town Maria lives in{mark}")))
    assert taken[0] == taken[1] > 0


def test_a_callers_question_has_its_share_in_a_tool_loop_too() -> None:
    with open_prepared(worked) as session:
        tool = {"name": "read_file", "description": "", "parameters": {"type": "object", "properties": {}}}
        sections = {}
        for tools in ([], [tool]):
            section = session.context("module port is fine", max_tokens=2000, tools=tools).section("recall")
            assert section is not None
            sections[bool(tools)] = section
        share = session.core.runtime.settings.context.recall_share * 2000
        assert all(one.tokens > 0.6 * share and one.cap > 0.9 * share for one in sections.values())


@pytest.mark.parametrize("is_shown", [False, True])
def test_equal_texts_are_recalled_once_and_not_where_one_is_shown(*, is_shown: bool) -> None:
    text = "The port decided for module_17.py is 8117."
    with open_memory(settings=quick_settings()) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Begin."), AIMessage("Gladly.")])
        for at in range(4):
            session.add_messages([HumanMessage(text, id=f"told{at}"), AIMessage("Noted.")])
        worked(session, files=16)
        if is_shown:
            session.add_messages([HumanMessage(text, id="shown"), AIMessage("I see.")])
        session.add_messages([HumanMessage(BARE)])
        section = session.context(max_tokens=1000).section("recall")
        quoted = [one for one in section.entry_ids if one.startswith("told")] if section is not None else []
        assert len(quoted) == (0 if is_shown else 1)


def test_a_search_ranks_the_answer_before_earlier_askings_and_gives_each_text_once() -> None:
    with open_prepared(worked) as session:
        for before in ("", "", "I am filling in the form. ", "Hello. "):
            session.add_messages([HumanMessage(before + BARE), AIMessage("I do not know.")])
        texts = [hit.text for hit in session.search(BARE, k=10, levels=[0])]
        assert texts[0] == "The port decided for module_17.py is 8117."
        assert len(texts) == len(set(texts))
        assert all("8117" in text or texts.index(text) > 0 for text in texts if text.endswith(BARE))


def test_the_account_tells_what_bound_recall() -> None:
    with open_prepared(worked) as session:
        session.add_messages([HumanMessage("what about port module")])
        context = session.context(max_tokens=4000)
        section = context.section("recall")
        assert section is not None
        free = 4000 - context.tokens + section.tokens
        assert section.tokens <= section.cap <= min(0.25 * 4000, free)

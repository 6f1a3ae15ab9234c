"""What answers stands in view wherever there is room for it, and what is said in the same words counts once."""

from __future__ import annotations

import json
import random

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.settings import Settings, TreeSettings
from langchain_tiered_memory.testing import FrozenClock
from tests.memory_builders import NOW, open_memory

LOG = "\n".join(
    f"2024-03-0{n % 9 + 1} 1{n % 10}:0{n % 6}:22 INFO worker-{n} handled request in {n}7 ms" for n in range(14)
)
TOOL = {"type": "function", "function": {"name": "list_tables", "description": "Lists the tables."}}


def shown(messages: list[BaseMessage], asked: str, *, max_tokens: int, tools: list[object] | None = None) -> str:
    with open_memory(clock=FrozenClock(NOW), settings=Settings(tree=TreeSettings(background=False))) as memory:
        session = memory.session("s")
        session.add_messages(messages)
        session.add_messages([HumanMessage(asked)])
        context = session.context(max_tokens=max_tokens, tools=tools or [])
        assert context.tokens <= max_tokens
        return "\n".join(str(one.text) for one in context.messages)


def queried(number: int, rows: str) -> list[BaseMessage]:
    call = {"id": f"c{number}", "name": "run_sql", "args": {"query": f"select * from orders_{number}"}}
    return [
        HumanMessage(f"Run query {number}."),
        AIMessage("", tool_calls=[call]),
        ToolMessage(rows, tool_call_id=f"c{number}", name="run_sql"),
        AIMessage("Done."),
    ]


def small_talk(count: int) -> list[BaseMessage]:
    said = ("did the post come", "the dog is at the vet", "who won the match", "it rains again")
    pairs = ((HumanMessage(f"{said[n % 4]} {n}"), AIMessage("I see.")) for n in range(count))
    return [message for pair in pairs for message in pair]


@pytest.mark.parametrize("max_tokens", [1000, 4000])
@pytest.mark.parametrize("asked", [f"{{}}\n\n{LOG}", f"{LOG}\n\n{{}}"])
def test_an_output_that_answers_comes_before_those_that_a_pasted_log_brings_back(asked: str, max_tokens: int) -> None:
    chance, runs = random.Random(3), list[BaseMessage]()
    for number in range(30):
        rows = [f"| 2024-03-0{chance.randint(1, 9)} | {chance.randint(10, 99)} | ok |" for _ in range(10)]
        runs += queried(number, "\n".join([*rows, "| Greater Denning | 50936 | ok |"] if number == 7 else rows))
    text = shown(runs, asked.format("What was the revenue of Greater Denning?"), max_tokens=max_tokens)
    assert "50936" in text


@pytest.mark.parametrize("max_tokens", [1000, 4000])
@pytest.mark.parametrize(
    "asked",
    [
        "Who is the assignee of OPS-7?",
        "Draft a message to the assignee of OPS-7, by name.",
        "assignee of OPS-7 again please",
        (
            "Given that the train leaves in an hour and nobody in the channel reacts to anything I post I need to "
            "find out who the assignee of OPS-7 is according to the tracker so that I can call that person"
        ),
    ],
)
def test_what_a_tool_gave_answers_however_it_is_asked_for(asked: str, max_tokens: int) -> None:
    names = ("kim", "lee", "pat", "sam")
    said = ("Post a message in the channel.", "Call that person by name.", "The train leaves in an hour.")
    runs: list[BaseMessage] = [one for text in said for one in (HumanMessage(text), AIMessage("Done."))]
    for number in range(1, 90):
        name = "Thandiwe" if number == 7 else names[number % 4]
        call = {"id": f"c{number}", "name": "jira-cloud.get-issue", "args": {"issueKey": f"OPS-{number}"}}
        gave = (
            f'{{"key": "OPS-{number}", "fields": {{"assignee": "{name}", "status": "Open", "points": {number % 8}}}}}'
        )
        runs += [
            HumanMessage(f"Look up OPS-{number}."),
            AIMessage("", tool_calls=[call]),
            ToolMessage(gave, tool_call_id=call["id"], name=call["name"]),
            AIMessage("Fetched."),
        ]
    assert "Thandiwe" in shown(runs, asked, max_tokens=max_tokens)


@pytest.mark.parametrize(
    "beside",
    [
        {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"},
        {"type": "reasoning", "reasoning": "I weigh what was seen at the pond against the list of last year. " * 90},
    ],
)
def test_a_picture_or_a_thought_is_no_price_of_the_words_beside_it(beside: dict[str, str]) -> None:
    said = [f"This one is better, frame {number}." for number in range(40)]
    said[4] = "This is the bittern, its ring number is 8402."
    words = [[{"type": "text", "text": one}, beside] for one in said]
    pairs = (
        (HumanMessage("And?"), AIMessage(one[::-1]))
        if "reasoning" in beside
        else (HumanMessage(one), AIMessage("Nice."))
        for one in words
    )
    messages = [message for pair in pairs for message in pair]
    text = shown(messages, "Which ring number had the bittern?", max_tokens=1000)
    assert "8402" in text
    assert "reasoning" not in beside or said[-1] in text


@pytest.mark.parametrize("tools", [[], [TOOL]])
@pytest.mark.parametrize(
    "asked", ["Add up all repair costs of Wexcombe House.", "What did repairs of Wexcombe House cost?"]
)
def test_all_that_answers_is_shown_where_room_is_free(asked: str, tools: list[object]) -> None:
    told = small_talk(240)
    for number in range(40):
        told[number * 12 : number * 12] = [
            HumanMessage(f"For Wexcombe House the repair {number} cost {70_000 + number}")
        ]
    text = shown(told, asked, max_tokens=2000, tools=tools)
    assert sum(str(70_000 + number) in text for number in range(40)) == 40


@pytest.mark.parametrize(
    "again", ["the  code of the depot is 7731", "**The code of the depot is 7731.**", "The code of the depot is 7731!"]
)
def test_the_same_words_count_once_whatever_their_case_and_marks(again: str) -> None:
    said = "The code of the depot is 7731."
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        for number in range(6):
            session.add_messages([HumanMessage(again if number % 2 else said), AIMessage("Noted."), *small_talk(12)])
        session.flush()
        assert sum("7731" in hit.text for hit in session.search("code of the depot", levels=[0])) == 1
        assert sum("7731" in fact.text for fact in session.facts()) == 1
        session.add_messages([HumanMessage("What is the code of the depot?")])
        recalled = session.context(max_tokens=1000, view="recall")
    assert sum(str(one.text).count("7731") for one in recalled.messages) == 1


def test_code_that_differs_in_a_mark_alone_is_two_things() -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        session.add_messages([AIMessage("```\nlimit = [depot]\n```"), AIMessage("```\nlimit = (depot)\n```")])
        assert len(session.search("limit depot", levels=[0])) == 2


def test_who_only_asked_in_other_words_is_found_behind_what_answers() -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        session.add_messages(
            [HumanMessage("they changed it, the depot in the north has the new code 7731 from monday on")]
        )
        session.add_messages(
            [HumanMessage(f"Would Jon know the code of the depot in the {one}?") for one in ("north", "north now")]
        )
        session.add_messages(small_talk(40))
        assert "7731" in session.search("What is the code of the depot in the north?", levels=[0])[0].text


def registers(rows: int) -> list[BaseMessage]:
    """Twenty pages of a table, of which the eighth tells in its midst what Tolsta Wharf takes."""
    chance, runs = random.Random(5), list[BaseMessage]()
    ports = [
        f"{port} {kind}" for port in ("Calder", "Morvern", "Tolsta", "Hirta") for kind in ("Sound", "Bank", "Ness")
    ]
    for number in range(20):
        page = [f"{number},{chance.choice(ports)},{chance.randint(11000, 98000)}" for _ in range(rows)]
        if number in {7, 15}:
            page.insert(rows // 2, f"{number},Tolsta Wharf,50936" if number == 7 else f"{number},Hirta Wharf,20000")
        runs += queried(number, "\n".join(["page,name,berth_fee", *page]))
    return runs


@pytest.mark.parametrize("rows", [12, 60, 300])
@pytest.mark.parametrize("max_tokens", [1000, 4000])
def test_a_row_of_a_long_table_answers_by_what_the_head_says_of_its_columns(rows: int, max_tokens: int) -> None:
    asked = "What is the berth fee of Tolsta Wharf?"
    assert "50936" in shown([*registers(rows), *small_talk(40)], asked, max_tokens=max_tokens)


def pages_of(form: str) -> list[BaseMessage]:
    """Thirty pages of a register in one form, of which the twelfth tells in its midst what Calder Quay takes."""
    chance, runs = random.Random(7), list[BaseMessage]()
    ports = [f"{port} {kind}" for port in ("Calder", "Morvern", "Tolsta") for kind in ("Sound", "Bank", "Ness")]

    def record(name: str, fee: int) -> dict[str, object]:
        return {
            "name": name,
            "berth_fee": fee,
            "depth": chance.randint(2, 19),
            "lights": chance.choice(["red", "green"]),
        }

    for number in range(30):
        page = [record(chance.choice(ports), chance.randint(11000, 98000)) for _ in range(40)]
        # One page has both words of the name far from each other.
        page[20] = (
            record("Calder Quay", 50936) if number == 12 else record(f"Skerry {chance.choice(['Quay', 'Ness'])}", 1)
        )
        if form == "one line":
            told = json.dumps(page)
        elif form == "lines":
            told = json.dumps(page, indent=1)
        else:
            told = "\n".join(
                f"{str(one['name']).replace(' ', '.').lower()}.berth_fee = {one['berth_fee']}" for one in page
            )
        runs += queried(number, told)
    return runs


@pytest.mark.parametrize("form", ["one line", "lines", "key = value"])
@pytest.mark.parametrize(
    "asked",
    [
        "What is the berth fee of Calder Quay?",
        "berth fee of Calder Quay again please",
        "Since nobody noted it I would be glad to hear once more which berth fee you found for Calder Quay by then",
        "Wie hoch ist die Liegegeb\u00fchr von Calder Quay?",
    ],
)
def test_a_name_answers_where_its_words_stand_side_by_side(form: str, asked: str) -> None:
    for max_tokens in (1000, 4000):
        assert "50936" in shown([*pages_of(form), *small_talk(40)], asked, max_tokens=max_tokens)

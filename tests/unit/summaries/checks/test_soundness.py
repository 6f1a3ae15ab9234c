"""Whether a text can stand for its sources, judged by its words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from langchain_tiered_memory.settings import ValidationSettings
from langchain_tiered_memory.summaries.checks.soundness import soundness, unsound
from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, SourceText
from langchain_tiered_memory.types.records import Fact

SOURCES = (
    "We need to move the invoice service to the new cluster before 14 March.",
    "The staging database still runs PostgreSQL 13; version 16 is what production has.",
    "Tamsin will order two more load balancers, the budget for them is 8,400 euros.",
    "Let's keep the nightly export at 02:30, the auditors depend on it.",
    "I tried the rollback script and it failed with ERR_4471 on the ledger table.",
    "Then we decide: no rollback without a snapshot, and Bram signs each one off.",
)
LOREM = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore. " * 40
GERMAN = (
    "Wir müssen den Rechnungsdienst bis zum 14. März auf den neuen Rechnerverbund bringen.",
    "Die Datenbank der Testumgebung läuft noch mit Version 13, die Produktion mit 16.",
    "Tamsin bestellt zwei weitere Lastverteiler, dafür sind 8.400 Euro vorgesehen.",
    "Ohne Sicherung wird nichts zurückgerollt, und Bram zeichnet jeden Vorgang ab.",
)


def fault(text: str, sources: tuple[str, ...] = SOURCES, *, target_tokens: int = 120) -> str | None:
    found = soundness(text, sources, ("Tamsin", "Bram"), target_tokens=target_tokens)
    return unsound(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOREM, "ungrounded"),
        ("The crew repainted the lighthouse and sailed north with the tide, singing about whales.", "ungrounded"),
        ("I would rather leave this to somebody with access to such records, sorry.", "ungrounded"),
        ("Die Mannschaft hat den Kran geprüft und alle Schrauben im Lager gefunden.", "ungrounded"),
        ("## Overview\n\n## Key points\n\n## Decisions\nNone.\n", "ungrounded"),
        ("The user asked a question and the assistant answered it.", "ungrounded"),
        ("They talked about the budget again", "says too little"),
        (SOURCES[0], "one source"),
    ],
)
def test_what_has_nothing_to_do_with_its_sources_is_unsound(text: str, expected: str) -> None:
    found = soundness(text, SOURCES, target_tokens=120)
    assert unsound(found) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The invoice service moves to the new cluster by mid-March. Production is on PostgreSQL 16, staging is behind.",
        (
            "## Decisions\n- Rolling back requires a snapshot, approved by Bram.\n## Key points\n- Tamsin buys some"
            " (8,400 euros).\n- The rollback attempt broke on the ledger table (ERR_4471)."
        ),
    ],
)
def test_other_words_for_the_same_are_sound(text: str) -> None:
    assert fault(text) is None


def test_other_words_in_another_language_than_english_are_sound() -> None:
    told = (
        "Der Dienst für Rechnungen zieht im März um. Tamsin kauft Lastverteilung, Rückrollen nur mit Sicherung (Bram)."
    )
    assert fault(told, GERMAN) is None
    assert fault(LOREM, GERMAN) == "ungrounded"


@pytest.mark.parametrize(
    "text", ["They greeted each other.", "Small talk between friends.", "The two exchanged pleasantries and said bye."]
)
def test_small_talk_may_be_told_in_any_words(text: str) -> None:
    chat = ("Hey! Good to see you!", "You too! How have you been?", "Fine, thanks. Lovely weather.", "Bye then!")
    assert fault(text, chat) is None
    assert fault(LOREM, chat) == "ungrounded"


SAID_IN_PASSING = (
    "Let the crowd wait", "It makes them hungry", "They surely know", "By now", "Well",
    "Nobody at our table ordered the trout", "They said the dish was dry and tasted like leftovers",
    "I can't stand dishes that are just leftovers of other dishes",
    "Grandma's stew was leftovers but it didn't taste like it",
    "Probably one of the best dishes she ever cooked",
)  # fmt: skip


def test_of_a_line_with_few_terms_a_few_other_words_decide_nothing() -> None:
    honest = (
        "- The user rejects meals made from remains, such as the trout by hearsay, and enjoyed grandma's stew as "
        "remains that had another flavour."
    )
    strange = "- The user grows tomatoes on the balcony and asks which fertiliser keeps the leaves green in summer."
    found = soundness(honest, SAID_IN_PASSING, are_messages=True, target_tokens=40)
    assert found.grounded < 0.4
    assert unsound(found) is None
    assert fault(strange, SAID_IN_PASSING, target_tokens=40) == "ungrounded"


def test_a_single_message_that_says_nearly_everything_may_be_repeated() -> None:
    main = " ".join(SOURCES)
    assert fault(main, (main, "Thanks!", "Got it.", "Great, talk later."), target_tokens=200) is None


def test_of_sources_too_long_to_be_read_nothing_is_called_unsound() -> None:
    assert fault(LOREM, ("word " * 300_000,)) is None


def test_a_long_listing_among_few_messages_may_be_told_in_a_line() -> None:
    listing = "\n".join(
        f"-rw-r--r-- root root {at * 137} Jan {at % 28 + 1} module_{at}_{at * 7}.py" for at in range(120)
    )
    sources = ["What is in this folder?", "Let me list it.", listing, "It has 120 Python modules.", "Good."]
    told = "The user asked what the folder contains. It was listed: 120 Python modules."
    as_messages = soundness(told, sources, are_messages=True)
    as_summaries = soundness(told, sources)
    assert unsound(as_messages) is None
    assert unsound(as_summaries) == "says too little"
    half = soundness("What is in", sources, are_messages=True)
    assert unsound(half) is not None


def test_messages_in_which_nothing_in_particular_is_said_may_be_told_in_a_line() -> None:
    said = (
        "Haha yeah! They're all set for their next outdoor adventure!",
        "Aw man, can't wait to meet them! They seem like a blast!",
        "Yeah, they definitely do! They really are a lot of fun.",
        "Oh I'm sure, dogs definitely add lots of fun to our daily life.",
        "Yep! They bring me so much joy. Can't get bored at all.",
        "Aww, they look adorable playing in the park! Seeing them have so much fun must be so rewarding.",
        "Yeah it sure does. Seeing them so happy and bouncy makes me really happy.",
        "They make everyone smile. Can't wait to go hiking with them!",
    )
    sources = tuple(
        SourceText(id=f"m{n}", text=text, tokens=14, at=0.0, seq=n, role="user") for n, text in enumerate(said, 1)
    )
    port = Fact(kind="number", text="The port is 8443.", seq=1, at=0.0, subject="port", weight=0.9)

    def judged(*facts: Fact, text: str = "- Ann and Ben plan a hike with dogs.") -> str | None:
        one = CondenseJob(
            level=1, strategy="detailed", sources=sources, facts=facts, target_tokens=90, max_tokens=110,
            session_id="s", title=None, participants=("Ann", "Ben"), first_at=0.0, last_at=0.0, message_count=8,
        )  # fmt: skip
        return one.unsound(text, ValidationSettings())

    assert judged() is None
    assert judged(port) == "says too little"
    nothing = "## Overview\n- Small talk only; nothing was decided."
    assert judged(text=nothing) is None
    assert judged(port, text=nothing) == "ungrounded"
    assert judged(text="- Ben (12 May): Yep! They bring me so") == "says too little", "half a sentence"
    assert judged(text=said[5]) == "one source"
    other = "- The board of the bank approved loans for steel mills after a quarter of falling freight rates in Asia."
    assert judged(text=other) == "ungrounded"


def test_what_is_no_small_talk_is_told_by_its_own_words_though_rules_find_nothing_in_it() -> None:
    for said in (
        (
            "The gateway throws an exception when the scheduler restarts.",
            "I moved the retry logic out of the handler into a decorator.",
            "Then the worker should requeue the job and log each failure.",
            "Yes, and the queue keeps a lock while the schema migrates.",
            "The dashboard reads stale metrics until the cache expires.",
        ),
        (
            "Der Vermieter kommt morgen wegen der kaputten Heizung.",
            "Meine Operation wurde verschoben, der Arzt ruft an.",
            "Lena ist allergisch gegen Nüsse und verträgt keine Milch.",
            "Gut, dann kaufe ich andere Kekse beim Bäcker am Markt.",
            "Das Auto steht in der Werkstatt, die Bremsen quietschen.",
        ),
    ):
        sources = tuple(
            SourceText(id=f"m{n}", text=text, tokens=14, at=0.0, seq=n, role="user") for n, text in enumerate(said, 1)
        )
        job = CondenseJob(
            level=1, strategy="detailed", sources=sources, facts=(), target_tokens=90, max_tokens=110,
            session_id="s", title=None, participants=(), first_at=0.0, last_at=0.0, message_count=5,
        )  # fmt: skip
        for text in ("- Bananas are yellow and monkeys swim.", "- They talked.", "- The team chose PostgreSQL."):
            assert job.unsound(text, ValidationSettings()) is not None


def test_a_name_that_stands_in_a_message_beside_the_sources_is_known() -> None:
    def source(number: int, text: str) -> SourceText:
        return SourceText(id=f"m{number}", text=text, tokens=14, at=0.0, seq=number, role="user")

    said = (
        "I did play that one too, and then it kept calling me lazy.",
        "Nous avons abandonn\u00e9 la piscine, trop ch\u00e8re, ce sera un potager.",
        "You could ask your friends if they make you the leader.",
        "Maybe, at least I would get some things before they take it all.",
    )
    job = CondenseJob(
        level=1, strategy="detailed", sources=tuple(source(n, text) for n, text in enumerate(said, 5)), facts=(),
        target_tokens=60, max_tokens=80, session_id="s", title=None, participants=(), first_at=0.0, last_at=0.0,
        message_count=4,
    )  # fmt: skip
    text = (
        "- User's pool: given up, costs much; a vegetable garden instead\n"
        "- Assistant quit Harbour Lantern Keeper after being called lazy; user suggested becoming leader."
    )
    assert job.unsound(text, ValidationSettings()) == "ungrounded"
    beside = replace(job, beside=(source(1, "These days I mostly play Harbour Lantern Keeper."),))
    assert beside.unsound(text, ValidationSettings()) is None
    strange = "- The board of the bank approved loans for Harbour Lantern Keeper as freight rates fell in Asia."
    assert beside.unsound(strange, ValidationSettings()) is not None

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.summaries.fact_lists import cap_facts, render_facts
from langchain_tiered_memory.summaries.fact_merge import merge_facts
from langchain_tiered_memory.summaries.facts import extract_facts, shorten
from langchain_tiered_memory.types.records import Entry, Fact, FactKind, Role


def entry(seq: int, text: str, *, role: Role = "user", name: str | None = None) -> Entry:
    return Entry(
        seq=seq, id=f"m{seq}", role=role, text=text, payload="", digest="", tokens=len(text) // 4, at=60.0 * seq,
        name=name, track="main", kind=None, task=None, calls=(), answers=None, group=seq, pinned=False, revision=0,
        summary_id=None,
    )  # fmt: skip


def fact(text: str, *, kind: FactKind = "number", seq: int = 1, subject: str = "", by: Role = "other") -> Fact:
    return Fact(kind=kind, text=text, seq=seq, at=0.0, subject=subject, by=by)


def said(*texts: str) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in extract_facts([entry(seq, text) for seq, text in enumerate(texts, 2)])]


def words(text: str) -> int:
    return len(text.split())


facts = st.lists(
    st.builds(
        fact,
        st.from_regex(r"\A[a-z]{2,8}( [a-z]{2,8}){1,6} [0-9]{2,4}\.\Z"),
        kind=st.sampled_from(["goal", "constraint", "decision", "number", "path", "identifier", "question"]),
        seq=st.integers(1, 50),
        subject=st.sampled_from(["", "port", "budget", "api port"]),
        by=st.sampled_from(["user", "assistant", "tool", "other"]),
    ),
    max_size=12,
)


def test_the_ask_of_the_first_user_message_is_the_goal() -> None:
    found = extract_facts([entry(1, "Hi there! I want to build a billing service for our clinic.")])
    assert [(one.kind, one.text) for one in found] == [("goal", "I want to build a billing service for our clinic.")]


def test_a_later_ask_is_not_taken_for_the_goal() -> None:
    assert said("Can you also rename that variable for me?") == []


def test_a_full_name_a_figure_or_a_path_beside_its_thing_is_kept() -> None:
    assert said(
        "Imke Hallberg looks after the coastal ferry.",
        "They want 4300 euros for the coastal ferry.",
        "Have a look at plans/drafts/ferry_12.md before the meeting.",
    ) == [
        ("identifier", "Imke Hallberg looks after the coastal ferry."),
        ("number", "They want 4300 euros for the coastal ferry."),
        ("path", "Have a look at plans/drafts/ferry_12.md before the meeting."),
    ]


def test_a_proverb_or_a_place_with_an_article_is_no_fact() -> None:
    assert (
        said("One should never trust a cold stove.", "The Grand Canyon was lovely.", "Hey Mel, how is the dog?") == []
    )


def test_long_advice_of_an_assistant_yields_no_mentions() -> None:
    advice = "Ask Imke Hallberg about the coastal ferry. " + "One could also think about it for a while. " * 20
    assert extract_facts([entry(2, advice, role="assistant")]) == []
    assert len(extract_facts([entry(2, advice[:43], role="assistant")])) == 1


def test_a_correction_finds_the_name_and_the_path_that_it_corrects() -> None:
    assert said("Imke Hallberg looks after the coastal ferry.", "Actually the coastal ferry is with Emre Tamm.") == [
        ("identifier", "Actually the coastal ferry is with Emre Tamm.")
    ]
    assert said(
        "I put the ferry rota into a/b/c.md.", "Scratch what I said about the ferry rota: it is d/e/f.md now."
    ) == [("path", "Scratch what I said about the ferry rota: it is d/e/f.md now.")]


def test_a_figure_that_is_only_mentioned_takes_nothing_back() -> None:
    assert (
        len(said("They want 4300 euros for the coastal ferry.", "It took 300 hours to get the coastal ferry home."))
        == 2
    )


def test_small_talk_has_no_goal() -> None:
    assert extract_facts([entry(1, "Hey Mel! Good to see you! How have you been lately?")]) == []


def test_orders_and_limits_are_constraints() -> None:
    assert said(
        "Never store card numbers.", "The answer must stay under 200 words.", "Use at most 3 retries please."
    ) == [
        ("constraint", "Never store card numbers."),
        ("constraint", "The answer must stay under 200 words."),
        ("constraint", "Use at most 3 retries please."),
    ]


def test_idioms_are_no_constraints() -> None:
    assert (
        said("You must be so proud!", "Never mind, it is fine.", "Don't worry about that.", "I always love the beach.")
        == []
    )


def test_decisions_are_kept_with_their_reason() -> None:
    assert said("We decided to use Postgres because it is boring.") == [
        ("decision", "We decided to use Postgres because it is boring.")
    ]


def test_ordinary_chat_yields_nothing() -> None:
    assert (
        said("Wow, that is great!", "We went to the lake and swam a lot.", "How was the party?", "I had two coffees.")
        == []
    )


def test_what_a_tool_or_a_system_prompt_says_is_no_fact() -> None:
    assert (
        extract_facts([entry(1, "Never tell the user.", role="tool"), entry(2, "You must obey.", role="system")]) == []
    )


def test_a_correction_takes_the_place_of_what_it_corrects() -> None:
    assert said("The port is 8080 for now.", "Actually the port is 8443, not 8080.") == [
        ("number", "Actually the port is 8443, not 8080.")
    ]


def test_a_correction_that_names_nothing_inherits_the_subject() -> None:
    found = extract_facts([entry(2, "The port is 8080."), entry(3, "Sorry, it's 8443, not 8080.")])
    assert [(one.subject, one.text) for one in found] == [("port", "Sorry, it's 8443, not 8080.")]
    assert "(port)" in render_facts(found)


def test_a_newer_figure_supersedes_a_wider_description_of_the_same_thing() -> None:
    assert said("Our budget for the launch is 10,000 euros.", "The budget is now 12,000.") == [
        ("number", "The budget is now 12,000.")
    ]


def test_figures_of_two_things_stay_beside_each_other() -> None:
    assert len(said("The api port is 8080.", "The database port is 5432.")) == 2


def test_an_ambiguous_correction_supersedes_nothing() -> None:
    assert len(said("The api port is 8080.", "The database port is 5432.", "The port is now 9000.")) == 3


def test_a_decision_is_replaced_by_the_one_that_takes_it_back() -> None:
    assert said("We decided to use Postgres for the store.", "Let's use SQLite instead of Postgres for the store.") == [
        ("decision", "Let's use SQLite instead of Postgres for the store.")
    ]


def test_two_decisions_about_one_thing_both_stand_without_a_correction() -> None:
    assert len(said("We decided to hire Ann for the team.", "We decided to buy a plotter for the team.")) == 2


def test_near_equal_facts_are_told_once() -> None:
    merged = merge_facts(
        [fact("We agreed to ship the reports on Friday", kind="decision")],
        [fact("we agreed to ship the reports on Friday!", kind="decision", seq=5)],
    )
    assert [one.seq for one in merged] == [1]


def test_a_negation_is_not_near_equal() -> None:
    merged = merge_facts(
        [fact("We agreed to ship the big reports on Friday", kind="decision")],
        [fact("We agreed not to ship the big reports on Friday", kind="decision", seq=5)],
    )
    assert len(merged) == 2


def test_a_long_sentence_is_shortened_around_its_cue() -> None:
    text = "well " * 60 + "we decided to use Rust " + "and so on " * 60
    (found,) = extract_facts([entry(2, text)])
    assert "we decided to use Rust" in found.text
    assert len(found.text.split()) <= 41


def test_a_pasted_log_does_not_crowd_out_the_rest() -> None:
    log = "\n".join(f"the value{letter} is {number}00" for number, letter in enumerate("abcdefghijkl", 1))
    assert len(extract_facts([entry(2, log)])) <= 6


def test_goal_constraints_and_decisions_stay_ahead_of_figures() -> None:
    many = [fact(f"the size of part {letter} is {n}00", seq=n) for n, letter in enumerate("abcdefgh", 1)]
    listed = [
        fact("I want a parser", kind="goal"), fact("Never use eval", kind="constraint", seq=2), *many,
        fact("We chose Rust", kind="decision", seq=3),
    ]  # fmt: skip
    kept, overflow = cap_facts(listed, max_tokens=25, count_text=words)
    assert {"goal", "constraint", "decision"} <= {one.kind for one in kept}
    assert [one for one in listed if one in kept] == kept
    assert len(overflow) + len(kept) == len(listed)


def test_what_stays_of_a_list_is_spread_over_its_span() -> None:
    listed = [fact(f"the size of part {n} is {n}00", seq=n, by="user") for n in range(1, 41)]
    kept, _ = cap_facts(listed, max_tokens=66, count_text=words)
    quarters = {(one.seq - 1) // 10 for one in kept}
    assert quarters == {0, 1, 2, 3}


def test_corrections_stay_before_other_facts_and_people_before_assistants() -> None:
    listed = [fact(f"the size of part {n} is {n}00", seq=n, by="assistant") for n in range(1, 21)]
    listed += [fact("actually the port is 8443", seq=21, by="user"), fact("the cost is 400", seq=22, by="user")]
    kept, _ = cap_facts(listed, max_tokens=16, count_text=words)
    assert [one.seq for one in kept] == [21, 22]


def test_no_kind_takes_all_the_room() -> None:
    listed = [fact(f"Never do the thing number {n}", kind="constraint", seq=n) for n in range(10, 30)]
    kept, _ = cap_facts([*listed, fact("the port is 8443", seq=40)], max_tokens=40, count_text=words)
    assert "number" in {one.kind for one in kept}


@given(facts, st.integers(0, 80))
def test_kept_facts_fit_as_rendered_and_none_is_lost(listed: list[Fact], most: int) -> None:
    kept, overflow = cap_facts(listed, max_tokens=most, count_text=words)
    assert words(render_facts(kept)) <= most or not kept
    assert sorted(map(repr, [*kept, *overflow])) == sorted(map(repr, listed))


@pytest.mark.slow
@given(facts, facts)
def test_merging_invents_nothing_and_is_settled_after_once(older: list[Fact], newer: list[Fact]) -> None:
    merged = merge_facts(older, newer)
    assert {one.text for one in merged} <= {one.text for one in (*older, *newer)}
    assert [one.seq for one in merged] == sorted(one.seq for one in merged)
    assert merge_facts(merged, []) == merged


@given(st.lists(st.text(max_size=200), max_size=5))
def test_every_fact_is_a_piece_of_its_entry(texts: list[str]) -> None:
    entries = [entry(seq, text) for seq, text in enumerate(texts, 1)]
    for one in extract_facts(entries):
        source = " ".join(entries[one.seq - 1].text.split())
        assert " ".join(one.text.strip("\u2026").split()) in source


@given(st.text(max_size=900), st.integers(0, 100))
def test_a_shortened_sentence_is_short_and_verbatim(text: str, start: int) -> None:
    short = shorten(text, around=(start, start + 5))
    assert len(short) <= 322
    assert short.strip("\u2026").strip() in text


def test_a_fact_says_who_said_it() -> None:
    entries = [entry(2, "We decided to use Postgres."), entry(3, "We agreed on the harbour plan.", role="assistant")]
    assert [one.by for one in extract_facts(entries)] == ["user", "assistant"]


def test_what_an_assistant_said_does_not_look_like_the_users_own() -> None:
    lines = render_facts(
        [
            fact("the port is 8443", by="user"),
            fact("it is 9000", subject="budget", by="assistant", seq=2),
            fact("found in a/b.py", kind="path", by="tool", seq=3),
            fact("kept before facts had a speaker", kind="decision", seq=4),
        ]
    ).splitlines()
    assert lines[1:] == [
        "Decisions:",
        "kept before facts had a speaker",
        "Figures:",
        "the port is 8443",
        "Figures (assistant):",
        "(budget) it is 9000",
        "Paths (tool):",
        "found in a/b.py",
    ]


def test_an_assistant_does_not_take_back_what_its_user_said() -> None:
    said = fact("The port is 8080 for now.", subject="port", by="user")
    claims = fact("Actually the port is 8443, not 8080.", subject="port", by="assistant", seq=2)
    assert merge_facts([said], [claims]) == [said, claims]
    corrects = fact("Actually the port is 8443, not 8080.", subject="port", by="user", seq=3)
    assert merge_facts([said], [corrects]) == [corrects]


def test_a_user_takes_back_what_an_assistant_said() -> None:
    claims = fact("The port is 8080.", subject="port", by="assistant")
    corrects = fact("No, the port is 8443.", subject="port", by="user", seq=2)
    assert merge_facts([claims], [corrects]) == [corrects]


def test_what_the_user_confirms_is_the_users_own() -> None:
    claims = fact("We agreed to ship on Friday", kind="decision", by="assistant", subject="ship")
    confirms = fact("we agreed to ship on Friday!", kind="decision", by="user", seq=2)
    (kept,) = merge_facts([claims], [confirms])
    assert (kept.by, kept.seq, kept.subject) == ("user", 2, "ship")
    assert merge_facts([confirms], [fact("We agreed to ship on Friday", kind="decision", by="assistant", seq=3)]) == [
        confirms
    ]


def test_the_users_new_figure_replaces_both_the_users_old_one_and_the_assistants() -> None:
    old = fact("The port is 8080.", subject="port", by="user")
    claims = fact("The port is 8443.", subject="port", by="assistant", seq=2)
    new = fact("The port is 9000.", subject="port", by="user", seq=3)
    confirms = fact("the port is 8443", subject="port", by="user", seq=3)
    assert merge_facts([old, claims], [new]) == [new]
    assert merge_facts([old, claims], [confirms]) == [confirms]

"""A measure sees the text that is shown, not what is kept beside it."""

from langchain_tiered_memory.settings import ValidationSettings
from langchain_tiered_memory.summaries.checks.measures import built_in_validators, measures_of
from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, SourceText
from langchain_tiered_memory.types.records import Fact

ANSWERS = ("The port is 8443.", "The limit is 4500.", "We keep 12 replicas.", "The fee is 77 euros.", "Room 31 it is.")


def job() -> CondenseJob:
    sources = tuple(
        SourceText(id=text, text=text, tokens=6, at=0.0, seq=n, speaker="user", role="user")
        for n, text in enumerate(ANSWERS)
    )
    facts = tuple(Fact(kind="number", text=text, seq=n, at=0.0) for n, text in enumerate(ANSWERS))
    return CondenseJob(
        level=1, strategy="detailed", sources=sources, facts=facts, target_tokens=20, max_tokens=30, session_id="s",
        title=None, participants=(), first_at=0.0, last_at=0.0, message_count=5,
    )  # fmt: skip


def test_a_text_that_states_one_answer_of_five_keeps_a_fifth_and_loses_most_whatever_the_facts_say() -> None:
    found = measures_of(job(), "- user: the port is 8443.", ("identifiers", "loss"))
    assert found["identifiers"] == 0.2
    assert found["loss"] > 0.7
    assert measures_of(job(), " ".join(ANSWERS), ("identifiers", "loss")) == {"identifiers": 1.0, "loss": 0.0}
    half = ValidationSettings(rules=("identifiers",), least_kept_identifiers=0.5)
    (judge,) = built_in_validators(half, count_text=len)
    verdict = judge.validate(job(), "- user: the port is 8443.")
    assert (verdict.valid, verdict.score) == (False, 0.2)

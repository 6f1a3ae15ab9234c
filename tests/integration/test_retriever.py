"""The memory as a retriever: LangChain's own suite, and what its documents tell."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.messages import HumanMessage
from langchain_tests.integration_tests import RetrieversIntegrationTests

from langchain_tiered_memory.errors import InvalidInputError, MixedOwnersError, SettingsError
from langchain_tiered_memory.integrations.retriever import TieredMemoryRetriever
from tests.embedders import HashingEmbeddings
from tests.memory_builders import conversation, open_memory, tool_turn

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever

    from langchain_tiered_memory.memory import TieredMemory


def filled(**options: Any) -> TieredMemory:
    memory = open_memory(**options)
    memory.session("s").add_messages(conversation(20))
    memory.session("s").add_messages(tool_turn(21))
    memory.session("other").add_messages([HumanMessage("The crane of order 1001 is secret.", id="secret")])
    memory.flush()
    return memory


class TestStandard(RetrieversIntegrationTests):
    """LangChain's suite for retrievers."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return TieredMemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": filled(), "session_id": "s"}

    @property
    def retriever_query_example(self) -> str:
        return "Which team checked the crane?"


async def test_documents_say_where_they_are_from_in_plain_json() -> None:
    memory = filled()
    retriever = TieredMemoryRetriever(memory=memory, session_id="s", k=20)
    with blockbuster_ctx():
        found = await retriever.ainvoke("crane of order 1001")
    assert found == retriever.invoke("crane of order 1001")
    best = found[0]
    assert best.id == best.metadata["id"] == best.metadata["source"]
    assert best.metadata["session_id"] == "s"
    assert best.metadata["track"] == "main"
    assert best.metadata["whole"] is True
    assert dt.datetime.fromisoformat(best.metadata["at"]).tzinfo is not None
    json.dumps([one.metadata for one in found])
    assert {one.metadata["level"] for one in found} > {0}
    assert [one.metadata["score"] for one in found] == sorted((one.metadata["score"] for one in found), reverse=True)


def test_another_session_is_never_found() -> None:
    found = TieredMemoryRetriever(memory=filled(), session_id="s", k=50).invoke("secret crane of order 1001")
    assert "secret" not in [one.id for one in found]


def test_levels_tracks_and_times_narrow_the_search() -> None:
    memory = filled()
    session = memory.session("s", track="helper")
    at = dt.datetime(2020, 5, 1, tzinfo=dt.UTC)
    session.add_messages([HumanMessage("The crane was rented.", id="h1")], at=at)

    def found(**filters: Any) -> list[str | None]:
        return [one.id for one in TieredMemoryRetriever(memory=memory, session_id="s", **filters).invoke("crane")]

    assert found(tracks=["helper"]) == ["h1"]
    assert found(until=at + dt.timedelta(days=1)) == ["h1"]
    assert "h1" not in found(since=at + dt.timedelta(days=1))
    levels = TieredMemoryRetriever(memory=memory, session_id="s", levels=[1, 2]).invoke("crane")
    assert {one.metadata["level"] for one in levels} <= {1, 2}


def test_of_equal_texts_the_one_that_the_filters_let_pass_is_found() -> None:
    memory = open_memory()
    at = dt.datetime(2020, 5, 1, tzinfo=dt.UTC)
    said = [HumanMessage("The crane of the harbour was checked.", id=f"h{day}") for day in range(3)]
    memory.session("s").add_messages(said, at=[at + dt.timedelta(days=day) for day in range(3)])
    until = at + dt.timedelta(days=2)

    def found(**filters: Any) -> list[str | None]:
        return [one.id for one in TieredMemoryRetriever(memory=memory, session_id="s", **filters).invoke("crane")]

    assert found(since=until) == ["h2"]
    assert found(until=at) == ["h0"]
    assert len(found()) == 1, "each text once"


def test_a_sentence_and_its_denial_are_both_found() -> None:
    memory = open_memory()
    memory.session("s").add_messages([HumanMessage("Open the valve."), HumanMessage("Don't open the valve.")])
    found = TieredMemoryRetriever(memory=memory, session_id="s", levels=[0]).invoke("valve")
    assert {one.page_content for one in found} == {"Open the valve.", "Don't open the valve."}


def test_a_long_message_can_be_given_by_the_passage_that_fits() -> None:
    memory = open_memory()
    filler = " ".join(f"Paragraph {n} speaks of the weather over the harbour and of little else." for n in range(200))
    memory.session("s").add_messages(
        [HumanMessage(f"{filler} The password of the vault is heron. {filler}", id="long")]
    )
    (found,) = TieredMemoryRetriever(memory=memory, session_id="s", content="passage").invoke("password of the vault")
    assert "heron" in found.page_content
    assert len(found.page_content) < 3000
    assert found.metadata["whole"] is False


def test_vectors_take_part_where_there_are_embeddings() -> None:
    memory = filled(embeddings=HashingEmbeddings())
    assert TieredMemoryRetriever(memory=memory, session_id="s", k=3).invoke("checked crane bolts")
    memory.close()


def test_wrong_settings_are_refused_at_once() -> None:
    memory = filled()
    with pytest.raises(SettingsError):
        TieredMemoryRetriever(memory=memory, session_id="s", k=0)
    with pytest.raises(SettingsError, match="session_id must be a string that is not empty"):
        TieredMemoryRetriever(memory=memory, session_id="")
    with pytest.raises(InvalidInputError):
        TieredMemoryRetriever(memory=memory, session_id="s").invoke("crane", k="three")
    memory.session("anns", user="ann").add_messages([HumanMessage("mine")])
    with pytest.raises(MixedOwnersError):
        TieredMemoryRetriever(memory=memory, session_id="anns", user="bob").invoke("mine")

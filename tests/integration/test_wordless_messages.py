"""A message without a telling word ("What do you do there?", a thumb) gets a context like any other, vectors or not."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import FixedEmbeddings
from tests.memory_builders import open_memory

WORDLESS = ("What do you do there?", "And so it was.", "\U0001f44d", "...", "?", "```\n```")
TURN = ((HumanMessage, "The boat of the blue pier lies at berth"), (AIMessage, "Noted, the larch panels go to berth"))


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("embeddings", [None, FixedEmbeddings([1.0, 0.0, 0.0])], ids=["words", "vectors"])
def test_a_message_without_words_gets_its_context(call_style: CallStyle, embeddings: FixedEmbeddings | None) -> None:
    with open_memory(embeddings=embeddings) as memory:
        session = memory.session("s")
        talk = [kind(f"{said} {n}.") for n in range(60) for kind, said in TURN]
        told(call_style, session.add_messages, talk)
        told(call_style, session.flush)
        for number, text in enumerate(WORDLESS):
            told(call_style, session.add_messages, [HumanMessage(text, id=f"last{number}")])
            for query in (None, text):
                context = told(call_style, session.context, *([] if query is None else [query]), max_tokens=600)
                assert context.messages[-1].text.endswith(text)
            assert told(call_style, session.search, text) is not None
            told(call_style, session.add_messages, [AIMessage("The larch panels go to berth 7.")])

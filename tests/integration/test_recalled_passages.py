"""Which passages of a long message stand for it."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory import TieredMemory

_QUESTION = "When does the harbour ferry leave for the northern island?"


@pytest.mark.parametrize("sentences", [24, 29, 34])
def test_a_long_answers_closing_question_is_no_passage_of_it(sentences: int) -> None:
    told = "The harbour ferry leaves for the northern island at 7:40 from pier four."
    filler = "Bring water, a hat and shoes that may get wet, and look at the weather before you set out. " * sentences
    closing = "Would you like more on when the harbour ferry leaves for the northern island?"
    said = [HumanMessage("Tell me."), AIMessage(f"{told}\n\n{filler}\n\n{closing}"), HumanMessage("That will do.")]
    with TieredMemory.open(None, embeddings=None) as memory:
        session = memory.session("s")
        session.add_messages(said)
        shown = "\n".join(one.text for one in session.context(_QUESTION, max_tokens=600, view="recall").messages)
    assert told in shown
    assert closing not in shown

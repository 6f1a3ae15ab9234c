"""What a provider bills for a context teaches how its tokens are counted."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage

from tests.memory_builders import conversation, open_memory


def answer(billed: int) -> AIMessage:
    usage = {"input_tokens": billed, "output_tokens": 1, "total_tokens": billed + 1}
    return AIMessage("Noted.", usage_metadata=usage, response_metadata={"model_name": "m"})  # type: ignore[arg-type]


def test_the_answer_to_a_context_teaches_and_the_next_one_without_a_context_does_not() -> None:
    with open_memory() as memory:
        session, plans = memory.session("s"), memory.core.runtime.store.plans
        session.add_messages(conversation(20))
        sent = session.context("", max_tokens=8000).raw_tokens
        session.add_messages([answer(2 * sent)])
        learnt = plans.calibration("m", memory.core.runtime.counter.fingerprint)
        assert learnt is not None
        assert learnt[0] > 1
        session.add_messages([HumanMessage("And now?"), answer(9 * sent)])
        assert plans.calibration("m", memory.core.runtime.counter.fingerprint) == learnt

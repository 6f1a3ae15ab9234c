from collections import Counter

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.conversations import sample_conversation


def test_the_sample_is_long_enough_to_show_every_level() -> None:
    sample = sample_conversation()
    assert len(sample.turns) >= 300
    assert len({turn.at.date() for turn in sample.turns if turn.at}) >= 5
    assert len(sample.sittings) >= 5


def test_every_call_of_the_sample_is_answered_once_and_right_behind_its_message() -> None:
    waiting: list[str] = []
    for turn in sample_conversation().turns:
        if isinstance(turn.message, ToolMessage):
            assert turn.message.tool_call_id == waiting.pop(0)
        else:
            assert waiting == []
        if isinstance(turn.message, AIMessage):
            assert turn.message.invalid_tool_calls == []
            waiting = [call["id"] or "" for call in turn.message.tool_calls]
    assert waiting == []


def test_ids_of_the_sample_are_unique_and_its_times_ascend() -> None:
    turns = sample_conversation().turns
    assert len({turn.id for turn in turns}) == len(turns)
    times = [turn.at for turn in turns if turn.at]
    assert len(times) == len(turns)
    assert times == sorted(times)


def test_the_sample_has_a_user_an_assistant_and_several_tools() -> None:
    turns = sample_conversation().turns
    kinds = Counter(type(turn.message) for turn in turns)
    assert set(kinds) == {HumanMessage, AIMessage, ToolMessage}
    assert len({turn.speaker for turn in turns if isinstance(turn.message, ToolMessage)}) >= 4


def test_no_sentence_of_the_sample_is_a_template() -> None:
    said = [turn.text for turn in sample_conversation().turns if not isinstance(turn.message, ToolMessage)]
    assert Counter(said).most_common(1)[0][1] == 1


def test_the_questions_of_the_sample_cite_its_messages() -> None:
    questions = sample_conversation().questions
    assert len(questions) >= 40
    assert [question.id for question in questions if question.left_out] == []
    assert len({question.text for question in questions}) == len(questions)
    assert all(question.answer for question in questions)

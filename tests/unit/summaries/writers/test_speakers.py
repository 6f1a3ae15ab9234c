from langchain_tiered_memory.summaries.writers.extractive_sources import speakers_of


def test_who_begins_lines_or_stands_before_a_day_is_a_speaker_and_no_tool_is_one() -> None:
    text = (
        "The user requested: a walk; the assistant used search.\n- Carl (3 Mar 2026): We take the hostel.\n"
        "- Dora asked: When? Reply (Ann): Soon.\n- [tool] fetch (3 Mar 2026): x\n- Decision: use the hostel\n"
        "- Ben: It is full.\n- user: Then the inn.\n- Ben: That one is open.\n- user: Good."
    )
    assert speakers_of([text]) == ("Carl", "Dora", "Ben")
    assert speakers_of(["- Ann: Hello.", "- Ann: The ferry is late."]) == ("Ann",)

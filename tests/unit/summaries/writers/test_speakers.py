from langchain_tiered_memory.summaries.writers.extractive_reread import speakers_of


def test_speakers_are_read_from_overviews_and_labels_and_no_tool_is_one() -> None:
    text = (
        "Ann, Ben and 2 others talked about the coast walk.\n- Carl (3 Mar 2026): We take the hostel.\n"
        "- Dora asked: When? Reply (Ann): Soon.\n- [tool] fetch (3 Mar 2026): x\n- Decision: use the hostel"
    )
    assert speakers_of([text]) == ("Ann", "Ben", "Carl", "Dora")
    assert speakers_of(["The user asked about ferries."]) == ()

import pytest

from langchain_tiered_memory.summaries.facts.clauses import shortened


@pytest.mark.parametrize("place", [0, 30, 99])
def test_what_is_shortened_keeps_what_it_is_about_with_words_before_it(place: int) -> None:
    words = [f"word{number}" for number in range(100)]
    words[place] = "violet"
    said = " ".join(words)
    at = said.index("violet")
    short = shortened(said, around=(at, at + 6))
    assert "violet" in short
    assert len(short.split()) <= 30
    assert short.startswith("\u2026") == (place > 10)
    assert place == 0 or words[place - 1] in short

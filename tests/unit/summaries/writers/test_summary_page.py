"""docs/summaries.md shows what the code writes."""

from tests.summary_page import PAGE, page


def test_the_page_on_summaries_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.summary_page`"

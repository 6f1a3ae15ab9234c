import pytest

from langchain_tiered_memory.text.noun_phrases import phrases


@pytest.mark.parametrize(
    ("sentence", "keys"),
    [
        ("Priscilla's pension claim is under OPS-9056.", [("priscilla", "pension", "claim")]),
        ("We were quoted 607 euros for my boss's visa yesterday.", [("boss", "visa")]),
        ("The harbour ferry's budget went up.", [("harbour", "ferry")]),
        ("It's late, and that's Ann\u2019s dog.", [("ann", "dog")]),
        ("Let's go, it's Tom's.", []),
    ],
)
def test_a_phrase_says_whose_thing_it_is(sentence: str, keys: list[tuple[str, ...]]) -> None:
    assert [one.key for one in phrases(sentence)] == keys

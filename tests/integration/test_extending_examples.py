"""Every example of docs/extending.md runs by itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "extending.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(GUIDE.read_text(encoding="utf-8"))


@pytest.mark.filterwarnings("error:langchain_tiered_memory:DeprecationWarning")
@pytest.mark.parametrize("code", BLOCKS, ids=[str(number) for number in range(len(BLOCKS))])
def test_an_example_runs(code: str) -> None:
    exec(compile(code, str(GUIDE), "exec"), {"__name__": "example"})  # noqa: S102 - our own guide


@pytest.mark.parametrize(
    "name",
    [
        "CondensationPlugin", "CondensationValidator", "CondensationHook", "PromptGenerator", "TelemetryCollector",
        "ThresholdResolver", "TruncationSelector", "ContextSection",
    ],
)  # fmt: skip
def test_each_extension_point_is_told_of(name: str) -> None:
    assert f"`{name}`" in GUIDE.read_text(encoding="utf-8")

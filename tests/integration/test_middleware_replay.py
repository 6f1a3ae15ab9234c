"""A made-up agent's run, played to each integration: every request is valid and within its window."""

from __future__ import annotations

import pytest

from benchmarks import integration_replay
from benchmarks.made_up_run import made_up_run
from langchain_tiered_memory.models.token_counters import EstimatingCounter

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("integration", integration_replay.INTEGRATIONS)
@pytest.mark.parametrize("window", [1500, 6000])
def test_every_request_of_a_run_is_valid_and_within_the_window(
    integration: integration_replay.Integration, window: int
) -> None:
    transcript = made_up_run(turns=10)
    run = integration_replay.replay(integration, "run", transcript.messages, window, counter=EstimatingCounter())
    assert run.requests > 5
    assert (run.faults, run.overflows, run.not_made) == ([], 0, [])
    assert run.most_tokens <= window

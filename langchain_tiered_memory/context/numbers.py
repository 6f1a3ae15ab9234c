"""Numbers of the policy that no setting turns: each with its unit, the range in which it has a sense, its origin."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal, TypeAlias, get_type_hints

Origin: TypeAlias = Literal["design", "chosen", "fitted"]
"""From the design's papers; chosen by a person; the best of several by a benchmark."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a number of the policy is."""

    unit: str
    least: float
    most: float
    origin: Origin
    by: str = ""
    """The benchmark that it was fitted by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers, by what they decide."""

    # Recall: how much of a budget what the user said may bring back.
    small_share: Annotated[float, Told("of the budget", 0, 0.5, "fitted", "direct")] = 0.05
    """Beside what asks little or at length, and for what answers a message that asks nothing: a few quotes."""
    answers_tokens: Annotated[int, Told("tokens", 50, 2000, "fitted", "direct")] = 300
    """The best answers to a message have so much in a small budget, whatever is said, and each one in any."""
    brief_terms: Annotated[int, Told("distinct terms", 1, 100, "fitted", "direct")] = 16
    """A question of so many is brief ..."""
    long_terms: Annotated[int, Told("distinct terms", 1, 200, "fitted", "direct")] = 32
    """... and one of so many is long: between the two its room shrinks to the small share."""
    asked_times: Annotated[float, Told("times `talk_recall_share`", 1, 4, "fitted", "cost_curve")] = 2.0
    """Recall beside a brief question takes at most so much, where much matches it."""
    looked_through: Annotated[int, Told("parts of what matches", 1, 200, "fitted", "direct")] = 25
    """One of so many parts is given room beyond the least: its words stand everywhere, the answer further down."""
    framed: Annotated[float, Told("of the quotes' tokens", 1, 2, "chosen")] = 1.15
    """What quotes take with their speakers; the lines around all of them are counted."""
    share_steps: Annotated[int, Told("parts of the budget", 1, 100, "chosen")] = 16
    """Recall's share is rounded up to whole ones: what was looked up is not priced to the token."""
    recall_at_work_share: Annotated[float, Told("of the rest", 0, 1, "fitted", "cost_curve")] = 0.1
    """Recall beside work on files: an agent needs its room for its work, and has tools to ask for more."""
    summaries_of_recall: Annotated[float, Told("of recall", 0, 1, "fitted", "recall")] = 0.2
    """Summaries in recall take at most so much beside what the user said."""

    related_score: Annotated[float, Told("of the best score", 0, 1, "chosen")] = 0.5
    """A summary that matches the question less is not shown beside the quotes."""
    minimal_recall_share: Annotated[float, Told("of the budget", 0, 1, "chosen")] = 0.15
    """Recall in the view `minimal`."""

    # What a request is.
    busy_messages: Annotated[int, Told("messages", 1, 100, "chosen")] = 3
    """An agent is at work on files when so many messages have file work ..."""
    busy_among: Annotated[int, Told("messages", 1, 1000, "chosen")] = 60
    """... among the newest of so many; one is enough to keep parts of files."""

    # The parent's track.
    parent_share: Annotated[float, Told("of the rest", 0, 1, "chosen")] = 0.25
    """The section `parent` takes at most so much: a track's own messages come first. So does each message in it."""
    parent_recalled_share: Annotated[float, Told("of `parent`", 0, 1, "chosen")] = 0.5
    """What answers the question; the rest is for the parent's goal, pins and newest messages."""

    # What stands above history.
    goal_share: Annotated[float, Told("of the budget", 0, 1, "chosen")] = 0.1
    """The goal; a longer one is shown head and tail."""
    pins_share: Annotated[float, Told("of the budget", 0, 1, "chosen")] = 0.2
    """Pinned messages: those beyond it are named, and can be expanded."""

    # History: summaries and facts.
    cover_beside_share: Annotated[float, Told("of the budget", 0, 1, "design")] = 0.12
    """Summaries beside a query of the caller's own, which recall answers, and beside work on files, which needs the
    files' own words."""
    facts_asked_share: Annotated[float, Told("of the budget", 0, 1, "chosen")] = 0.08
    """Facts beside it."""
    facts_at_work_share: Annotated[float, Told("of the budget", 0, 1, "fitted", "transcript_probes")] = 0.04
    """Facts beside work on files."""
    question_share: Annotated[float, Told("of the budget", 0, 1, "chosen")] = 0.25
    """The last user message, where it is shown apart from the recent ones; a longer one is shown head and tail."""
    recent_most_share: Annotated[float, Told("of the budget", 0, 1, "fitted", "fact_depth")] = 0.2
    """Recent messages that a condensation leaves, where `context.keep_recent_tokens` is more."""
    working_share: Annotated[float, Told("of the budget", 0, 1, "fitted", "transcript_probes")] = 0.125
    """Recent messages that a condensation leaves of an agent at work on files: parts are chosen for themselves."""
    record_share: Annotated[float, Told("of the budget", 0, 1, "fitted", "cover_facts")] = 0.6
    """Summaries and facts together, before a fact that must last is left out ..."""
    record_at_work_share: Annotated[float, Told("of the budget", 0, 1, "chosen")] = 0.3
    """... and beside work on files, which needs the words themselves."""
    facts_of_source_share: Annotated[float, Told("of what they were read from", 0, 1, "chosen")] = 0.2
    """Facts take at most so much of the messages that the summaries stand for: more would free nothing."""
    cover_filled_share: Annotated[float, Told("of its room", 0.25, 1, "fitted", "prefix")] = 0.75
    """Summaries made anew fill so much, so that the next ones can be appended without changing the first bytes."""
    cover_levels_share: Annotated[float, Told("of its room", 0.1, 1, "chosen")] = 0.8
    """Summaries of the levels that a view of one's own shows; the rest names what they do not stand for."""

    selection_tokens: Annotated[int, Told("tokens", 0, 100_000, "design")] = 2000
    """With `older="selection"`: with less room the top level alone is shown, else recent summaries of level 2 ..."""
    selection_share: Annotated[float, Told("of the room", 0, 1, "design")] = 0.6
    """... within so much of it."""

    # How full a view is left, and when it is condensed.
    filled_share: Annotated[float, Told("of the view", 0, 1, "fitted", "cost_curve")] = 0.85
    """File work fills so much after a condensation at most: with more, the view is condensed again too soon."""
    filled_least_share: Annotated[float, Told("of the view", 0, 1, "fitted", "cost_curve")] = 0.15
    """... and so much in any case, beside `room.working_tokens` ..."""
    filled_least_tokens: Annotated[int, Told("tokens", 0, 100_000, "fitted", "cost_curve")] = 24_000
    """... up to so many tokens."""
    least_progress_share: Annotated[float, Told("of the allowed tokens", 0, 1, "chosen")] = 0.05
    """A condensation that would free less is not made while the view fits."""
    early_share: Annotated[float, Told("of the threshold", 0, 1, "chosen")] = 0.75
    """From here on a cache that ran out is reason enough to condense."""

    # What gives way where not all fits.
    newest_share: Annotated[float, Told("of a pruned view", 0, 1, "fitted", "transcript_probes")] = 0.35
    """For its newest groups, whatever their scores."""
    giant_tokens: Annotated[int, Told("tokens", 32, 100_000, "chosen")] = 2000
    """A tool output that is larger, and larger ..."""
    giant_share: Annotated[float, Told("of the budget", 0, 1, "chosen")] = 0.5
    """... than this, is masked when room is needed, once the model has seen it, down to its head and tail in half of
    that."""
    mask_batch_share: Annotated[float, Told("of the limit", 0, 1, "chosen")] = 0.1
    """A batch of masks must free so much to be worth a broken cache."""
    defended_share: Annotated[float, Told("of their rooms", 0, 1, "chosen")] = 0.5
    """Summaries keep so much where facts that must last have no room beside them."""
    lent_share: Annotated[float, Told("of recall", 0, 1, "chosen")] = 0.75
    """Recall lends so much to required messages that the model has not seen yet."""
    least_recall_tokens: Annotated[int, Told("tokens", 0, 8000, "fitted", "direct")] = 1000
    """With less recall what the model has seen makes way: a long message that answers has no room else."""
    least_readable_tokens: Annotated[int, Told("tokens", 10, 500, "chosen")] = 48
    """A message shown head and tail with less can hardly be worked with: rather fewer of them. A result of folded calls
    is cut to it, and an output that was repeated or replaced; the parent's track has no quote in less."""
    beside_folded_share: Annotated[float, Told("of the view", 0, 1, "chosen")] = 0.4
    """What stands beside a message whose calls have to be folded."""

    # Parts of files, and what is said beside them.
    part_written_worth: Annotated[float, Told("worth of a line", 0, 10, "fitted", "transcript_probes")] = 1.0
    """What a line that the agent wrote is worth; the others relative to it, as their hits per token were."""
    part_next_worth: Annotated[float, Told("worth of a line", 0, 10, "fitted", "transcript_probes")] = 0.6
    """A line that was read right beside one that the agent wrote ..."""
    part_next_lines: Annotated[int, Told("lines", 1, 100, "fitted", "transcript_probes")] = 4
    """... up to so many lines from it."""
    part_around_worth: Annotated[float, Told("worth of a line", 0, 10, "fitted", "transcript_probes")] = 0.45
    """The same, near it ..."""
    part_around_lines: Annotated[int, Told("lines", 1, 100, "fitted", "transcript_probes")] = 12
    """... up to so many lines from it."""
    part_read_worth: Annotated[float, Told("worth of a line", 0, 10, "fitted", "transcript_probes")] = 0.3
    """Any other line that was read."""
    part_related_times: Annotated[float, Told("times its worth", 0, 10, "fitted", "transcript_probes")] = 3.0
    """What has most to do with what is being done is worth so much more: about what lies between a line that was read
    and one that was written."""
    part_least_file_age: Annotated[int, Told("tokens", 0, 10_000, "chosen")] = 500
    """The age of a file, in tokens since it was touched, counts from here: about a call and its result."""
    part_named_file_age: Annotated[int, Told("tokens", 0, 10_000, "fitted", "transcript_probes")] = 1500
    """A file that is named in what is being done counts as touched so lately, at least."""
    part_least_age: Annotated[int, Told("tokens", 0, 10_000, "chosen")] = 1000
    """The age of a line counts from here: what is younger is alike."""
    part_piece_chars: Annotated[int, Told("characters", 20, 5000, "chosen")] = 200
    """Lines stay together up to the first empty line behind so much: an edit needs a passage whole ..."""
    part_most_piece_chars: Annotated[int, Told("characters", 50, 10_000, "chosen")] = 600
    """... up to so many, for more would fill the room with one place."""
    part_least_tokens: Annotated[int, Told("tokens", 20, 1000, "chosen")] = 100
    """Room that is worth a part of a file."""
    doing_tokens: Annotated[int, Told("tokens", 0, 10_000, "chosen")] = 700
    """The newest messages up to so many tokens tell what an agent is doing ..."""
    doing_messages: Annotated[int, Told("messages", 1, 50, "chosen")] = 3
    """... or so many, which are a call, its result and what was said of it; so does what the assistant said in as many
    of its messages, and the user last."""
    folded_said_share: Annotated[float, Told("of the folded message", 0, 1, "chosen")] = 0.15
    """What a message with folded calls says beside them."""
    lead_requests: Annotated[int, Told("requests", 0, 20, "chosen")] = 2
    """Requests that a model has for writing before the view is condensed, at the growth of the last ones."""
    growth_requests: Annotated[int, Told("requests", 1, 100, "chosen")] = 8
    """Requests whose growth is looked at."""
    latest_wish_share: Annotated[float, Told("of where the view is due", 0, 1, "chosen")] = 0.2
    """What may be left at most when a model is asked to write: a history that ends before that is never condensed by
    one, however large its turns are."""
    growth_turns: Annotated[int, Told("turns", 1, 500, "chosen")] = 40
    """Latest turns that tell how fast a view grows: few would follow a single large result. A view without any is taken
    to be full after so many."""
    least_gain: Annotated[int, Told("tokens", 0, 500, "chosen")] = 16
    """A mask, or a pointer to what is said above, that frees less is not worth its line."""
    own_sections_share: Annotated[float, Told("of the budget", 0, 1, "chosen")] = 0.5
    """All registered sections together: the conversation itself needs the rest."""
    least_said_tokens: Annotated[int, Told("tokens", 1, 100, "chosen")] = 10
    """With less, a message says nothing at all."""


NUMBERS = Numbers()
"""The policy's numbers."""


def told() -> dict[str, Told]:
    """Unit, range and origin of each number, by its name."""
    hints = get_type_hints(Numbers, include_extras=True)
    return {field.name: hints[field.name].__metadata__[0] for field in fields(Numbers)}

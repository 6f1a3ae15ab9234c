import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_tiered_memory.context.compaction.cutting import essentials
from langchain_tiered_memory.context.compaction.pruning import PruneItem, named_kind
from langchain_tiered_memory.context.compaction.pruning_items import prune_items, run_facts
from langchain_tiered_memory.messages.groups import as_groups, assign_groups
from langchain_tiered_memory.messages.ingest import draft_of
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.settings import FileSettings
from langchain_tiered_memory.types.records import Entry, Group
from langchain_tiered_memory.types.runs import FileAccess, Task

NOW = 1_000_000.0
SETTINGS = FileSettings()


class Story:
    """A conversation written down message by message."""

    def __init__(self) -> None:
        self._said: list[tuple[BaseMessage, dict[str, Any]]] = []

    def add(
        self,
        message: BaseMessage,
        *,
        ago: float = 0.0,
        kind: str | None = None,
        task: str | None = None,
        pin: bool = False,
    ) -> "Story":
        self._said.append((message, {"at": NOW - 60 * ago, "kind": kind, "task": task, "pin": pin}))
        return self

    def user(self, text: str, **about: Any) -> "Story":
        return self.add(HumanMessage(text), **about)

    def says(self, text: str, **about: Any) -> "Story":
        return self.add(AIMessage(text), **about)

    def call(
        self, name: str, result: str, *, status: str = "success", about: dict[str, Any] | None = None, **args: Any
    ) -> "Story":
        identity = f"c{len(self._said)}"
        self.add(AIMessage("", tool_calls=[{"name": name, "args": args, "id": identity}]), **(about or {}))
        return self.add(ToolMessage(result, tool_call_id=identity, name=name, status=status), **(about or {}))

    def groups(self) -> list[Group]:
        counter = EstimatingCounter()
        drafts = [
            draft_of(
                message,
                counter=counter,
                message_id=f"m{number}",
                at=about["at"],
                track="main",
                kind=about["kind"],
                task=about["task"],
            )[0].draft
            for number, (message, about) in enumerate(self._said)
        ]
        fields = (
            [field.name for field in dataclasses.fields(drafts[0]) if field.name not in ("reported", "counter")]
            if drafts
            else []
        )
        return as_groups(
            Entry(
                **{name: getattr(draft, name) for name in fields},
                seq=seq,
                group=group,
                pinned=about["pin"],
                revision=0,
                summary_id=None,
            )
            for seq, (draft, group, (_, about)) in enumerate(
                zip(drafts, assign_groups(drafts, 1), self._said, strict=True), 1
            )
        )

    def items(
        self,
        *,
        tasks: tuple[Task, ...] = (),
        current: str | None = None,
        touches: tuple[FileAccess, ...] = (),
        must_stay: frozenset[int] = frozenset(),
        settings: FileSettings = SETTINGS,
    ) -> list[PruneItem]:
        run: dict[str, Any] = {"tasks": tasks, "current_task": current, "touches": touches}
        return prune_items(run_facts(self.groups(), settings=settings, **run), now=NOW, must_stay=must_stay)

    def rows(self, **about: Any) -> list[tuple[int, str]]:
        return [(one.priority, one.reason) for one in self.items(**about)]


def task(
    name: str, *, number: int = 0, first: int = 1, last: int | None = None, depends_on: tuple[str, ...] = ()
) -> Task:
    return Task(
        id=name,
        track="main",
        state="finished" if number else "active",
        depends_on=depends_on,
        started_at=0.0,
        first_seq=first,
        last_seq=last,
        finished_at=1.0 if number else None,
        number=number,
    )


FILLER = "We looked at the tide tables of the harbour once more and found them as they had been before."


def test_system_prompt_and_goal_are_always_kept() -> None:
    story = Story().add(SystemMessage("Be brief.")).user("Build a crane.")
    assert story.rows() == [(1, "system_role_prompt"), (1, "current_task_description")]


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("system prompt", (1, "system_role_prompt")),
        ("task_description", (1, "current_task_description")),
        ("Acceptance Criteria", (1, "current_task_acceptance_criteria")),
        ("deprecated", (4, "deprecated_context")),
        ("debug", (4, "temporary_debug_info")),
        ("success-metrics", (3, "success_metrics")),
        ("guidelines", (3, "project_guidelines")),
        ("example", (3, "example_code_snippets")),
        ("documentation_links", (3, "documentation_links")),
        ("PR", (2, "active_pr_context")),
        ("dependencies", (2, "dependency_information")),
        ("file_structure", (2, "current_file_structure")),
        ("feedback", (2, "recent_feedback")),
        ("something else", (2, "recent_task_history")),
    ],
)
def test_a_kind_given_by_the_caller_places_an_item_in_the_matrix(kind: str, row: tuple[int, str]) -> None:
    assert Story().user("Build a crane.").says(FILLER, kind=kind).rows()[1] == row


def test_kinds_are_read_in_singular_and_plural() -> None:
    assert named_kind("Templates") == named_kind("template") == "examples"
    assert named_kind("dependencies") == "dependency"
    assert named_kind("who knows") is None
    assert named_kind(None) is None


def test_the_last_three_user_messages_are_always_kept_and_the_two_before_are_feedback() -> None:
    story = Story()
    for number in range(7):
        story.user(f"Please move crane number {number} to quay {number}.")
    assert [reason for _, reason in story.rows()] == [
        "current_task_description",
        "recent_task_history",
        "recent_feedback",
        "recent_feedback",
        *["last_3_user_messages"] * 3,
    ]


def test_the_latest_content_of_the_active_file_is_always_kept() -> None:
    story = Story().user("Fix it.").call("read_file", "x = 1", path="a.py").says(FILLER)
    story.call("grep", "a.py:1: x = 1", path="a.py", pattern="x").call("read_file", "y = 2", path="b.py")
    story.call("read_file", "Error: no such file", status="error", path="b.py")
    rows = story.rows()
    assert rows[4] == (1, "active_file_being_edited")
    assert rows[1] == (2, "recent_task_history")


def test_a_file_that_was_touched_before_the_groups_begin_is_not_looked_for_in_vain() -> None:
    gone = FileAccess(path="gone.py", operation="write", tool="edit", seq=99, at=NOW)
    assert Story().user("Fix it.").says(FILLER).rows(touches=(gone,))[1] == (2, "recent_task_history")


def test_the_latest_open_error_is_always_kept_and_a_resolved_one_always_pruned() -> None:
    story = Story().user("Fix it.").call("bash", "Exit code 1\nFAILED", command="make test")
    story.call("bash", "all passed", command="make test").call("bash", "fatal: no repository", command="git log")
    assert [row for _, row in story.rows()][1:] == ["resolved_error", "recent_task_history", "critical_error_context"]


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ("Traceback (most recent call last):\n  boom", "success"),
        ("ValueError: bad", "success"),
        ("<tool_use_error>String not found</tool_use_error>", "success"),
        ("3 tests run\nCommand exited with code 2", "success"),
        ("/bin/bash: line 3: foo: command not found", "success"),
        ("anything", "error"),
    ],
)
def test_errors_are_known_by_status_or_by_how_they_begin_and_end(result: str, status: str) -> None:
    story = Story().user("Fix it.").call("bash", result, status=status, command="foo").says(FILLER)
    assert story.rows()[1] == (1, "critical_error_context")


@pytest.mark.parametrize(
    "result",
    ["0 errors, all fine", "def on_error(): ...", "class ErrorPage:\n  pass", "{\n  error: null,\n  isError: false\n}"],
)
def test_talk_of_errors_is_no_error(result: str) -> None:
    assert Story().user("Fix it.").call("bash", result, command="foo").rows()[1] == (2, "recent_task_history")


def test_a_later_success_on_the_same_file_settles_a_failed_edit() -> None:
    story = Story().user("Fix it.").call("edit_file", "Error: text not found", path="a.py", old="x")
    story.call("edit_file", "done", path="a.py", old="y")
    assert story.rows()[1] == (4, "resolved_error")


def test_another_failure_on_the_same_file_settles_none() -> None:
    story = Story().user("Fix it.").call("edit_file", "Error: text not found", path="a.py", old="x")
    story.call("edit_file", "Error: text not found", path="a.py", old="y")
    assert [row for _, row in story.rows()][1:] == ["recent_task_history", "critical_error_context"]


def test_an_error_long_past_is_not_critical_any_more() -> None:
    story = Story().user("Fix it.").call("bash", "Error: boom", command="foo")
    for number in range(12):
        story.says(f"{FILLER} {number}")
    story.user("Now something else.")
    assert story.rows()[1] == (2, "recent_task_history")


def test_what_is_said_or_looked_at_again_is_redundant() -> None:
    story = Story().user("Fix it.").says(FILLER).call("read_file", "x = 1", path="a.py").says(FILLER)
    story.call("read_file", "x = 2", path="a.py")
    assert [row for _, row in story.rows()][1:] == [
        "redundant_information",
        "redundant_information",
        "recent_task_history",
        "active_file_being_edited",
    ]


def test_a_change_made_twice_is_not_redundant() -> None:
    story = Story().user("Fix it.").call("write_file", "ok 1", path="a.py", content="x")
    story.call("write_file", "ok 2", path="a.py", content="x").call("read_file", "y", path="b.py")
    assert story.rows()[1] == (2, "recent_task_history")


def test_finished_tasks_grow_old_by_how_many_were_finished_since() -> None:
    tasks = (*(task(f"t{n}", number=n) for n in range(1, 8)), task("now", first=100))
    story = Story()
    for number in range(1, 8):
        story.says(f"{FILLER} {number}", task=f"t{number}")
    story.says(FILLER, task="now")
    items = story.items(tasks=tasks, current="now")
    assert [one.category for one in items] == [*["old_history"] * 4, *["recent_history"] * 3, "current_task"]
    assert [one.reason for one in items] == [
        "completed_task_details",
        "completed_task_details",
        "old_task_history",
        "old_task_history",
        *["recent_task_history"] * 4,
    ]


def test_belonging_to_the_task_or_to_what_it_rests_on_is_a_matter_of_record() -> None:
    tasks = (task("base", number=1), task("other", number=2), task("now", first=3, depends_on=("base",)))
    story = Story().says(FILLER, task="base").says(f"{FILLER} 2", task="other").says(f"{FILLER} 3")
    items = story.items(tasks=tasks, current="now")
    assert [one.bond for one in items] == ["dependency", "none", "task"]
    assert [one.relevant for one in items] == [True, False, True]
    assert items[0].reason == "dependency_information"


def test_the_criteria_of_a_task_long_done_are_not_those_of_the_current_one() -> None:
    tasks = (*(task(f"t{n}", number=n) for n in range(1, 8)), task("now", first=100))
    story = Story().says(FILLER, task="t1", kind="acceptance_criteria").says(FILLER, task="now", kind="criteria")
    assert story.rows(tasks=tasks, current="now") == [
        (4, "completed_task_details"),
        (1, "current_task_acceptance_criteria"),
    ]


def test_without_tasks_what_is_about_the_files_at_hand_belongs_to_the_task() -> None:
    story = Story().user("Fix it.").call("bash", "nothing", command="make")
    for name in ("far", "near_3", "near_2", "c", "b", "a"):
        story.call("edit_file", "done", path=f"src/{name}.py")
    story.says("I changed `src/a.py` for good reasons that I shall not repeat here.")
    items = story.items()
    assert [one.bond for one in items] == ["none", "none", *["dependency"] * 3, *["task"] * 3, "none"]
    assert items[-1].relevant
    assert {one.kind for one in items[5:8]} == {"active_code"}


def test_without_tasks_history_is_old_after_two_hours() -> None:
    story = Story().user("Fix it.", ago=500).says(FILLER, ago=121).says(f"{FILLER} 2", ago=119).user("And?")
    assert [one.category for one in story.items()] == [
        "old_history",
        "old_history",
        "recent_history",
        "current_task",
    ]


def test_references_are_later_groups_that_mention_the_same_names() -> None:
    story = Story().says("The function load_manifest reads it.").says("Nothing here at all.")
    for number in range(3):
        story.says(f"Again load_manifest, {number} times.")
    assert [one.references for one in story.items()] == [3, 0, 2, 1, 0]


def test_recently_referenced_means_by_one_of_the_newest_ten() -> None:
    story = Story().says("The function load_manifest reads it.").says("And write_manifest writes it.")
    story.says("Again load_manifest was looked at.")
    for _ in range(10):
        story.says("All quiet on the quay.")
    story.says("Then write_manifest was changed.")
    assert [one.referenced_recently for one in story.items()[:3]] == [False, True, False]


def test_pinned_groups_and_those_the_caller_needs_must_stay() -> None:
    story = Story().user("a").says(FILLER, pin=True).says(f"{FILLER} 2").says(f"{FILLER} 3")
    assert [one.must_stay for one in story.items(must_stay=frozenset({3}))] == [False, True, True, False]


def test_a_message_that_cannot_be_read_is_an_item_all_the_same() -> None:
    groups = Story().user("a").call("bash", "x", command="ls").groups()
    broken = [Group(entries=tuple(dataclasses.replace(one, payload="{") for one in group.entries)) for group in groups]
    items = prune_items(run_facts(broken, settings=SETTINGS), now=NOW, must_stay=frozenset())
    assert [one.key for one in items] == [1, 2]


def test_an_empty_context_has_no_items_and_no_essentials() -> None:
    assert prune_items(run_facts([], settings=SETTINGS), now=NOW, must_stay=frozenset()) == []
    assert not any(essentials(run_facts([], settings=SETTINGS)).values())


def test_a_minimal_context_is_system_task_file_last_user_message_and_open_error() -> None:
    story = Story().add(SystemMessage("Be brief.")).user("Build a crane.").says(FILLER)
    story.call("read_file", "x = 1", path="a.py").call("bash", "Error: boom", command="foo")
    story.call("bash", "Error: bang", command="bar").call("bash", "ok", command="bar").user("Go on.").says(FILLER)
    found = essentials(run_facts(story.groups(), settings=SETTINGS))
    assert found == {"system": (1,), "task": (2,), "file": (4,), "error": (6,), "user": (12,)}


@pytest.mark.parametrize("operation", ["read", "write"])
def test_a_tool_that_a_user_adds_works_on_the_active_file(operation: Any) -> None:
    story = Story().user("Go.").call("read_file", "x = 1", path="a.py").call("harbour_desk", "y = 2", berth="b.py")
    added = FileSettings(tools={**SETTINGS.tools, "harbour_desk": operation}, path_keys=(*SETTINGS.path_keys, "berth"))
    assert essentials(run_facts(story.groups(), settings=SETTINGS))["file"] == (2,)
    assert essentials(run_facts(story.groups(), settings=added))["file"] == (4,)
    story.says(FILLER)
    assert [one.reason for one in story.items(settings=added)][2] == "active_file_being_edited"


def test_a_file_that_could_not_be_read_is_not_the_active_one() -> None:
    story = Story().user("Go.").call("read_file", "x = 1", path="a.py")
    story.call("read_file", "Error: File 'b.py' not found", path="b.py")
    assert essentials(run_facts(story.groups(), settings=SETTINGS))["file"] == (2,)


def test_where_every_error_is_settled_the_latest_is_shown() -> None:
    story = Story().user("Go.").call("bash", "Error: bang", command="bar").call("bash", "ok", command="bar")
    assert essentials(run_facts(story.groups(), settings=SETTINGS))["error"] == (2,)


def test_a_task_that_is_described_needs_no_first_message() -> None:
    story = Story().user("Hello.").says("Build a crane.", kind="task", task="now")
    story.says("It lifts ten tonnes.", kind="acceptance_criteria", task="now").user("Go on.")
    found = essentials(run_facts(story.groups(), settings=SETTINGS, tasks=(task("now", first=2),), current_task="now"))
    assert found["task"] == (2, 3)


texts = st.sampled_from(["Error: x", "fine", "see src/a.py and load_manifest", FILLER, ""])
stories = st.lists(st.tuples(st.sampled_from(["user", "says", "read_file", "bash"]), texts), max_size=15)


@given(stories)
def test_every_group_is_one_item_in_its_place(parts: list[tuple[str, str]]) -> None:
    story = Story()
    for who, text in parts:
        if who in ("user", "says"):
            getattr(story, who)(text)
        else:
            story.call(who, text, path="src/a.py", command="cat src/a.py")
    groups = story.groups()
    items = story.items()
    assert [one.key for one in items] == [group.first_seq for group in groups]
    assert [one.tokens for one in items] == [group.tokens for group in groups]
    assert {one for seqs in essentials(run_facts(groups, settings=SETTINGS)).values() for one in seqs} <= {
        group.first_seq for group in groups
    }

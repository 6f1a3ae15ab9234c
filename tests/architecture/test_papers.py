"""What the papers name is there: modules, tests, settings, links, tasks; and each decision has its page."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from langchain_tiered_memory import __version__
from langchain_tiered_memory.settings import Settings

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "langchain_tiered_memory"
DECISIONS = ROOT / "docs" / "decisions"
PAGES = sorted(DECISIONS.glob("[0-9]*.md"))
PAPERS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("examples/*.md")]
)
SECTIONS = ["Context", "Decision", "Why", "What it costs", "What would change our minds"]
README_WORDS = 1000
GROUPS = "tree|recall|condensation|guard|checkpoints|files|tiers"

each_paper = pytest.mark.parametrize("paper", PAPERS, ids=lambda path: str(path.relative_to(ROOT)))
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def modules_in(text: str) -> set[str]:
    """Paths in backticks that end with `.py`, with or without what in them is meant."""
    return set(re.findall(r"`([\w/]+\.py)(?:`|: )", text))


def settings_in(text: str) -> set[str]:
    return set(re.findall(rf"`((?:{GROUPS})(?:\.[a-z]\w*)+)`", text)) - {f"{one}.py" for one in GROUPS.split("|")}


def has_setting(name: str) -> bool:
    found: Any = Settings()
    for part in name.split("."):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def anchors_of(path: Path) -> set[str]:
    """The anchors of a paper's headings, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```", "", read(path), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(paper: Path) -> list[str]:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", read(paper)):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = paper.parent / name if name else paper
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    return broken


def workflow() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(read(ROOT / ".github" / "workflows" / "ci.yml"))
    return found


def commands_of(job: dict[str, Any]) -> list[str]:
    return [step["run"].strip() for step in job["steps"] if "run" in step]


def tasks() -> dict[str, list[str]]:
    """The Makefile's targets with their commands."""
    rules = re.findall(r"^([a-z]+):[^=\n]*\n((?:\t.+\n)*)", read(ROOT / "Makefile"), re.MULTILINE)
    return {name: re.findall(r"^\t@?(.+)$", commands, re.MULTILINE) for name, commands in rules}


def test_every_test_that_the_security_paper_names_is_there() -> None:
    named = set(re.findall(r"`((?:\w+/)*)(test_\w+)`", read(ROOT / "SECURITY.md")))
    assert len(named) > 10
    assert [folder + name for folder, name in named if not list((ROOT / "tests" / folder).rglob(f"{name}.py"))] == []


def test_the_architecture_names_many_modules() -> None:
    assert len(modules_in(read(ROOT / "docs" / "architecture.md"))) > 100


@each_paper
def test_every_module_that_a_paper_names_is_there(paper: Path) -> None:
    near = (PACKAGE, ROOT, paper.parent)
    assert [one for one in sorted(modules_in(read(paper))) if not any((at / one).exists() for at in near)] == []


@each_paper
def test_every_link_of_a_paper_leads_somewhere(paper: Path) -> None:
    assert broken_links(paper) == []


@pytest.mark.parametrize("paper", [one for one in PAPERS if one.name != "CHANGELOG.md"], ids=lambda one: one.name)
def test_every_setting_that_a_paper_names_is_there(paper: Path) -> None:
    assert [one for one in sorted(settings_in(read(paper))) if not has_setting(one)] == []


def test_every_error_text_of_the_troubleshooting_is_one_that_the_package_says() -> None:
    source = " ".join(read(path) for path in sorted(PACKAGE.rglob("*.py")))
    headings = re.findall(r"^### (.+)$", read(ROOT / "docs" / "troubleshooting.md"), re.MULTILINE)
    of_others = {"Blocking call to sqlite3", "Unable to import langchain_openai", "maximum context length"}
    of_people = {"facts() is empty", "The model does not see my question"}
    assert len(headings) > 30
    assert [one for one in headings if one not in source and one not in of_others | of_people] == []


def test_settings_and_links_are_found_at_all() -> None:
    assert sum(len(settings_in(read(paper))) for paper in PAPERS) > 5
    assert not has_setting("tree.no_such_setting")
    assert {"use-it", "when-not-to-use-it"} <= anchors_of(ROOT / "README.md")


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert len(read(ROOT / "README.md").split()) <= README_WORDS


def test_the_readme_has_a_command_that_shows_the_main_job_and_one_that_runs_the_tests() -> None:
    blocks = re.findall(r"^```bash\n(.+?)^```$", read(ROOT / "README.md"), re.MULTILINE | re.DOTALL)
    assert [block.strip().count("\n") for block in blocks[:2]] == [0, 0]
    assert "pip install" in blocks[0]
    assert "tiered-memory replay" in blocks[0]
    assert "pip install -e" in blocks[1]
    assert "pytest" in blocks[1]


@each_page
def test_a_decision_has_its_sections_and_keeps_short(page: Path) -> None:
    text = read(page)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert all(body.strip() for body in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:])
    assert 15 <= len(text.splitlines()) <= 40


@each_page
def test_a_decision_names_the_modules_that_carry_it(page: Path) -> None:
    assert modules_in(read(page))


def test_every_decision_stands_in_the_index_under_its_number_and_title() -> None:
    rows = re.findall(r"^\| (\d+) \| \[(.+?)\]\((.+?)\) \| .+ \|$", read(DECISIONS / "README.md"), re.MULTILINE)
    titles = [re.fullmatch(r"# (\d+)\. (.+)", read(page).splitlines()[0]) for page in PAGES]
    assert rows == [(*title.groups(), page.name) for title, page in zip(titles, PAGES, strict=True) if title]
    assert [int(page.name[:4]) for page in PAGES] == list(range(1, len(PAGES) + 1))
    assert len(PAGES) >= 20


def test_the_tasks_are_those_that_contributing_names() -> None:
    named = re.findall(r"^\| `make (\w+)` \|", read(ROOT / "CONTRIBUTING.md"), re.MULTILINE)
    listed = re.findall(r"^([a-z]+):.*## .+$", read(ROOT / "Makefile"), re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.+)$", read(ROOT / "Makefile"), re.MULTILINE)
    assert phony is not None
    assert list(tasks()) == listed == phony[1].split()
    assert listed == ["help", *named]


@pytest.mark.parametrize(
    ("task", "command"),
    [
        ("fast", '$(PYTHON) -m pytest tests/unit tests/architecture -m "not slow" -n $(WORKERS) --dist worksteal'),
        ("test", "$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal"),
        ("exhaustive", "TIERED_MEMORY_EXHAUSTIVE=1 $(PYTHON) -m pytest -n $(WORKERS) --dist worksteal"),
        ("types", "$(PYTHON) -m mypy"),
        ("floors", ".ci/floors"),
        ("ci", ".ci/run"),
    ],
)
def test_a_task_runs_what_contributing_says(task: str, command: str) -> None:
    assert tasks()[task] == [command]
    plain = command.replace("$(PYTHON) -m ", "").replace("$(WORKERS)", "2")
    row = next(line for line in read(ROOT / "CONTRIBUTING.md").splitlines() if line.startswith(f"| `make {task}` |"))
    assert f"`{plain}`" in row


def test_the_workflow_runs_what_can_be_run_here_on_every_version_that_is_promised() -> None:
    run = workflow()["jobs"]["run"]
    promised = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', read(ROOT / "pyproject.toml"))
    assert ".ci/run" in commands_of(run)
    assert run["strategy"]["matrix"]["python"] == promised
    for script in ("run", "floors"):
        assert os.access(ROOT / ".ci" / script, os.X_OK)


def test_the_workflow_runs_every_row_where_somebody_asks_for_it_and_once_a_week() -> None:
    job = workflow()["jobs"]["exhaustive"]
    assert ".ci/run" in commands_of(job)
    assert job["env"] == {"TIERED_MEMORY_EXHAUSTIVE": "1"}


def test_the_workflow_tries_the_lowest_versions_where_pyproject_changed() -> None:
    jobs = workflow()["jobs"]
    assert ".ci/floors" in commands_of(jobs["floors"])
    assert jobs["floors"]["needs"] == "changes"
    assert "-- pyproject.toml" in "\n".join(commands_of(jobs["changes"]))


def test_the_hooks_take_ruff_and_mypy_from_the_environment() -> None:
    repos = yaml.safe_load(read(ROOT / ".pre-commit-config.yaml"))["repos"]
    local = [hook for repo in repos if repo["repo"] == "local" for hook in repo["hooks"]]
    assert [hook["id"] for hook in local] == ["ruff-check", "ruff-format", "mypy"]
    assert {hook["language"] for hook in local} == {"system"}


def test_the_changelog_has_this_version_behind_what_is_unreleased() -> None:
    headings = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d{2}-\d{2}))?$", read(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    assert headings[1][0] == __version__
    assert all(date for _, date in headings[1:])

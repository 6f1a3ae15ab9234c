# Tasks of this project. `make` lists them. They use the environment that is active; PYTHON=... names another.

PYTHON ?= python
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup fast test exhaustive lint format types check docs floors ci

help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install the package with everything that its tests need
	$(PYTHON) -m pip install -e '.[dev,benchmarks]'

fast: ## the fast lane, ninety seconds: what is not slow of the tests of single modules and of the architecture
	$(PYTHON) -m pytest tests/unit tests/architecture -m "not slow" -n $(WORKERS) --dist worksteal

test: ## the whole suite, eleven minutes: of what asks one thing in many places, the share that the day draws
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal

exhaustive: ## every row of every test, at every step: for a change of what writes
	TIERED_MEMORY_EXHAUSTIVE=1 $(PYTHON) -m pytest -n $(WORKERS) --dist worksteal

lint: ## look for faults of style and form; changes nothing
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

format: ## format, and mend what can be mended
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

types: ## check types
	$(PYTHON) -m mypy

check: lint types fast ## lint, types and the fast lane: before each push

docs: ## build the documents as a site in site/; a broken link is an error. `mkdocs serve` shows them while you write
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build

floors: ## the integrations' tests on the lowest versions that pyproject.toml allows, in an environment of their own
	.ci/floors

ci: ## what the workflow runs: lint, types and the whole suite, in an environment of their own
	.ci/run

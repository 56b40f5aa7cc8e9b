# Every target sets up `.venv` by itself when needed; when nothing changed that costs a blink.
#
#   make setup        only that, for commands such as .venv/bin/simkit
#   make certify      certify DBOS at tier smoke: table on the screen, certificate in .simkit/
#   make test         every test                             make quick   the same without the slow ones
#   make cover        every test, and what they never ran
#   make lint         ruff, mypy, import-linter              make format  let ruff put things right
#   make bench        rates beside those of peers            make docs    HTML into build/docs
#   make yardstick    how fast known faults are found        make nightly what takes too long for a day's work
#   make wheel        one wheel into dist/                   make lock    pin the dependencies again (needs uv)
#   make clean        remove what the above made, .venv included

TARGET ?= dbos==3.4.0
TIER ?= smoke
JOBS ?= 2
PYTEST_ARGS ?=
BENCH_ARGS ?=

BIN = .venv/bin
PACKAGES = simkit reference_runtime scenarios conformance

.DEFAULT_GOAL := help
.PHONY: help setup certify test cover quick lint format bench yardstick nightly docs wheel lock clean

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

setup:
	@.ci/setup

certify: setup
	$(BIN)/simkit certify '$(TARGET)' --tier $(TIER)

test: setup
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

cover: setup
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --cov --cov-report term $(PYTEST_ARGS)

quick: setup
	$(BIN)/python -m pytest -q -m 'not slow and not network' $(PYTEST_ARGS)

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	MYPYPATH=conformance/helper $(BIN)/mypy conformance/adapters/*/*.py
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: setup
	$(BIN)/python -m tests.benchmarks $(BENCH_ARGS)

# Every strategy under twenty seeds, into docs/yardstick.md: about half an hour of one core.
yardstick: setup
	$(BIN)/python -m tests.quality.table --jobs $(JOBS) --write docs/yardstick.md

nightly: setup
	$(BIN)/python -m pytest -m nightly -s $(PYTEST_ARGS) tests

docs: setup
	$(BIN)/python docs/generate.py
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "build/docs/index.html"

wheel: setup
	@rm -rf dist
	$(BIN)/python -m hatchling build -t wheel -d dist

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --custom-compile-command 'make lock' --group dev pyproject.toml -o requirements.lock

clean:
	rm -rf .venv build dist .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

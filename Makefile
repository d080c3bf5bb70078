# heed: `make run` starts it, `make test` tests it. Both set up what they need; python3 and make are enough.
#
#   FLAVOUR=cpu|gpu   which lock to install (default: by the GPU found)
#   PYTHON=...        the Python to start with (default: python3; another supported one is looked for if it will not do)
#   TEST_PROCESSES=3 how many processes share the tests (0: this one, for a debugger)
#   ARGS="..."        passed on to `heed run` or to pytest:  make test ARGS="--quick tests/storage"

PYTHON ?= python3
FLAVOUR ?= auto
ARGS ?=
TEST_PROCESSES ?= 3
PACKAGES := $(wildcard bot engine storage evals bench tools)
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev run test test-real coverage crash check format map lock clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

setup: ## make .venv from the lock (at once if nothing changed)
	@command -v $(PYTHON) >/dev/null || { echo "heed: no $(PYTHON) here: install Python 3.11, 3.12 or 3.13"; exit 2; }
	@$(PYTHON) tools/bootstrap.py --flavour $(FLAVOUR)

setup-dev:
	@command -v $(PYTHON) >/dev/null || { echo "heed: no $(PYTHON) here: install Python 3.11, 3.12 or 3.13"; exit 2; }
	@$(PYTHON) tools/bootstrap.py --flavour $(FLAVOUR) --dev

run: setup ## set up and start heed: http://127.0.0.1:8080, and a terminal chat
	@exec $(BIN)/heed run $(ARGS)

test: setup-dev ## set up and run the tests
	@$(BIN)/python -m tools.chromium
	@$(BIN)/python -m tools.bubblewrap
	@# byte code is kept: rewriting every test's assertions takes a processor four seconds, in each process
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist loadscope --no-loadscope-reorder $(ARGS)

test-real: setup-dev ## run the tests with other models than the pocket model: each architecture that heed trains
	@$(BIN)/python -m pytest -m real tests/real $(ARGS)

coverage: setup-dev ## run the tests and say which share of the lines of bot, engine and storage they run
	@$(BIN)/python -m tools.chromium
	@$(BIN)/python -m tools.bubblewrap
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist loadscope --no-loadscope-reorder \
		--cov=bot --cov=engine --cov=storage --cov-report=json:build/coverage.json --cov-report= $(ARGS)
	@$(BIN)/python -m tools.coverage build/coverage.json

crash: setup-dev ## kill and stop heed over a thousand times, also while it learns and while agents work, disturb a cluster, and look for what is torn, lost or doubled (ARGS="--only learning")
	@$(BIN)/python -m tests.crash $(ARGS)

check: setup-dev ## lint, formatting, types, architecture
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy $(PACKAGES)
	@$(BIN)/python -m pytest -q tests/test_architecture.py

format: setup-dev ## apply the formatter and the safe fixes, and write docs/MAP.md anew
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format
	@$(BIN)/python -m tools.module_map
	@$(BIN)/python -m tools.texts

map: ## write docs/MAP.md anew from the heads of the modules
	@$(PYTHON) -m tools.module_map
	@$(PYTHON) -m tools.texts

lock: ## make the locks in requirements/ from their inputs (UPGRADE=1: newest versions)
	@$(PYTHON) tools/lock.py $(if $(UPGRADE),--upgrade)

clean: ## remove .venv and every cache; keeps data/
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	find bot engine storage evals bench tools tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

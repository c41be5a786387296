# barrierlab: needs python3 (>= 3.11) and make, nothing else. `make` alone lists the targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.current
OUT    ?= out/demo
JOBS   ?= 2
FUZZ_RUNS ?= 500000
SAMPLE ?= 8

# The tests start hundreds of processes: where nothing compiled is kept, each compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-full mutants fuzz bench bench-compare fast figures flink docs check lint types clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

venv: $(STAMP)  ## set up .venv (reused while pyproject.toml and constraints.txt stay as they are)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | head -n 1); Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 ..." >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "make: $(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 2; }
	@echo "setting up $(VENV) (some minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP)  ## the main job: sweep, verdict, report (at most three minutes)
	@rm -rf $(OUT)
	@$(BIN)/barrierlab sweep aligned_under_backpressure --out $(OUT)
	@$(BIN)/barrierlab report $(OUT)

# Where nothing is cached the types take a quarter of a minute on one core: beside the tests, and named if they are wrong.
define tests_and_types
	@$(BIN)/mypy >$(VENV)/types.log 2>&1 & types=$$!; \
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(1); tests=$$?; \
	wait $$types || { cat $(VENV)/types.log >&2; exit 1; }; exit $$tests
endef

test: lint  ## lint, types, quick tests, doctests, two notebooks
	$(call tests_and_types,--durations 10 -m "not slow")

test-full: lint fuzz  ## the same with the slow tests, all notebooks, and fuzzing
	$(call tests_and_types,--durations 20)

check: lint  ## lint, types, the quick tests but the longest (tests/longest.txt) and those of Spark
	$(call tests_and_types,-q -m "not slow and not spark and not long")

fuzz: $(STAMP)  ## the readers of stored data under coverage guidance, where Atheris has a wheel
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -c constraints.txt atheris || { \
	  echo "make: no wheel of Atheris for this machine; the same inputs run under Hypothesis in make test" >&2; exit 0; } \
	  && $(BIN)/python -m tests.fuzz.readers -runs=$(FUZZ_RUNS) -verbosity=0

mutants: $(STAMP)  ## plant mistakes in impl, and count those that `barrierlab check` notices (some ten minutes)
	@$(BIN)/python -m tests.mutants.run --jobs $(JOBS) --sample $(SAMPLE)

bench: $(STAMP)  ## speed of the hot paths, each beside its floor
	@for each in $(basename $(notdir $(wildcard tests/bench/bench_*.py))); do $(BIN)/python -m tests.bench.$$each || exit; done

bench-compare: $(STAMP)  ## name each ratio that became 20 % slower than docs/bench.md has it
	@$(BIN)/python -m tests.bench.table --compare

fast: $(STAMP)  ## protocol, simulator, journal and explored world compiled by mypyc, into build/fast (needs a C compiler; two minutes)
	@rm -rf build/fast build/wheel
	@$(BIN)/python -c 'import setuptools' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check setuptools
	@BARRIERLAB_COMPILED=1 $(BIN)/python -m hatchling build -t wheel -d build/wheel >/dev/null || exit 2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/fast build/wheel/*.whl
	@printf '#!/bin/sh\nPYTHONPATH="%s" exec "%s" -m barrierlab "$$@"\n' "$(CURDIR)/build/fast" "$(CURDIR)/$(BIN)/python" > build/fast/bin/barrierlab
	@build/fast/bin/barrierlab --version

flink: $(STAMP)  ## jobs on real clusters of Apache Flink, measured beside predicted (needs a JDK; half an hour)
	@$(BIN)/python -m tests.flink.run --work out/flink/work --out out/flink/answers

figures: $(STAMP)  ## measure the figures of README and the kept report anew (a quarter of an hour)
	@$(BIN)/python -m tests.figures

docs: $(STAMP)  ## the documentation as a site, into out/docs; a broken link or a warning fails
	@$(BIN)/python -m sphinx -q -W --keep-going -n -b html docs out/docs
	@echo "out/docs/index.html"

lint: $(STAMP)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(STAMP)
	@$(BIN)/mypy

clean:  ## remove results and caches (keeps .venv)
	rm -rf out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db derby.log
	find impl model sim tests notebooks -name __pycache__ -type d -prune -exec rm -rf {} +

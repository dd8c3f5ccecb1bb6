# `make demo` sets everything up and does the main job; `make test` is what .ci/run calls.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := test
.PHONY: demo test check small bench bench-ingest bench-lexical bench-quality docs clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/evidentia demo --fresh

test: check
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/deptry src
	$(BIN)/codespell

small: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m "not slow"

bench: bench-ingest bench-lexical bench-quality

bench-quality: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python benchmarks/quality.py

bench-lexical: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python benchmarks/lexical.py

bench-ingest: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python benchmarks/ingest.py

docs: $(STAMP)
	$(BIN)/python tools/write_reference.py

clean:
	rm -rf $(VENV) .evidentia .demo .mypy_cache .ruff_cache .hypothesis

# `make demo` sets everything up and does the main job; `make test` is what .ci/run calls.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
BESIDE := $(VENV)/integrations

# Bytecode is kept even where the environment says otherwise: tests start many processes, and each would compile the package again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := test
.PHONY: beside demo test test-full test-integrations test-mcp test-browser test-wheel screenshots check small bench bench-hybrid bench-ingest bench-lexical bench-quality bench-floods bench-dense bench-filters bench-understanding bench-conversations bench-decomposition bench-deadline bench-faults bench-federation bench-grounding bench-replay bench-governance bench-tables bench-protocol bench-serving bench-growth bench-exhaustion bench-injections traces fit docs clean

# The folder is made first: two environments, one within the other, may be made at the same time.
$(STAMP): pyproject.toml
	@mkdir -p $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $(STAMP)

$(BESIDE)/.installed: pyproject.toml
	@mkdir -p $(BESIDE)
	$(PYTHON) -m venv $(BESIDE)
	$(BESIDE)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BESIDE)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[haystack,langchain,llamaindex]" --group integrations
	@touch $(BESIDE)/.installed

beside: $(BESIDE)/.installed

demo: $(STAMP)
	$(BIN)/evidentia demo --fresh

test: check
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-integrations: $(BESIDE)/.installed
	$(BESIDE)/bin/python -m pytest --confcutdir=integrations_tests integrations_tests

test-mcp: $(STAMP)
	$(BIN)/python tools/mcp_conformance.py --directory $(VENV)/mcp-conformance

test-browser: $(STAMP)
	$(BIN)/python -m pytest --confcutdir=browser_tests browser_tests

test-wheel:
	PYTHON="$(PYTHON)" tools/check_wheel.sh

screenshots: $(STAMP)
	$(BIN)/python browser_tests/screenshots.py docs/images

test-full: $(STAMP)
	EVIDENTIA_SCIFACT=full EVIDENTIA_SOAK=full $(BIN)/python -m pytest -n 2 --dist worksteal

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks/serving.py benchmarks/exhaustion.py benchmarks/exhaustion_pools.py
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/deptry src
	$(BIN)/codespell

small: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m "not slow"

bench: bench-ingest bench-lexical bench-quality bench-floods bench-dense bench-filters bench-understanding bench-conversations bench-decomposition bench-hybrid bench-federation bench-deadline bench-faults bench-grounding bench-replay bench-governance bench-tables bench-protocol bench-serving bench-growth bench-exhaustion bench-injections

bench-quality: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python benchmarks/quality.py --store

bench-floods: $(STAMP)
	$(BIN)/python benchmarks/floods.py

bench-filters: $(STAMP)
	$(BIN)/python benchmarks/filters.py

bench-dense: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python benchmarks/dense.py

bench-federation: $(STAMP)
	$(BIN)/python benchmarks/federation.py

bench-deadline: $(STAMP)
	$(PYTHON) -m venv $(VENV)/peers
	$(VENV)/peers/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(VENV)/peers/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group peers
	$(VENV)/peers/bin/python benchmarks/deadline.py

bench-faults: $(STAMP)
	$(BIN)/python benchmarks/deadline_faults.py

bench-understanding: $(STAMP)
	$(BIN)/python benchmarks/understanding.py

bench-conversations: $(STAMP)
	$(BIN)/python benchmarks/conversations.py

bench-decomposition: $(STAMP)
	$(BIN)/python benchmarks/decomposition.py

bench-grounding: $(STAMP)
	$(BIN)/python benchmarks/grounding.py --encoder

bench-replay: $(STAMP)
	$(BIN)/python benchmarks/replay.py --scale 1000000

bench-governance: $(STAMP)
	$(PYTHON) -m venv $(VENV)/client
	$(VENV)/client/bin/python -m pip install --quiet --disable-pip-version-check waxell-observe==0.1.10
	$(BIN)/python benchmarks/governance.py --peer $(VENV)/client/bin/python

bench-tables: $(STAMP)
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python benchmarks/table_choice.py
	$(BIN)/python benchmarks/table_questions.py

bench-protocol: $(STAMP)
	$(BIN)/python benchmarks/protocol.py

bench-serving: $(STAMP)
	$(BIN)/python benchmarks/serving.py

bench-growth: $(STAMP)
	$(BIN)/python benchmarks/growth.py

bench-exhaustion: $(STAMP)
	$(BIN)/python benchmarks/exhaustion.py

bench-injections: $(STAMP)
	$(BIN)/python benchmarks/injections.py

traces: $(STAMP)
	EVIDENTIA_TRACES=100000 $(BIN)/python -m pytest -n 2 tests/governance/test_governance_oracle.py tests/governance/test_governance_over_http.py

fit: $(STAMP)
	$(BIN)/python tools/fit_ranking.py $${EVIDENTIA_DATA:-../shared/data}/scifact
	$(BIN)/python tools/fit_confidence.py
	$(BIN)/python tools/fit_grounding.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python tools/fit_injection.py --judge

bench-lexical: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python benchmarks/lexical.py

bench-ingest: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python benchmarks/ingest.py

bench-hybrid: $(STAMP)
	$(PYTHON) -m venv $(VENV)/peers
	$(VENV)/peers/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(VENV)/peers/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group peers
	$(VENV)/peers/bin/python benchmarks/hybrid.py

docs: $(STAMP)
	$(BIN)/python tools/write_sync_base.py
	PYTHONHASHSEED=0 $(BIN)/python tools/write_reference.py

clean:
	rm -rf $(VENV) .evidentia .demo .mypy_cache .ruff_cache .hypothesis

# The one list of commands. Everything runs in .venv, which is made from pyproject.toml and constraints.txt alone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data

.PHONY: help install demo demo-check test test-reliability test-scale soak lint types layers check format bench bench-size bench-quality bench-methods bench-cold bench-memory bench-engine bench-tune clean

help:  ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group dev -e .
	$(BIN)/python -m compileall -q rse_cli  # as pip does where it installs a copy
	touch $@

install: $(VENV)/installed  ## Make .venv with rse and all that tests need

demo: install  ## Index sample_docs/ and answer two queries
	$(BIN)/rse ingest sample_docs
	@echo
	$(BIN)/rse query --preset precision "What must I do before I climb the mast?"
	@echo
	$(BIN)/rse query --limit 2 "Which offer for the new Whimbrel mould did the board choose?"
	@echo
	@echo "The index lies in .rse; ask more with: $(BIN)/rse query \"...\""

demo-check: install  ## Index sample_docs/ into a store of its own and check its cases
	cd sample_docs && ../$(BIN)/rse ingest --store .rse
	cd sample_docs && ../$(BIN)/rse check cases.yaml --store .rse $(if $(GITHUB_ACTIONS),--github) \
		--min hit=0.95 --min silent=1 --min recall=0.8 --max chars=3000

test: install  ## Run all tests
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

test-reliability: install  ## Kill, signal and crowd ingests, feed them bad files; writes benchmarks/RELIABILITY.md
	$(BIN)/python -m pytest tests/reliability --kills 100 --report benchmarks/RELIABILITY.md
	FUZZ_EXAMPLES=200 $(BIN)/python -m pytest tests/test_reader_fuzz.py

$(VENV)/scale: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[scale]'
	touch $@

test-scale: $(VENV)/scale  ## Several processes on one object store and on workers of Ray, all on loopback
	$(BIN)/python -m pytest tests/scale

soak: install  ## The same with 300 kills and more fuzzing
	$(BIN)/python -m pytest tests/reliability --kills 300 --seed 1
	FUZZ_EXAMPLES=2000 $(BIN)/python -m pytest tests/test_reader_fuzz.py

lint: install  ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install  ## Check types
	$(BIN)/mypy

layers: install  ## Check that each layer imports only what stands below it
	$(BIN)/lint-imports

check: lint types layers test  ## All that CI runs

format: install  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install  ## Measure speed and write benchmarks/RESULTS.md (DATA=folder of questions)
	$(BIN)/python -m benchmarks.results --data $(DATA)

bench-size: install  ## The same at 100,000 and 1,000,000 chunks: 8 GB of disk
	$(BIN)/python -m benchmarks.results --data $(DATA) --only 100k --only 1m

bench-quality: install  ## Recall and refusals beside plain top-k (DATA=folder of questions)
	$(BIN)/python -m benchmarks.quality --data $(DATA)

bench-methods: install  ## Recall of every method at the same number of characters (DATA=folder of questions)
	$(BIN)/python -m benchmarks.methods --data $(DATA)

bench-cold: install  ## Time of one query as a whole process, on 10,000 chunks
	$(BIN)/python -m benchmarks.cold

bench-memory: install  ## Memory of ingest on 5,000 files, and of a query
	$(BIN)/python -m benchmarks.memory

bench-engine: install  ## Time of choosing segments from up to 200,000 chunks (PUBLISHED=dsrag/rse.py: beside that)
	$(BIN)/python -m benchmarks.engine $(if $(PUBLISHED),--published $(PUBLISHED))

bench-tune: install  ## What a search from bad parameters finds, and how long it takes (DATA=folder of questions)
	$(BIN)/python -m benchmarks.tune --data $(DATA)

.PHONY: docs
docs: install  ## Draw the picture of the README, docs/inspect.svg, from sample_docs/
	@mkdir -p docs
	@store=$$(mktemp -d) && trap 'rm -rf "$$store"' EXIT && cd sample_docs \
		&& ../$(BIN)/rse ingest --store "$$store/index" \
		&& COLUMNS=100 ../$(BIN)/rse inspect --store "$$store/index" --documents 1 --around 1 --svg ../docs/inspect.svg \
			"What must I do before I climb the mast?"

clean:  ## Remove what the other targets made
	rm -rf $(VENV) .rse sample_docs/.rse .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

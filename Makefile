# On a fresh machine: `make demo` and `make test`. Both make a virtual environment in .venv first.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
QUERYVEIL := $(BIN)/queryveil
WORKERS ?= 2
EXAMPLES ?= 1
PYTEST_ARGS ?=
BENCH_ARGS ?=

# Many tests start processes of their own. Where compiled modules may not be kept, each compiles all of them anew, which
# takes twice as long as the rest of a short command.
unexport PYTHONDONTWRITEBYTECODE

FUZZ_SECONDS ?= 60
DEMO := attack,dp,report,search

.PHONY: help demo test fuzz lint typecheck bench docs package clean

help:
	@echo "make demo       make a synthetic log, a verified release, and a comparison of all methods (in demo/)"
	@echo "make test       run the whole test suite; EXAMPLES=20 tries twenty times as many random logs"
	@echo "make fuzz       try hostile input on every format, FUZZ_SECONDS=$(FUZZ_SECONDS) for each test"
	@echo "make lint       check style and the imports between layers"
	@echo "make typecheck  check types"
	@echo "make bench      run the benchmarks"
	@echo "make docs       build the documentation site (in site/)"
	@echo "make package    build wheel and sdist (in dist/), and try the wheel in an empty environment"
	@echo "make clean      remove what the other targets made, but not $(VENV)"

# Two things at a time: the log is made while the packages that only the comparison needs are fetched, and the release is
# made and checked while the comparison runs.
demo: $(VENV)/.installed-core
	@rm -rf demo && mkdir demo
	@$(MAKE) --no-print-directory -j 2 demo/release demo/comparison
	@echo
	@echo "== Done. Open demo/comparison/report.html in a browser: what every method keeps, and what it gives away."
	@echo "   demo/release/report.md says what the release promises and what it does not."
	@echo "   To review the log yourself, up to a signed release: make $(VENV)/.installed-studio, then"
	@echo "   $(QUERYVEIL) studio demo/log.tsv.gz --project demo/review"

demo/log.tsv.gz: | $(VENV)/.installed-core
	@echo "== Step 1: a synthetic log of 300 users to try things on. It describes no real person."
	$(QUERYVEIL) synth --users 300 --seed 1 -o $@ --truth demo/truth

demo/release: demo/log.tsv.gz
	@echo "== Step 2: the log in numbers. The table about k says what each threshold would keep."
	$(QUERYVEIL) profile $<
	@echo "== Step 3: a release of the queries that at least 5 users issued. 'Holds' are promises, checked before it is written."
	$(QUERYVEIL) anonymize $< --method equality -k 5 -o $@
	@echo "== Step 4: anyone who has the log and the release can check it again."
	$(QUERYVEIL) verify $@ --original $<
	@echo "== Step 5: why is a query in the release, or why not?"
	$(QUERYVEIL) explain $@ --original $< "cell phone case"

demo/comparison: demo/log.tsv.gz $(VENV)/.fetched-$(DEMO)
	@echo "== Beside it, step 6 begins, the longest: all methods make a release, and each is measured and attacked."
	@$(QUERYVEIL) web-directory build demo/truth/structure.rdf.u8 demo/truth/content.rdf.u8 -o demo/sites.qvd > /dev/null
	@$(QUERYVEIL) compare $< --methods all --k 5 --tests 500 --web-directory demo/sites.qvd -o $@

test: $(VENV)/.installed-dev
	EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q -n $(WORKERS) --durations=10 $(PYTEST_ARGS)

fuzz: $(VENV)/.installed-dev
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -q -n $(WORKERS) tests/fuzz $(PYTEST_ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

typecheck: $(VENV)/.installed-dev
	$(BIN)/mypy

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.run $(BENCH_ARGS)

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The wheel with nothing beside it but what the lock names: the quick start must print what its page says.
package: $(VENV)/.installed-core
	rm -rf dist
	$(BIN)/python -m hatchling build
	@empty=$$(mktemp -d) && trap 'rm -rf "$$empty"' EXIT && set -e && \
	$(PYTHON) -m venv "$$empty/venv" && \
	$(BIN)/python scripts/lock.py --pick core > "$$empty/requirements.txt" && \
	"$$empty/venv/bin/python" -m pip install -q --require-hashes -r "$$empty/requirements.txt" && \
	"$$empty/venv/bin/python" -m pip install -q --no-deps dist/*.whl && \
	"$$empty/venv/bin/python" docs/examples.py --installed --check docs/quickstart.md && \
	echo "The quick start runs with the wheel alone."

clean:
	rm -rf demo site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .grimp_cache
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp a set of dependencies, so that a second call installs nothing. Every file that is fetched must have a hash in
# constraints.txt; a folder has none, so the package itself comes second. Modules are compiled when they are first used:
# most never are.
$(VENV)/.installed-%: $(VENV)/.fetched-%
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	touch $@

.PRECIOUS: $(VENV)/.fetched-%
$(VENV)/.fetched-%: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python scripts/lock.py --pick '$*' > $@.txt
	$(BIN)/python -m pip install -q --no-compile --require-hashes -r $@.txt
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

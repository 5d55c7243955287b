# Two commands are enough on a machine that has only Python, pip, git and make:
#   make demo    a virtual environment, the package in it, and the main job on made-up data
#   make test    the same plus what the tests need, then every check there is
# make quick, while you work: lint, types and every test that takes less than about a second.
# make extras adds what pictures, pandas, Polars, Excel files, notebooks, the server and a ledger on PostgreSQL need.
# make audit replays 100,000 generated pairs of neighbouring tables through our own path (PAIRS=...).
# make test-spark runs every test of Spark; it brings a Java if the machine has none (scripts/spark.py).
# make docs builds the site into build/site, strictly; open build/site/index.html.
# make mutants breaks the code in known ways, each of which a test must find (scripts/mutants.py).

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# One more than two cores: some tests wait for processes and servers.
JOBS   ?= 3
TESTS  := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --maxfail 40
PAIRS  ?= 100000
# Unset: hundreds of test processes import the package, and compiling it once is enough.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo docs extras test quick test-long test-spark check bench audit mutants clean

demo: $(VENV)/.installed
	@$(BIN)/dither demo

extras: $(VENV)/.installed-extras

test: check
	$(TESTS) -m "not spark"
	$(BIN)/python scripts/spark.py

quick: check
	$(TESTS) -m "not slow" --durations=5 --durations-min=2

test-long: $(VENV)/.installed-docs
	DITHER_SEARCH=1 $(TESTS) -m "not spark"
	$(BIN)/python scripts/spark.py

test-spark: $(VENV)/.installed-dev
	$(BIN)/python scripts/spark.py --all

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/accounting.py
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/questions.py

# Not --quiet: it would also hide warnings from strict, and dead links would pass.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	DITHER_SITE=build/site $(BIN)/python -m pytest -m "long or not long" tests/test_site.py

audit: $(VENV)/.installed-dev
	$(BIN)/python -m dither.audit.ourselves --pairs $(PAIRS) --jobs $(JOBS)

mutants: $(VENV)/.installed-dev
	$(BIN)/python scripts/mutants.py --jobs $(JOBS)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "dither needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-extras: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plots,pandas,polars,postgres,delta,excel,notebook,serve,oidc,wire]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,plots,pandas,polars,postgres,delta,excel,notebook,serve,oidc,wire]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-extras

$(VENV)/.installed-docs: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis build dist

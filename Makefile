# Every command builds what it needs; a fresh machine has only python3 and make.
PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
SITE := .venv-site
PY := $(VENV)/bin/python

.PHONY: demo test test-statistical test-long mutate verify check bench docs site format clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.ready: $(VENV)/.installed
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

$(BENCH)/.ready: pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check --editable ".[bench]"
	touch $@

$(SITE)/.ready: pyproject.toml
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/pip install --quiet --disable-pip-version-check --editable ".[site]"
	touch $@

demo: $(VENV)/.installed ## the story, embedded, in the terminal
	$(VENV)/bin/counterpoint demo

test: $(VENV)/.ready ## everything but the long lane (make test-long)
	$(PY) -m pytest -n 2 -rs -m "not long" tests

test-statistical: $(VENV)/.ready ## the tests with a stated false-alarm rate, alone
	$(PY) -m pytest -m statistical tests

test-long: $(VENV)/.ready mutate ## what takes too long for every change
	$(PY) -m pytest -m long tests

mutate: $(VENV)/.ready ## plant privacy bugs, one at a time: a test must fail for each
	$(PY) -m tests.mutation

verify: $(VENV)/.ready ## what everything exactly loses beside its claim, and all long and statistical tests of it
	$(VENV)/bin/counterpoint verify
	$(PY) -m pytest -n 2 -m "long or statistical" tests/verify tests/local tests/mechanisms

check: $(VENV)/.ready ## format, lint, strict types, import layers, the examples in docs and docstrings
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PY) -m pytest -n 2 --doctest-modules --doctest-glob="*.md" --ignore-glob="docs/*.py" src README.md CONTRIBUTING.md docs

bench: $(BENCH)/.ready ## side by side with the peers, as ratios
	$(BENCH)/bin/python -m bench

docs: $(BENCH)/.ready ## regenerate the computed pages and figures
	$(BENCH)/bin/python docs/make_score.py
	$(BENCH)/bin/python docs/make_tightness.py
	$(BENCH)/bin/python docs/make_mechanisms.py
	$(BENCH)/bin/python docs/make_selection.py
	$(BENCH)/bin/python -m docs.make_local
	$(BENCH)/bin/python docs/make_counters.py
	$(BENCH)/bin/python docs/make_histogram.py
	$(BENCH)/bin/python docs/make_verification.py

site: $(SITE)/.ready ## the pages as a site, in site/; a link that leads nowhere fails
	$(SITE)/bin/zensical build --strict --clean

format: $(VENV)/.ready
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

clean:
	rm -rf $(VENV) $(BENCH) $(SITE) site .pytest_cache .mypy_cache .ruff_cache .hypothesis

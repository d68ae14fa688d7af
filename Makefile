# Every command builds what it needs; a fresh machine has only python3 and make.
PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
SITE := .venv-site
WHEEL := .venv-wheel
LOWEST := .venv-lowest
PY := $(VENV)/bin/python
WHEEL_TESTS := tests/test_names.py tests/test_encoding.py tests/numbers tests/measures/test_losses.py \
	tests/mechanisms/test_additive.py tests/session/test_session.py tests/ledger/test_ledger.py

LOWEST_TESTS := tests/test_names.py tests/test_encoding.py tests/mechanisms/test_additive.py tests/engines/test_duckdb.py \
	tests/session/test_session.py tests/ledger/test_ledger.py tests/ledger/test_command.py tests/service/test_service.py \
	tests/service/test_tls.py

.PHONY: demo test test-statistical test-long mutate verify proofs check wheel-test lowest lock bench peers docs site format clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --editable ".[service]"
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
	$(PY) -m pytest -n 2 --dist worksteal -rs -m "not long" tests

test-statistical: $(VENV)/.ready ## the tests with a stated false-alarm rate, alone
	$(PY) -m pytest -m statistical tests

test-long: $(VENV)/.ready mutate ## what takes too long for every change
	$(PY) -m pytest -m long tests

mutate: $(VENV)/.ready ## plant privacy bugs, one at a time: a test must fail for each
	$(PY) -m tests.mutation

verify: $(VENV)/.ready ## what everything exactly loses beside its claim, and all long and statistical tests of it
	$(VENV)/bin/counterpoint verify
	$(PY) -m pytest -n 2 -m "long or statistical" tests/verify tests/local tests/mechanisms

proofs: $(VENV)/.ready ## check the theorems with Coq, print them, and compare what they are about with the code
	$(PY) -u -m tests.proofs

check: $(VENV)/.ready ## format, lint, strict types, import layers, the examples in docs and docstrings
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PY) -m pytest -n 2 --doctest-modules --doctest-glob="*.md" --ignore-glob="docs/*.py" src README.md CONTRIBUTING.md docs peers

# The tests are copied beside the wheel's environment, so that what they import is what was installed.
wheel-test: ## build the wheel, check it, install it alone and test it; PYTHON=python3.13 chooses another Python
	rm -rf $(WHEEL) dist
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/pip install --quiet --disable-pip-version-check build twine
	$(WHEEL)/bin/python -m build --outdir dist .
	$(WHEEL)/bin/twine check --strict dist/*
	$(WHEEL)/bin/pip install --quiet --disable-pip-version-check dist/*.whl pytest hypothesis mpmath scipy pandas pyarrow
	mkdir $(WHEEL)/outside
	cp -r tests pyproject.toml $(WHEEL)/outside
	cd $(WHEEL)/outside && ../bin/python -c "import counterpoint; assert 'site-packages' in counterpoint.__file__"
	cd $(WHEEL)/outside && ../bin/counterpoint demo --seed 1 > demo.txt
	cd $(WHEEL)/outside && ../bin/python -m pytest -m "not long and not statistical" -k "not postgres" $(WHEEL_TESTS)

# The tools of the tests are newer, as far as the oldest numpy allows.
lowest: ## the tests of all that uses other packages, on the oldest versions of those that are allowed
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/bin/uv pip compile --quiet --resolution lowest-direct --python $(LOWEST)/bin/python --extra service \
		--extra postgres --output-file $(LOWEST)/lowest.txt pyproject.toml
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --constraint $(LOWEST)/lowest.txt --editable . \
		--requirement $(LOWEST)/lowest.txt pytest hypothesis mpmath jsonschema pyyaml "scipy<1.17" "pandas<3" "pyarrow<18"
	$(LOWEST)/bin/python -m pytest -m "not long and not statistical" -k "not postgres and not spark" $(LOWEST_TESTS)

lock: $(VENV)/.installed ## the exact packages of the service's image: deploy/requirements.lock
	$(VENV)/bin/pip install --quiet --disable-pip-version-check uv
	echo "# The packages of the image, each with its digests. Written by: make lock" > deploy/requirements.lock
	$(VENV)/bin/uv pip compile --quiet --generate-hashes --python-version 3.13 --python-platform linux --extra service \
		--extra postgres --no-header --no-annotate pyproject.toml >> deploy/requirements.lock

bench: $(BENCH)/.ready ## side by side with the peers, as ratios
	$(BENCH)/bin/python -m bench

# Each peer is installed into .venv-peers; one that cannot be installed here is said to be so on the page.
peers: $(VENV)/.ready ## the same tasks with other libraries; writes docs/benchmarks.md
	$(PY) -m peers

docs: $(BENCH)/.ready $(VENV)/.ready ## regenerate the computed pages and figures
	$(BENCH)/bin/python -m docs.make_coverage
	$(BENCH)/bin/python -m docs.make_examples
	$(BENCH)/bin/python docs/make_pictures.py
	$(BENCH)/bin/python -m docs.make_tightness
	$(BENCH)/bin/python docs/make_mechanisms.py
	$(BENCH)/bin/python docs/make_selection.py
	$(BENCH)/bin/python -m docs.make_local
	$(BENCH)/bin/python docs/make_counters.py
	$(BENCH)/bin/python docs/make_histogram.py
	$(BENCH)/bin/python docs/make_verification.py
	$(BENCH)/bin/python -m docs.make_scaling
	$(PY) -m docs.make_gallery
	$(PY) -m docs.make_notebooks

site: $(SITE)/.ready $(VENV)/.ready ## the pages as a site, in site/; a link that leads nowhere fails
	if command -v chromium > /dev/null; then $(PY) docs/make_dashboard.py; else echo "no Chromium: the screenshots stay"; fi
	PYTHONPATH=. $(SITE)/bin/zensical build --strict --clean

format: $(VENV)/.ready
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

clean:
	rm -rf $(VENV) .venv-peers $(BENCH) $(SITE) $(WHEEL) $(LOWEST) dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

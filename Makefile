# make run          set up, learn the bundled sample, label three fresh texts, serve the page
# make test         set up, then lint, types, imports and tests
# make test-all     also the long tests: all corpora, more examples, and the kernels uncompiled
# make test-lowest  the tests with the lowest releases that pyproject.toml allows
# make soak         half an hour of mixed load on two services, on SQLite and then on PostgreSQL
# make mutants      put 300 small faults into the source, one at a time, and see if tests notice
# make bench        speed, memory and size compared with other libraries (needs the shared corpora)

PYTHON ?= python3
BIN := .venv/bin
LOWEST := .venv-lowest/bin

# Tests run in one process per core, where the threads of BLAS would wait for each other.
test test-all test-lowest mutants: export OPENBLAS_NUM_THREADS = 1

.PHONY: run test test-all test-lowest lint soak mutants bench clean

run: .venv/installed
	@$(BIN)/python -m polytopic.cli.demo

test: lint
	$(BIN)/python -m tests.compiling
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not long"

test-all: lint
	$(BIN)/python -m tests.compiling
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n auto --dist worksteal
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto --dist worksteal -m "not long"

# Kernels are stored separately, since each release of numba discards what another has compiled.
test-lowest: export NUMBA_CACHE_DIR = $(CURDIR)/.venv-lowest/kernels
test-lowest: .venv-lowest/installed
	$(LOWEST)/python -m tests.compiling
	$(LOWEST)/python -m pytest -n auto --dist worksteal -m "not long and not corpus" tests

lint: .venv/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: .venv/tested
	$(BIN)/python -m tests.soak

mutants: .venv/tested
	$(BIN)/python -m tests.compiling
	$(BIN)/python -m tests.mutation

bench: .venv/tested
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python benchmarks/bench.py

.venv/installed: pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed; Python 3.11 or newer is needed." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[server]'
	@$(BIN)/python -m compileall -q src
	$(BIN)/polytopic compile pmm1 stack
	@touch $@

.venv/tested: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@tests/install_postgres || echo "PostgreSQL is not installed; tests that need it are skipped." >&2
	@tests/install_chromium || echo "Chromium is not installed; tests that need it are skipped." >&2
	@touch $@

.venv-lowest/installed: pyproject.toml tests/lowest.py
	$(PYTHON) -m venv --clear .venv-lowest
	$(LOWEST)/python -m tests.lowest > .venv-lowest/constraints.txt
	$(LOWEST)/python -m pip install --quiet --disable-pip-version-check \
		--constraint .venv-lowest/constraints.txt --editable '.[bench,test]'
	@touch $@

clean:
	rm -rf .venv .venv-lowest sample.db* build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# New here? Run `make demo`, then `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Number of pytest workers; each worker uses one BLAS thread. One more than two cores: the tests of a live
# federation wait more than they compute.
TEST_WORKERS ?= 3

# Without bytecode, every process that a test starts compiles the package again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo install test test-slow test-all test-random test-lowest browser lint format docs pictures bench pages pages-check package lock clean

demo: $(VENV)/.installed
	$(BIN)/jigsaw demo

install: $(VENV)/.installed

PYTEST = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadscope

# At most 4 minutes on two cores.
test: lint
	$(PYTEST) -m "not slow"
	@echo "Tests that take seconds each were left out; make test-all runs them too."

# What `make test` leaves out.
test-slow: $(VENV)/.installed-dev
	$(PYTEST) -m slow

# At most 12 minutes on two cores.
test-all: lint
	$(PYTEST)

# A thousand random examples of every property; the other targets draw the same few every time.
test-random: $(VENV)/.installed-dev
	$(PYTEST) -m hypothesis --hypothesis-profile random --timeout 0

# The tests with the oldest versions that pyproject.toml allows, in an environment of its own. Old packages use what new
# ones deprecate, and are compiled with warnings: neither says anything of this one.
LOWEST := build/lowest
test-lowest: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv venv --quiet --clear $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST) --resolution lowest-direct --compile-bytecode -e ".[dev]"
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n $(TEST_WORKERS) --dist loadscope -m "not slow" --ignore tests/docs -W ignore::DeprecationWarning

# Installs Chromium where possible. Without a browser, the report's browser tests are skipped with a reason.
browser:
	sh scripts/install-chromium.sh

CODE := src tests benchmarks examples
lint: $(VENV)/.installed-dev
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

# Builds the site. Warnings are errors. It changes no file outside docs/_build.
docs: $(VENV)/.installed-dev
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "The site is in docs/_build/html/index.html"

# Builds the source archive and the wheel in dist/, and tries them and each extra in empty environments.
package:
	PYTHON=$(PYTHON) sh scripts/check-package.sh

# Draws the pictures of the site again with the scripts in examples/; those of the report need Chromium.
pictures: $(VENV)/.installed-dev browser
	for script in examples/plot_*.py examples/report_pictures.py; do $(BIN)/python $$script docs/pictures || exit 1; done

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

# Measures every ratio of docs/performance.md: about ten minutes on two idle cores. To measure a part:
# make bench BENCH="-k one_client --sizes 25,50"
bench: $(VENV)/.installed-dev
	mkdir -p build
	$(BIN)/python -m pytest -v benchmarks/test_performance.py --timeout 0 --benchmark-quiet --benchmark-json build/performance.json $(BENCH)
	$(BIN)/python benchmarks/performance.py build/performance.json > build/performance.md
	@cat build/performance.md

# Measures what this code has not measured of the tables of the pages, and writes them: hours on two cores. It goes
# on where it stopped. A part: make pages PAGES="--only calibration --seconds 600"
pages: $(VENV)/.installed-dev
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python benchmarks/pages.py run $(PAGES)

# Compares the pages with their records, and measures some of these again: minutes.
pages-check: $(VENV)/.installed-dev
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python benchmarks/pages.py check $(PAGES)

# A study of a size whose functions are compiled. They are cached for the first study of a user.
COMPILE = import jigsaw_crl as jc; w = jc.simulate.random_world(40, 4, 0.6, seed=0); [jc.recover(w.clients(n)) for n in (None, 5000)]

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "jigsaw-crl needs Python 3.11 or newer: run make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: EXTRAS :=
$(VENV)/.installed-dev: EXTRAS := [dev]
$(VENV)/.installed $(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(if $(LOCKED),$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(LOCKED),--no-deps) -e ".$(EXTRAS)"
	@echo "Compiling functions for this machine; it takes 10 to 30 seconds, once."
	$(BIN)/python -c "$(COMPILE)"
	touch $@ $(VENV)/.installed

# Writes the versions and hashes of everything that development installs. `make test LOCKED=1` installs just these.
lock: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --quiet \
	  --no-emit-index-url --no-annotate --custom-compile-command "make lock" --output-file requirements-dev.txt

clean:
	rm -rf $(VENV) docs/_build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache dist build

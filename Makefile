# The two commands a newcomer needs: `make run` and `make test`.
# Every target brings its own virtual environment up to date first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNS := $(VENV)/.runs
PORT ?= 8787
PYTEST_ARGS ?=

.PHONY: help install runtime page dist node-tests browser run test check cover mutate chaos live bench clean

help:
	@echo "make run     start the demo agent on http://127.0.0.1:$(PORT)"
	@echo "make test    everything: style, types, layers, behaviour, crashes, browser"
	@echo "make dist    the wheel and the source distribution, in dist/"
	@echo "make check   only ruff, pyright and the layer contracts"
	@echo "make cover   which lines and branches the quick tests reach"
	@echo "make mutate  whether the tests of the pure decisions notice a changed operator"
	@echo "make chaos   kill our own app at every named point and 1,000 times at random"
	@echo "make live    the model contract against every provider whose key is in the environment"
	@echo "make bench   measure CPU beside other servers and write benchmarks/RESULTS.md"

# pip says what it does: on a slow line nobody should wonder for minutes whether anything happens.
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt

# Everything: what running needs and the tools of development.
install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "==> Installing Thinkwell and the tools of development into $(VENV) (450 MB)"
	@$(PIP) -e '.[dev]'
	@touch $@

# What running needs and nothing else, unless the environment has everything already.
runtime: $(if $(wildcard $(STAMP)),$(STAMP),$(RUNS))

$(RUNS): pyproject.toml constraints.txt | $(BIN)/python
	@echo "==> Installing what running needs into $(VENV) (90 MB)"
	@$(PIP) -e .
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Thinkwell needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@echo "==> Making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# Exact versions without a lock file, since lock files hold the addresses of somebody's registry.
# What npm warns of (engines of libraries that work all the same) is nothing a reader can act on.
NPM_FLAGS := --no-audit --no-fund --prefer-offline --loglevel=error
NPM_INSTALL := if [ -f package-lock.json ]; then npm ci $(NPM_FLAGS); \
  else npm install --no-package-lock $(NPM_FLAGS); fi
NEED_NPM := @command -v npm >/dev/null || { echo "Node 20 or newer with npm is needed." >&2; exit 1; }

# The chat page, from studio/ into the package.
PAGE_SOURCES := $(shell find studio -type f -not -path '*/node_modules/*' 2>/dev/null)
PAGE := src/thinkwell/server/page/index.html

page: $(if $(wildcard studio/package.json),$(PAGE))

$(PAGE): $(PAGE_SOURCES)
	$(NEED_NPM)
	@echo "==> Installing the libraries of the chat page into studio/node_modules (170 MB)"
	@cd studio && { $(NPM_INSTALL); }
	@echo "==> Building the chat page"
	@cd studio && npm run build
	@touch $@

# The wheel and the source distribution; hatch_build.py sees to the page in both.
dist: install page
	$(BIN)/python -m hatchling build -t sdist -t wheel -d dist

# Tests that compare with the real JavaScript libraries.
NODE_TESTS := $(patsubst %/package.json,%/node_modules/.installed,$(wildcard tests/*/package.json))

node-tests: $(NODE_TESTS)

tests/browser/node_modules/.installed: $(wildcard tests/browser/hooks/src/* tests/browser/hooks/build.mjs)

tests/%/node_modules/.installed: tests/%/package.json
	$(NEED_NPM)
	cd $(<D) && { $(NPM_INSTALL); } && npm run build --if-present
	@touch $@

# The browser tests drive Chromium: the one at CHROMIUM_PATH, or the one on PATH.
browser:
	@if [ -n "$$CHROMIUM_PATH" ] && [ -x "$$CHROMIUM_PATH" ]; then exit 0; fi; \
	if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; \
	else \
	  echo "The browser tests need Chromium. Run: sudo apt-get install -y chromium" >&2; \
	  echo "or set CHROMIUM_PATH to the executable you have." >&2; exit 1; \
	fi

run: runtime page
	@echo "==> Starting the demo agent; Ctrl-C stops it"
	@$(BIN)/thinkwell serve examples/demo.py --port $(PORT)

test: install page node-tests browser
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(PYTEST_ARGS)

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

# The quick tests: what kills processes or drives a browser shows its worth in other ways.
QUICK := tests/unit tests/contracts tests/turns tests/http tests/wire tests/cli tests/features tests/jobs

cover: install
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q $(QUICK) -m "not crash and not browser" $(PYTEST_ARGS)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

# Changes the pure decisions one operator at a time; their unit tests must notice. Ten minutes.
mutate: install
	nice -n 19 $(BIN)/python -m tests.mutation

# What `thinkwell chaos` does for any app, for ours and at length. SEED=7 makes the same plan again.
KILLS ?= 1000
SEED ?=

chaos: install
	$(BIN)/thinkwell chaos tests/chaos/app.py --points --kills $(KILLS) $(if $(SEED),--seed $(SEED))

# The same promises as in tests/contracts/test_models.py, kept by real providers. Costs a few cents
# each, and says whom it did not ask and why. ARGS="-k Groq" picks some.
ARGS ?=

live: install
	$(BIN)/python -m tests.live $(ARGS)

bench: install
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .coverage .coverage.* .pytest_cache .ruff_cache .import_linter_cache src/thinkwell/server/page
	rm -rf studio/node_modules tests/*/node_modules benchmarks/.venvs

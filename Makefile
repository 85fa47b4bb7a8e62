# What a newcomer types. It needs Python 3.11 or newer, and for the tests Java 17 (or 11) or a Docker engine.

PYTHON ?= python3
# Most tests wait for a lease or for the database, not for a processor.
WORKERS ?= 3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
SOURCES := $(VENV)/sources

.PHONY: help demo install test check lint types imports pytest simulate bench cassandra clean FORCE
.DEFAULT_GOAL := help

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## Show slotkeeper at work, in a minute
	$(BIN)/slotkeeper demo

install: $(INSTALLED) ## Make .venv, with slotkeeper and what its tests need

test: check pytest ## Run all that CI runs

check: lint types imports ## Run the checks that need no server

lint: $(INSTALLED) ## Check style and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(INSTALLED) ## Check types
	$(BIN)/mypy
	cd tests && ../$(BIN)/mypy --config-file ../pyproject.toml --cache-dir ../.mypy_cache --explicit-package-bases . ../examples

imports: $(INSTALLED) ## Check which package may import which
	$(BIN)/lint-imports

pytest: $(INSTALLED) ## Run the tests; ARGS="-k name" picks some, WORKERS=0 runs them in one process
	$(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal $(ARGS)

simulate: $(INSTALLED) ## Run a million simulated schedules, and 50,000 of lock nodes; ARGS="--seed 7" for others
	cd tests && ../$(BIN)/python -m simulator --schedules 1000000 $(ARGS)
	cd tests && ../$(BIN)/python -m locksimulator --schedules 50000 $(ARGS)

bench: $(INSTALLED) ## Measure it beside the raw driver, in twenty minutes; ARGS="--quick" for a look
	cd tests && exec ../$(BIN)/python -m bench $(ARGS)

cassandra: $(INSTALLED) ## Run a Cassandra until Ctrl-C; ARGS="--port 9142" for another port
	cd tests && exec ../$(BIN)/python -m cluster $(ARGS)

clean: ## Remove what these commands made in this folder
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The strict editable install is a tree of links, one for each file: a new file needs a new install.
$(INSTALLED): pyproject.toml $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet 'pip>=25.1'
	rm -rf build/__editable__.*
	$(BIN)/python -m pip install -qq --config-settings editable_mode=strict --editable . --group dev
	@touch $@

$(SOURCES): FORCE | $(BIN)/python
	@find . \( -name '.?*' -o -name build -o -path ./tests \) -prune -o \( -name '*.py' -o -name '*.cql' -o -name '*.sql' -o -name '*.json' \) -print \
	    | sort > $@.new
	@cmp -s $@ $@.new && rm $@.new || mv $@.new $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1)' 2>/dev/null || \
	    { echo "slotkeeper needs Python 3.11 or newer; '$(PYTHON)' is not: try make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

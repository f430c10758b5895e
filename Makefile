# The project's verbs. Everything lives in .venv; a verb installs again only when the dependencies change.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin

# A verb installs no more than it needs.
EXTRAS_train := envpool,plot,mujoco,video
EXTRAS_bench := all
EXTRAS_docs := docs
EXTRAS_dev := dev,docs,all

.PHONY: help venv train test lint bench docs clean
.NOTPARALLEL:

help:
	@echo "make train   train a two-tower policy on swimmer"
	@echo "make test    run the tests"
	@echo "make lint    check style, types and the direction of imports"
	@echo "make bench   measure training throughput against the physics"
	@echo "make docs    build the documentation into site/"
	@echo "make venv    make .venv with everything a developer needs"
	@echo "make clean   remove what the verbs made, but not runs/"

venv: $(VENV)/.installed-dev

train: $(VENV)/.installed-train
	$(BIN)/twotower train swimmer --iterations 100

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache
	$(BIN)/pyright

bench: $(VENV)/.installed-bench
	$(BIN)/twotower bench throughput halfcheetah

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) site dist .pytest_cache .ruff_cache .hypothesis
	find twotower tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed-%: pyproject.toml constraints.txt | $(VENV)/.created
	@echo "Installing twotower[$(EXTRAS_$*)] into $(VENV); the first time this takes a few minutes."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$(EXTRAS_$*)]'
	@touch $@

$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "No python3 found: install Python 3.11 or later, or say where it is with PYTHON=…" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) does not run or is older than Python 3.11: name another with PYTHON=…" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian: apt-get install python3.11-venv)." >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV)
	@touch $@

# `make train` and `make test` set everything up the first time and only run afterwards.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell command -v python3.11 || command -v python3)
# Errors alone are shown. Python compiles what it imports: pip would compile all of it first. Where
# it may not keep that, as containers often have it, every start would take twice as long.
unexport PYTHONDONTWRITEBYTECODE
QUIETLY := --disable-pip-version-check install -qq --no-compile
PIP := $(BIN)/python -m pip $(QUIETLY)
# torch by its exact version: a range may bring several GB of CUDA packages along.
TORCH := $(shell sed -n '/^torch==/p' constraints.txt)
SCATTER := $(shell sed -n '/^torch_scatter==/p' constraints.txt)
ARGS ?=

# Idle threads sleep instead of spinning: many times faster for tiny graphs on a busy machine.
test test-slow test-ci fuzz soak: export OMP_WAIT_POLICY ?= passive

# Tests and benchmarks on whole datasets read them from here, and are skipped without it.
ifneq ($(wildcard ../shared/data/tu),)
test bench: export LPGNN_DATA ?= $(abspath ../shared/data/tu)
endif

.PHONY: help train test test-slow test-ci fuzz soak test-ui test-slurm test-ray lint format ui bench paper golden wheel-check setup clean
.DELETE_ON_ERROR:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  make %-13s %s\n", $$1, $$2}'
	@echo '  ARGS="..." is passed on: make train ARGS="dataset=mutag g=squared"'

# Nothing on a CPU needs torch-scatter, so the first run does not wait for it.
train: $(VENV)/.package ## train on the embedded default; ARGS are settings
	@$(BIN)/lpgnn train $(ARGS)
	@test -e $(VENV)/.scatter || $(MAKE) --no-print-directory $(VENV)/.scatter

test: $(VENV)/.dev ## run all tests; ARGS go to pytest
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

test-slow: $(VENV)/.dev ## run the tests that take minutes
	$(BIN)/python -m pytest -m slow $(ARGS)

test-ci: $(VENV)/.dev ## run those of them that must hold before every merge
	$(BIN)/python -m pytest -m "slow and ci" $(ARGS)

fuzz: $(VENV)/.dev ## read 5,000 damaged and absurd inputs; ARGS="--cases 20000 --seed 7"
	$(BIN)/python tests/safety/fuzz.py $(ARGS)

soak: $(VENV)/.dev ## an hour of kills, full disks, crashes and lost servers; ARGS="--minutes 10"
	$(BIN)/python tests/safety/soak.py $(ARGS)

test-ui: $(VENV)/.dev ## drive the dashboard in a real browser; installs Chromium if need be
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  { apt-get update -q && apt-get install -qy chromium chromium-driver; } || \
	  { echo "Install Debian's chromium and chromium-driver as root, then try again."; exit 1; }
	@$(PIP) -c constraints.txt -e '.[ui]'
	$(BIN)/python -m pytest -m ui $(ARGS)

test-slurm: $(VENV)/.dev ## run sweeps on a real one-node Slurm; installs it if need be, as root
	.ci/with-slurm $(BIN)/python -m pytest -m slurm tests/sweep $(ARGS)

test-ray: .venv-ray/.ready ## run sweeps on a local Ray, in a venv of its own
	.venv-ray/bin/python -m pytest -m ray tests/sweep $(ARGS)

lint: $(VENV)/.dev ## ruff, mypy --strict, and imports that go one way
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

format: $(VENV)/.dev ## let ruff format the code and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

ui: $(VENV)/.package ## open the MLflow dashboard on this project's runs
	@$(BIN)/lpgnn ui $(ARGS)

# Each part stores what it measured as it goes: BENCH="growth sweep" runs some of them, or the rest.
BENCH ?= $(patsubst benchmarks/bench_%.py,%,$(wildcard benchmarks/bench_*.py))

bench: $(VENV)/.scatter ## run the measured comparisons; makes docs/performance.md; BENCH="growth sweep": some
	@for part in $(BENCH); do echo "== $$part"; $(BIN)/python benchmarks/bench_$$part.py $(ARGS) || exit 1; done

# What results/ lacks; ALL=1: everything that runs/ lacks, so that the first call repeats all of it.
PLAN = $(if $(ALL),--runs)

paper: $(VENV)/.package ## run what the paper's tables lack, or ALL=1; resumable; says first how long it may take
	@$(BIN)/lpgnn report plan $(PLAN)
	@$(BIN)/lpgnn report plan $(PLAN) --format commands >runs/paper.sh
	@status=0; PATH="$(abspath $(BIN)):$$PATH"; \
	  while IFS= read -r command <&3; do echo "+ $$command"; sh -c "$$command" || status=1; done 3<runs/paper.sh; \
	  lpgnn report collect && exit $$status

golden: $(VENV)/.dev ## compare metrics with the recorded ones to the last bit; ARGS=--record makes a record
	@$(BIN)/python tests/golden/golden.py $(ARGS)

wheel-check: $(VENV)/.dev ## install a built wheel in a clean venv elsewhere and train with it
	@PYTHON=$(abspath $(BIN))/python .ci/wheel-check

setup: $(VENV)/.dev ## only set up, with what tests and linters need

clean: ## remove caches and build products; runs/ and .venv stay
	rm -rf build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up: one chain, so that `make -j` never runs pip twice at the same time in one venv.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "lpgnn needs Python 3.11: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Setting up, once: [1/3] a Python environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.torch: constraints.txt | $(BIN)/python
	@echo "[2/3] $(TORCH), about 200 MB"
	@$(PIP) -c constraints.txt $(TORCH) numpy
	@touch $@

$(VENV)/.package: pyproject.toml $(VENV)/.torch
	@echo "[3/3] lpgnn and the packages it needs"
	@$(PIP) -c constraints.txt -e '.[kernel]'
	@touch $@

$(VENV)/.scatter: $(VENV)/.package
	@PIP="$(PIP)" PYTHON=$(BIN)/python .ci/build-torch-scatter $(SCATTER)
	@touch $@

$(VENV)/.dev: $(VENV)/.scatter
	@echo "Packages for tests and linters"
	@$(PIP) -c constraints.txt -e '.[dev]'
	@touch $@

# Ray holds other packages back, so it has a venv of its own.
.venv-ray/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -m venv .venv-ray
	@.venv-ray/bin/python -m pip $(QUIETLY) $(TORCH)
	@grep -viE '^(joblib|cloudpickle|sqlalchemy|protobuf|torch_scatter)==' constraints.txt >.venv-ray/constraints.txt
	@.venv-ray/bin/python -m pip $(QUIETLY) \
	  -c .venv-ray/constraints.txt -e '.[ray,test]'
	@touch $@

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ALLENNLP := allennlp==2.10.1 allennlp-models==2.10.1
# pip compiles every file of every package; what is ever imported, the last step of setup compiles. Each optimizer
# imports torch._dynamo.
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install --no-compile

COMPILED := $(sort $(wildcard $(addprefix elmo_scratch/kernels/native/,*.cpp *.h amx/*.cpp amx/*.h)))
CPP := $(COMPILED) tests/emulated_tiles.h tests/faults/shim.c

# Setup is done when a stamp with the fingerprint of what it installs exists.
STAMP := $(VENV)/installed-$(shell cat Makefile requirements-dev.txt requirements.txt setup.py $(COMPILED) | cksum | cut -d' ' -f1)

.PHONY: help setup demo test test-exhaustive test-levels test-triton test-all coverage test-install test-large fuzz check lint format docs docs-serve requirements dist clean
.DEFAULT_GOAL := help

help:  ## list what there is to make
	@awk -F ':.*##' '/^[a-z-]+:.*##/ { printf "%-17s%s\n", $$1, $$2 }' Makefile

setup: $(STAMP)  ## create .venv with all that is needed (PYTHON=python3.12 to choose the Python)

# Always from an empty environment: what an interrupted setup left behind is not to be trusted.
$(STAMP):
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; (3, 10) <= v <= (3, 13) or sys.exit("Python 3.10 to 3.13 is needed, but $(PYTHON) is Python %d.%d. Try: make $(MAKECMDGOALS) PYTHON=python3.11" % v)'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) can't make environments: install its venv (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "[1/4] Creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV)
	@echo "[2/4] Installing PyTorch and the other requirements (a minute or two)"
	@$(PIP) -r requirements-dev.txt
	@echo "[3/4] Installing AllenNLP 2.10.1 and this package"
	@$(PIP) --no-deps --no-build-isolation $(ALLENNLP) --editable .
	@echo "[4/4] Starting AllenNLP once"
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -c "from allennlp.common import plugins; plugins.DEFAULT_PLUGINS = ('allennlp_models',); plugins.import_plugins(); import torch._dynamo"
	@touch $@

demo: setup  ## pre-train, classify, evaluate and export on the fixtures
	@$(BIN)/python examples/demo.py

# Files begin in the order of tests/conftest.py, not by how many tests they have. Compiled code is kept: otherwise each
# process that a test starts would compile the package again.
TESTING := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python
PYTEST := $(TESTING) -m pytest -n auto --dist loadfile --no-loadscope-reorder

# Where trainings run side by side, a thread that waits for another one would keep a processor from the rest.
test test-exhaustive test-levels coverage: export GOMP_SPINCOUNT ?= 1000

test: setup  ## the tests of a few minutes, on all cores
	@$(PYTEST) -m "not install and not large and not exhaustive"

test-exhaustive: setup  ## the tests that `test` leaves out: large grids, kills, several processes
	@$(PYTEST) -m "exhaustive and not install and not large"

test-levels: setup  ## the numeric tests without compiled code, at AVX2, at AVX-512, as far as the processor has more
	@$(TESTING) -m tests.instruction_levels

# Triton is in no requirements: with PyTorch for a CPU only these tests need it.
TRITON := build/triton
$(TRITON)/installed: tests/kernels/triton_kernels/requirements.txt | setup
	@$(PIP) --no-deps --upgrade --target $(TRITON) -r $<
	@touch $@

test-triton: setup $(TRITON)/installed  ## the kernels of a GPU, in Triton's interpreter and through its compiler, without a GPU
	@TRITON_INTERPRET=1 PYTHONPATH=$(TRITON) $(TESTING) -m pytest -q tests/kernels/triton_kernels
	@PYTHONPATH=$(TRITON) $(TESTING) -m pytest -q tests/kernels/triton_kernels/compile_test.py

test-all: test test-exhaustive test-levels test-triton  ## all four

coverage: setup  ## the lines and branches of the package that `test` reaches
	@rm -f .coverage .coverage.*
	@$(BIN)/coverage run -m pytest -q -n auto --dist loadfile -m "not install and not large and not exhaustive"
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --skip-covered

test-install: setup  ## build a release and install it in an empty environment by the lines of docs/install.md; an older HDF5 reads what it writes
	@$(BIN)/python -m pytest -m install

test-large: setup  ## the tests that need 16 GiB of memory
	@$(BIN)/python -m pytest -m large

# A fuzzer of its own, which has wheels for Linux alone: not among the requirements of the tests.
SECONDS ?= 3600
fuzz: setup  ## read files of random bytes by every reader, for an hour (SECONDS=60, or RUNS=200 files each)
	@$(BIN)/python -c "import atheris" 2>/dev/null || $(PIP) -r tests/fuzz/requirements.txt
	@$(BIN)/python -m tests.fuzz $(if $(RUNS),--runs $(RUNS),--seconds $(SECONDS))

lint: setup  ## format check, ruff and mypy
	@$(BIN)/ruff format --check .
	@$(BIN)/clang-format --dry-run --Werror $(CPP)
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/mypy examples/probe_layers/__main__.py
	@$(BIN)/mypy examples/task_gains/__main__.py

check: lint test  ## lint, then the tests

format: setup  ## format the code and sort the imports
	@$(BIN)/ruff check --fix --select I .
	@$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(CPP)

# The variable silences what Material for MkDocs says of the next MkDocs.
docs docs-serve: export NO_MKDOCS_2_WARNING := 1

docs: setup  ## build the docs as a site of plain files: site/index.html
	@$(BIN)/mkdocs build --quiet

docs-serve: setup  ## show the docs on http://127.0.0.1:8000 while they are edited
	@$(BIN)/mkdocs serve --no-strict

# PyTorch's own metadata names the CUDA packages that belong to the build for each platform, so they are not pinned here.
requirements:  ## pin requirements.in again as requirements.txt (needs uv)
	@uv pip compile --quiet --universal --python-version 3.10 --annotation-style line \
		--custom-compile-command "make requirements" requirements.in --output-file requirements.txt
	@grep -Ev '^(cuda|nvidia|triton)[-=]' requirements.txt > requirements.tmp
	@mv requirements.tmp requirements.txt

# The wheel is built from the sdist, so that nothing else of this folder gets into it. auditwheel finds the oldest
# Linux that it runs on, and fails where nothing was compiled. PyTorch brings the one library that it would add.
dist: setup  ## build a release into dist/: the sdist and the wheel with compiled code (on Linux, with g++)
	@rm -rf dist build *.egg-info && mkdir build
	@{ $(BIN)/python -m build --no-isolation --outdir build . && \
		PATH="$(abspath $(BIN)):$$PATH" auditwheel repair --exclude libgomp.so.1 --wheel-dir dist build/*.whl && \
		mv build/*.tar.gz dist; } > build/log 2>&1 || { cat build/log; exit 1; }
	@rm -rf build *.egg-info
	@ls dist

clean:  ## remove the environment, the caches, the site and the demo's output
	@rm -rf $(VENV) build dist site *.egg-info runs/demo elmo_scratch/kernels/native/*.so .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

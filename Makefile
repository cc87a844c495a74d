# `make demo` and `make test` are all that a newcomer needs. Both build .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.built

.PHONY: demo test check bench chaos venv clean

venv: $(STAMP)

# A build that was interrupted leaves no stamp, so the next one starts over.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Horarium needs Python 3.11 or newer, and " + sys.executable + " is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.13 " + "$(MAKECMDGOALS)")'
	@echo "Building $(VENV) with everything that is needed; this takes one or two minutes, once …"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[app,dev-server,test,check]'
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/horarium demo $(if $(filter 1 y yes true,$(KEEP)),--keep)

# Most tests wait for something, so two files at a time take about half as long. `make test WORKERS=0` is one after the other.
WORKERS ?= 2
test: $(STAMP)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(ARGS)

# Everything as real processes that are killed at random for a while, and then the proof: `make chaos MINUTES=5 SEED=7`.
chaos: $(STAMP)
	$(BIN)/python -m tests.chaos --minutes $(or $(MINUTES),5) --seed $(or $(SEED),1) --catalog $(or $(CATALOG),sqlite) $(ARGS)

clean:
	rm -rf $(VENV)

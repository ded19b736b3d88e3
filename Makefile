# `make demo` runs the program on the sample; `make help` lists the targets.

# Choose another Python, 3.11 to 3.13, with `make demo PYTHON=python3.12`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)

# Stamp files of .venv; each is rebuilt when one of its dependencies is newer.
MADE := $(VENV)/.made-with-python-$(VERSION)
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_DOCS := $(VENV)/.installed-docs

.DEFAULT_GOAL := help
.PHONY: help demo test slow-tests tutorials docs gallery bench wheel clean python
# A failed recipe must not leave its stamp file.
.DELETE_ON_ERROR:

help:
	@echo 'make demo        install into .venv, index the sample in input/, ask it two questions'
	@echo 'make test        check format, lint and types, and run the tests'
	@echo 'make slow-tests  run the long proofs, such as the wheel in a fresh environment'
	@echo 'make tutorials   run the notebooks in docs/tutorials'
	@echo 'make docs        build the site of the documentation into site/, and check its links'
	@echo 'make gallery     make the pictures of docs/gallery again (needs chromium)'
	@echo 'make bench       measure indexing and the start of the commands (minutes)'
	@echo 'make wheel       build the wheel into dist/'
	@echo 'make clean       remove .venv, caches, dist/ and the index of the sample'
	@echo 'Add PYTHON=python3.12 to any of them to choose another Python.'

demo: $(INSTALLED)
	$(BIN)/graphrag-index run
	@echo
	$(BIN)/graphrag-query global "What are the main themes?"
	@echo
	$(BIN)/graphrag-query local "Who was Tom Crean?"
	@echo
	@echo 'The tables are output/*.parquet, the vectors are in output/lancedb; output/README.md describes them.'
	@echo 'Ask your own question: $(BIN)/graphrag-query local "Who was Frank Wild?"'

test: $(INSTALLED_DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

slow-tests: $(INSTALLED_DEV)
	$(BIN)/python -m pytest -m slow

tutorials: $(INSTALLED_DOCS)
	$(BIN)/python docs/run_tutorials.py

# A notebook whose outputs are older than itself is run again.
build/tutorials/%.ipynb: docs/tutorials/%.ipynb | $(INSTALLED_DOCS)
	$(BIN)/python docs/run_tutorials.py $*

docs: $(INSTALLED_DOCS) $(patsubst docs/%,build/%,$(wildcard docs/tutorials/*.ipynb))
	$(BIN)/python docs/stage_site.py
	$(BIN)/zensical build --clean --strict
	@echo 'Open site/index.html.'

gallery: $(INSTALLED_DEV)
	$(BIN)/python docs/make_gallery.py

bench: $(INSTALLED)
	$(BIN)/graphrag-index run --quiet
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/index.py

wheel: $(INSTALLED)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) dist build site .cache docs/tutorials/*/ .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find output -mindepth 1 ! -name README.md -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@case '$(VERSION)' in 3.11|3.12|3.13) ;; *) \
		echo 'Python 3.11, 3.12 or 3.13 is needed, and $(PYTHON) is not one of them: choose one with `make demo PYTHON=python3.12`.' >&2; \
		exit 1;; esac

# An environment of another Python is replaced.
$(MADE): | python
	@echo 'Creating $(VENV) with Python $(VERSION).'
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(INSTALLED): $(MADE) pyproject.toml
	@echo 'Installing the program and its dependencies, about 0.9 GB; the first time takes a minute or more.'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(INSTALLED_DEV): $(INSTALLED)
	@echo 'Installing the development tools.'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(INSTALLED_DOCS): $(INSTALLED) pyproject.toml
	@echo 'Installing the tools of the documentation.'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

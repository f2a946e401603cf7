# Two commands do everything: `make demo` and `make test`. Both set up what they need and can be repeated or interrupted.
SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export PATH := $(CURDIR)/.venv/bin:$(PATH)
VENV_PYTHON = .venv/bin/python
WORKERS = 3

.PHONY: help setup test soak lint demo lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' Makefile

setup:  ## make .venv with the locked packages; does nothing when it is up to date
	@bash tools/bootstrap.sh setup

test:  ## set up everything and pass all tests (pytest's options: make test ARGS="-k drain tests/store"; one at a time: WORKERS=0)
	@bash tools/bootstrap.sh test
	@$(VENV_PYTHON) -m tools.prepare $(ARGS)
	@$(VENV_PYTHON) -m pytest --numprocesses=$(WORKERS) --durations=25 $(ARGS)

soak:  ## pass the whole matrices of which `make test` runs a sample; takes hours (make soak ARGS=tests/ledger)
	@bash tools/bootstrap.sh test
	@$(VENV_PYTHON) -m tools.prepare -m soak $(ARGS)
	@$(VENV_PYTHON) -m pytest --numprocesses=$(WORKERS) --durations=25 -m soak $(ARGS)

lint:  ## style, types, layers, YAML, Dockerfiles, workflows, chart (one check only: make lint ONLY=mypy)
	@bash tools/bootstrap.sh lint
	@$(VENV_PYTHON) -m tools.lint $(ONLY)

demo:  ## drain a real job on a real cluster with real input (KILL=1: kill -9 of the driver mid-drain; STORE=s3: checkpoint in S3)
	@bash tools/bootstrap.sh demo
	@$(VENV_PYTHON) -m demo $(if $(KILL),--kill) $(if $(STORE),--store='$(STORE)') $(ARGS)

lock: setup  ## write requirements.lock anew from pyproject.toml
	@$(VENV_PYTHON) -m tools.lock

clean:  ## remove .venv and what tools left in this folder (the user's cache stays: see docs/architecture.md)
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist

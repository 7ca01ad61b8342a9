# Thin on purpose: everything happens in run.py, which also works where there is no make (Windows: py run.py lab).
# Settings: PORT=8890, ARGS="...", TORCH_INDEX=URL and PYTHON=python3.12; make hands them to run.py as environment.
PYTHON ?= python3

.PHONY: help setup lab edit test notebooks bench clean clean-all
help setup lab edit test notebooks bench clean clean-all:
	@$(PYTHON) run.py $@

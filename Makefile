# Thin on purpose: everything happens in run.py, which also works where there is no make (Windows: py run.py lab).
# Settings: PORT=8890, ARGS="...", TORCH_INDEX=URL and PYTHON=python3.12; make hands them to run.py as environment.
PYTHON ?= python3
COMMANDS := $(or $(MAKECMDGOALS),help)

.PHONY: $(COMMANDS)
$(COMMANDS):
	@$(PYTHON) run.py $@

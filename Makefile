# make setup | test | demo | bench | soak. PYTHON chooses the interpreter, VENV where it lives.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Discovery stays on this machine, and runs of the tests do not hear each other.
export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
export ROS_DOMAIN_ID ?= $(shell $(PYTHON) -c 'import random; print(random.randint(1, 101))')

# Nodes start in half the time from compiled files.
export PYTHONDONTWRITEBYTECODE :=

# What a sourced ROS 2 installation already has does not come from PyPI.
missing = $(shell $(PYTHON) -c 'import $(1)' 2>/dev/null || echo ,$(2))
ROS ?= ros
EXTRAS := test,simulation,derivation,bags,viewer$(call missing,rclpy,$(ROS))$(call missing,pinocchio,pinocchio)

.PHONY: setup test lint demo bench soak test-pinocchio-3 test-kilted clean

setup: $(VENV)/.installed

$(VENV)/.installed: setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and \
	    "krang_dynamics needs Python 3.10 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS)]' $(PINS)
	@touch $@

# Where a machine stalls, so do promises about tenths of a second: what starts processes runs alone, may fail
# once, which is said at the end, and not twice.
test: setup lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not processes'
	$(BIN)/python -m pytest -m processes --reruns 1

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

demo: setup
	$(BIN)/krang demo krang --force

bench: setup
	$(BIN)/krang bench model
	$(BIN)/krang bench tick
	$(BIN)/krang bench node
	$(BIN)/krang bench derivation

# The other major of Pinocchio; its wheels need these older libraries but do not say so.
test-pinocchio-3:
	$(MAKE) setup VENV=.venv-pinocchio-3 PINS="'pin<4' 'cmeel-urdfdom<5' 'cmeel-tinyxml2<11'"
	.venv-pinocchio-3/bin/python -m pytest -n 2 --dist loadfile -m 'not processes'

# The second ROS distribution.
test-kilted:
	$(MAKE) setup VENV=.venv-kilted ROS=ros-kilted
	.venv-kilted/bin/python -m pytest test/nodes test/launch

# Ten minutes at 1 kHz: a node's memory must be what it was after one. Then every story, ten times with each engine.
soak: setup
	$(BIN)/krang bench soak
	set -e; for engine in mujoco pinocchio; do for robot in krang otbot pendubot planar_2r anthropomorphic; do \
	    for turn in 1 2 3 4 5 6 7 8 9 10; do $(BIN)/krang demo $$robot --engine $$engine --force; done; done; done

clean:
	rm -rf .venv .venv-* build install log *.egg-info .pytest_cache .mypy_cache .ruff_cache

# make demo | setup | check | test | test-long | docs | pictures | bench | soak | fuzz | faults
# PYTHON is the interpreter, VENV the folder of the virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# ROS 2 discovery stays on this machine, and two runs of the tests do not share a domain.
export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
export ROS_DOMAIN_ID ?= $(shell $(PYTHON) -c 'import random; print(random.randint(1, 101))')

# Nodes start twice as fast from compiled files.
export PYTHONDONTWRITEBYTECODE :=

# A sourced ROS 2 installation provides rclpy and Pinocchio, whose own dependencies are system packages.
missing = $(shell $(PYTHON) -c 'import $(1)' 2>/dev/null || echo ,$(2))
ROS ?= ros
NODES := simulation,viewer$(call missing,rclpy,$(ROS))$(call missing,pinocchio,pinocchio)
EXTRAS := test,docs,derivation,bags,campaign,page,$(NODES)
SITE := $(if $(ROS_DISTRO),--system-site-packages)

# The pytest plugins of a ROS 2 installation need an older pytest; only those of this list are loaded.
export PYTEST_DISABLE_PLUGIN_AUTOLOAD := 1
PLUGINS := -p xdist.plugin -p pytest_cov.plugin -p pytest_rerunfailures -p _hypothesis_pytestplugin
PYTEST = $(BIN)/python -m pytest $(PLUGINS)
IN_PARALLEL := -n 2 --dist loadfile

# Coverage costs 8 % of the time from Python 3.12 on, with sys.monitoring, and 80 % before.
# `make test COVERAGE=` leaves it out.
COVERAGE ?= --cov=krang_dynamics --cov-report=term:skip-covered
export COVERAGE_CORE := $(shell $(PYTHON) -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")')

.PHONY: setup check test test-long lint docs demo pictures bench soak fuzz faults test-pinocchio-3 test-kilted clean

define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and \
	    "krang_dynamics needs Python 3.10 or newer: make PYTHON=python3.12 ...")'
	@$(PYTHON) -c 'import os, shutil, sys, sysconfig; \
	    sys.exit(None if shutil.which(os.environ.get("CC", "cc")) and \
	    os.path.exists(sysconfig.get_path("include") + "/Python.h") else \
	    "krang_dynamics needs a C compiler and the headers of Python: apt install build-essential python3-dev")'
	$(PYTHON) -m venv $(SITE) $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[$(1)]' $(PINS)
	@touch $(VENV)/.demo
endef

setup: $(VENV)/.installed

$(VENV)/.installed: setup.py $(wildcard krang_dynamics/kernels/*)
	$(call install,$(EXTRAS))
	@command -v chromedriver >/dev/null || \
	    echo 'the tests and pictures of the page need Chromium: apt-get install chromium chromium-driver'
	@touch $@

# Only what the demonstration needs.
$(VENV)/.demo: setup.py $(wildcard krang_dynamics/kernels/*)
	$(call install,$(NODES))

# The fast tests: run them before every commit.
check: lint
	$(PYTEST) $(IN_PARALLEL) -m 'not slow and not processes and not long'

# Tests with processes measure tenths of a second. They run alone, and one that fails on a stalled machine
# is run again, at last with new processes. Coverage is that of the fast tests.
test: lint
	$(PYTEST) $(IN_PARALLEL) -m 'not slow and not processes and not long' $(COVERAGE)
	$(PYTEST) $(IN_PARALLEL) -m 'slow and not processes and not long'
	$(PYTEST) -m 'processes and not long' --reruns 2 || $(PYTEST) -m 'processes and not long' --last-failed

test-long: setup
	$(PYTEST) -m long

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo 'docs/_build/html/index.html'

demo: $(VENV)/.demo
	$(BIN)/krang demo krang --force

pictures: setup
	PYTHONPATH=test $(BIN)/python docs/make_pictures.py

# Ratios that are worse than the recorded ones are an error.
bench: setup
	$(BIN)/krang bench model tick --compare bench/recorded.json
	$(BIN)/krang bench peers startup node derivation

# Pinocchio 3. Its wheels need these older libraries without declaring it.
test-pinocchio-3:
	$(MAKE) setup VENV=.venv-pinocchio-3 PINS="'pin<4' 'cmeel-urdfdom<5' 'cmeel-tinyxml2<11'"
	.venv-pinocchio-3/bin/python -m pytest $(PLUGINS) $(IN_PARALLEL) -m 'not processes and not long'

# The second ROS 2 distribution.
test-kilted:
	$(MAKE) setup VENV=.venv-kilted ROS=ros-kilted
	.venv-kilted/bin/python -m pytest $(PLUGINS) test/nodes test/launch -m 'not long'

# A million invalid messages, and a thousand faults, on the real topics of running nodes.
fuzz: setup
	PYTHONPATH=test $(BIN)/python test/endurance/fuzz.py
faults: setup
	PYTHONPATH=test $(BIN)/python test/endurance/faults.py

# A node for an hour at 1 kHz with requests, whose memory must not grow; then every demonstration ten times
# per engine.
soak: setup
	$(BIN)/krang bench soak
	set -e; for engine in mujoco pinocchio; do for robot in krang otbot pendubot planar_2r anthropomorphic; do \
	    for turn in 1 2 3 4 5 6 7 8 9 10; do $(BIN)/krang demo $$robot --engine $$engine --force; done; done; done

clean:
	rm -rf .venv .venv-* build install log *.egg-info .pytest_cache .mypy_cache .ruff_cache .coverage* \
	    docs/_build docs/generated

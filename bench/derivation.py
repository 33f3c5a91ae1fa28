"""A, C, Q and inverse dynamics of Krang: generated C, generated numpy and Pinocchio, in one run.

python bench/derivation.py      (needs a C compiler, cc)
"""

import ctypes
import importlib.util
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pinocchio as pin
from timing import median_costs

import krang_dynamics as kd
from krang_dynamics.cli import robot_equations
from krang_dynamics.derivation.code_generation import c_source, python_module
from krang_dynamics.derivation.engine import CasadiEngine
from krang_dynamics.derivation.equations import derive as derive_equations
from krang_dynamics.derivation.numeric import evaluate
from krang_dynamics.robot.compiled import drive_of

DOUBLES = ctypes.POINTER(ctypes.c_double)


def run():
    robot = kd.load_robot('krang')
    numeric = evaluate(
        derive_equations(robot_equations.frames_of(robot, CasadiEngine(), True)),
        drive_of(robot),
    )
    with tempfile.TemporaryDirectory() as folder:
        module = python_code(python_module(numeric, robot.name), Path(folder))
        library = c_code(c_source(numeric, robot.name), Path(folder))
    model, data = robot.model, robot.model.createData()
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, robot.nv))
    bare = {
        'mass_matrix': ((q,), lambda: pin.crba(model, data, q)),
        'coriolis_matrix': ((q, v), lambda: pin.computeCoriolisMatrix(model, data, q, v)),
        'gravity': ((q,), lambda: pin.computeGeneralizedGravity(model, data, q)),
        'inverse_dynamics': ((q, v, a), lambda: pin.rnea(model, data, q, v, a)),
    }
    for name, (inputs, pinocchio) in bare.items():
        result = np.zeros(numeric(name, *inputs).shape)
        pointers = [x.ctypes.data_as(DOUBLES) for x in (*inputs, result)]
        compiled, written = getattr(library, name), getattr(module, name)
        costs = median_costs(lambda: compiled(*pointers), lambda: written(*inputs), pinocchio, rounds=300)  # noqa: B023
        np.testing.assert_allclose(result, numeric(name, *inputs), rtol=1e-9, atol=1e-9)
        yield {
            'function': name,
            'operations': numeric.operations(name),
            'C us': costs[0],
            'numpy us': costs[1],
            'Pinocchio us': costs[2],
        }


def python_code(source, folder):
    path = folder / 'generated.py'
    path.write_text(source)
    spec = importlib.util.spec_from_file_location('generated', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def c_code(source, folder):
    path, library = folder / 'generated.c', folder / 'generated.so'
    path.write_text(source)
    subprocess.run(
        ['cc', '-std=c99', '-O1', '-shared', '-fPIC', str(path), '-o', str(library), '-lm'], check=True
    )
    return ctypes.CDLL(str(library))

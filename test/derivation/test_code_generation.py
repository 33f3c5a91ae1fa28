"""Generated Python and C give the numbers of the derivation."""

import ctypes
import importlib.util
import shutil
import subprocess

import numpy as np
import pytest
from derivation.derived import TREE, numeric_of, shipped_numeric

import krang_dynamics as kd
from krang_dynamics.derivation.code_generation import c_source, python_module

ROBOTS = {
    'otbot': lambda: shipped_numeric('otbot'),
    'tree': lambda: numeric_of(kd.load_robot(TREE), shipped=False),
    'krang': lambda: shipped_numeric('krang'),
}


def arguments(numeric, name):
    random = np.random.default_rng(0)
    function = numeric.functions[name]
    return [random.uniform(-1, 1, function.size1_in(i)) for i in range(function.n_in())]


@pytest.mark.slow
@pytest.mark.parametrize('robot', ROBOTS)
def test_the_generated_module_gives_the_same_numbers_with_numpy_only(robot, tmp_path):
    numeric = ROBOTS[robot]()
    path = tmp_path / 'generated.py'
    source = python_module(numeric, robot)
    assert {line for line in source.splitlines() if 'import' in line} == {
        'from math import cos, sin, sqrt, tanh',
        'import numpy as np',
    }
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in numeric.functions:
        inputs = arguments(numeric, name)
        result = getattr(module, name)(*inputs)
        np.testing.assert_allclose(result, numeric(name, *inputs), rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(shutil.which('cc') is None, reason='no C compiler (cc) on this machine')
@pytest.mark.parametrize('robot', ['otbot', 'tree', pytest.param('krang', marks=pytest.mark.long)])
def test_the_generated_c_gives_the_same_numbers(robot, tmp_path):
    numeric = ROBOTS[robot]()
    source, library = tmp_path / 'generated.c', tmp_path / 'generated.so'
    source.write_text(c_source(numeric, robot))
    flags = ['-std=c99', '-O0', '-Wall', '-Werror', '-shared', '-fPIC']
    subprocess.run(['cc', *flags, str(source), '-o', str(library), '-lm'], check=True, timeout=120)
    loaded = ctypes.CDLL(str(library))
    for name in numeric.functions:
        inputs = arguments(numeric, name)
        expected = numeric(name, *inputs)
        result = np.zeros(expected.shape)
        pointers = [x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for x in (*inputs, result)]
        getattr(loaded, name)(*pointers)
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)

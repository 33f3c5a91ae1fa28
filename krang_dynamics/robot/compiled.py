"""The derived equations of one robot as machine code: C by `derivation`, built by the system's compiler."""

import ctypes
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..derivation.code_generation import c_source
from ..derivation.engine import CasadiEngine, Engine
from ..derivation.equations import derive
from ..derivation.frames import FrameTree, Wheel
from ..derivation.from_urdf import read_urdf
from ..derivation.numeric import Drive, Numeric, evaluate
from ..errors import KrangError
from ..kernels import evaluated
from .payload import Payload

if TYPE_CHECKING:
    from .model import Robot

# For kernels.evaluated(), which checks the inputs in less time than ctypes needs for a call.
ENTRY = 'void entry_{name}(const double *const *x, double *torque) {{ {name}({inputs}, torque); }}'


class CompiledDynamics:
    """Inverse dynamics and gravity torque of a robot, the same as Robot's to rounding.

    It has internal buffers, so it must not be shared between threads.
    """

    def __init__(self, robot: 'Robot') -> None:
        self._robot = robot
        tree = numeric_frames(robot, CasadiEngine())
        functions = evaluate(derive(tree), drive_of(robot)).functions
        chosen = {name: functions[name] for name in ('inverse_dynamics', 'gravity')}
        self._library = _compile(_source(Numeric(robot.joint_names, chosen), robot.name))
        self._inverse_dynamics = _address(self._library.entry_inverse_dynamics)
        self._gravity = _address(self._library.entry_gravity)

    def inverse_dynamics(self, q: Array, v: Array, a: Array) -> Array:
        """A a + C v + Q [N m], as Robot.inverse_dynamics()."""
        torque = evaluated(self._inverse_dynamics, self._robot.nv, q, v, a)
        # Robot converts lists, and names what is wrong.
        return self._robot.inverse_dynamics(q, v, a) if torque is None else torque

    def gravity_torque(self, q: Array) -> Array:
        """Q [N m], as Robot.gravity_torque()."""
        torque = evaluated(self._gravity, self._robot.nv, q)
        return self._robot.gravity_torque(q) if torque is None else torque


def numeric_frames(robot: 'Robot', engine: Engine) -> FrameTree:
    """The frames of the robot's URDF with the numbers of URDF, robot file and payloads."""
    config = robot.config
    tree = read_urdf(robot.urdf.text, engine, robot.joint_names, config.gravity, config.end_effectors)
    axles = [(np.array(wheel.axle) / np.linalg.norm(wheel.axle)).tolist() for wheel in config.rolling]
    tree.wheels = [Wheel(w.link, w.radius, axle) for w, axle in zip(config.rolling, axles, strict=True)]
    for payload in robot.payloads:
        frame = tree.frames[payload.frame]
        both = zip(frame.parameters, _parameters(payload), strict=True)
        tree.frames[payload.frame] = replace(frame, parameters=[x + y for x, y in both])
    return tree


def drive_of(robot: 'Robot') -> Drive:
    """Rotor inertia, friction and driven joints."""
    friction = robot.friction
    return Drive(
        np.diag(robot.rotor_inertia()).tolist(),
        friction.viscous.tolist(),
        friction.coulomb.tolist(),
        friction.sign == 'smooth',
        robot.actuated_joint_names,
    )


def _parameters(payload: Payload) -> list[float]:
    """[m MX MY MZ XX XY XZ YY YZ ZZ] about the origin of its frame."""
    m, c = payload.mass, payload.com
    J = payload.inertia + m * (c @ c * np.eye(3) - np.outer(c, c))
    return [m, *(m * c).tolist(), *J[np.triu_indices(3)].tolist()]


def _source(numeric: Numeric, robot: str) -> str:
    parts = [c_source(numeric, robot)]
    for name, function in numeric.functions.items():
        inputs = ', '.join(f'x[{i}]' for i in range(function.n_in()))
        parts.append(ENTRY.format(name=name, inputs=inputs))
    return '\n'.join(parts) + '\n'


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _compile(source: str) -> ctypes.CDLL:
    if shutil.which('cc') is None:
        raise KrangError('compiled() needs a C compiler, cc; install one, for example build-essential')
    with tempfile.TemporaryDirectory() as folder:
        code, library = Path(folder) / 'equations.c', Path(folder) / 'equations.so'
        code.write_text(source)
        # GNU's dialect has fused multiply-adds, and sine and cosine in one call.
        options = ['-std=gnu99', '-O2', '-march=native', '-shared', '-fPIC', '-o', str(library)]
        result = subprocess.run(['cc', *options, str(code), '-lm'], capture_output=True, text=True)
        if result.returncode:
            raise KrangError(f'the C compiler failed: {result.stderr.strip()[:200]}')
        return ctypes.CDLL(str(library))

"""`krang identify`: link, rotor and friction parameters from recordings, validated on held-out data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import BagError
from ...robot.model import Robot
from ...text import number, table
from .. import parallel
from ..io.reader import Bag
from ..validation.filtering import Filtering
from ..validation.recording import Reading, Recording
from ..validation.validation import Validation, validate
from .consistent_fit import is_consistent
from .least_squares import BaseFit, BaseParameters, TriangularFactor, base_parameters, fit_base, stacked
from .model_files import with_friction_and_motors, with_inertias
from .parameter_fit import fit_parameters, motor_gain
from .regressor import Regressor, Unknowns, random_motion
from .window_equations import IdentificationJob

KNOWN = 0.1  # relative deviation up to which a base parameter counts as well determined


@dataclass
class Identification:
    """Identified theta over `names` with standard deviations, base parameters, and the resulting robot."""

    names: tuple[str, ...]
    prior: Array
    theta: Array
    deviation: Array
    base: BaseParameters
    base_fit: BaseFit
    noise: dict[str, float]  # by joint [N m]
    gains: dict[str, float]  # by joint, factors on the effort
    gain_deviations: dict[str, float]
    offsets: dict[str, float]  # by joint, then subtracted [N m]
    robot: Robot
    kinds: dict[str, dict[str, tuple[float, float, float]]]  # joint, kind: before, after, deviation
    bodies: int  # number; theta begins with ten entries for each
    before: list[Validation] = field(default_factory=list)  # of the held-out data
    after: list[Validation] = field(default_factory=list)
    used: str = ''
    held_out: str = ''

    def base_table(self) -> list[tuple[str, float, float]]:
        """Name, value and deviation of every base parameter."""
        rows = []
        for k, i in enumerate(self.base.independent):
            others = np.flatnonzero(self.base.combination[k])
            more = f' (+ {len(others)} others)' if len(others) else ''
            rows.append(
                (self.names[i] + more, float(self.base_fit.value[k]), float(self.base_fit.deviation[k]))
            )
        return rows

    def known(self) -> int:
        """Number of well-determined base parameters."""
        return int((self.base_fit.deviation <= KNOWN * np.abs(self.base_fit.value)).sum())

    def consistent(self) -> int:
        """Number of physically consistent bodies; all, apart from rounding errors."""
        bodies = range(0, 10 * self.bodies, 10)
        return sum(is_consistent(self.theta[i : i + 10]) for i in bodies)

    def rmse(self) -> dict[str, tuple[float, float]]:
        """By joint: RMSE on the held-out data, before and after [N m]."""
        result = {}
        for name in self.before[0].joints if self.before else ():
            pair = [
                float(np.sqrt(np.mean([v.joints[name]['friction'].rmse ** 2 for v in kind])))
                for kind in (self.before, self.after)
            ]
            result[name] = (pair[0], pair[1])
        return result

    def text(self) -> str:
        """The report for a terminal."""
        rows = []
        for joint, kinds in self.kinds.items():
            for kind, (before, after, deviation) in kinds.items():
                rows.append([joint, kind, number(before), number(after), number(deviation, 2)])
        lines = [
            f'Data used: {self.used}',
            f'{len(self.base.independent)} base parameters of {len(self.names)}, condition number '
            f'{self.base_fit.condition:.3g}; {self.known()} have a standard deviation below {KNOWN:.0%}',
            '',
            'Rotor inertia [kg m2], viscous and Coulomb friction [N m s/rad, N m], effort offsets [N m]',
            *(f'  {line}' for line in table(['joint', 'parameter', 'before', 'after', 'deviation'], rows)),
            '',
            f'Bodies, {self.consistent()} of {self.bodies} physically consistent',
            *(f'  {line}' for line in self._bodies()),
        ]
        if self.gain_deviations:
            gains = [[n, number(g), number(self.gain_deviations[n], 2)] for n, g in self.gains.items()]
            lines += ['', 'Motor gains: factors on the recorded effort']
            lines += [f'  {line}' for line in table(['joint', 'gain', 'deviation'], gains)]
        if self.before:
            compared = [
                [name, f'{a:.3f}', f'{b:.3f}', f'{self.noise.get(name, np.nan):.3f}']
                for name, (a, b) in self.rmse().items()
            ]
            lines += ['', f'RMSE on held-out data ({self.held_out}) [N m]']
            lines += [f'  {line}' for line in table(['joint', 'before', 'after', 'noise'], compared)]
        return '\n'.join(lines)

    def _bodies(self) -> list[str]:
        rows = []
        for i in range(0, 10 * self.bodies, 10):
            m0, m, dm = self.prior[i], self.theta[i], self.deviation[i]
            com = ' '.join(number(x, 3) for x in self.theta[i + 1 : i + 4] / m)
            rows.append([self.names[i][:-2], number(m0), number(m), number(dm, 2), com])
        return table(['moved by', 'mass before [kg]', 'after', 'deviation', 'center of mass [m]'], rows)

    def as_json(self) -> dict[str, Any]:
        """Parameters, base parameters, noise and errors."""
        return {
            'used': self.used,
            'held_out': self.held_out,
            'condition': self.base_fit.condition,
            'parameters': {
                name: {'before': float(a), 'after': float(b), 'deviation': float(d)}
                for name, a, b, d in zip(self.names, self.prior, self.theta, self.deviation, strict=True)
            },
            'base_parameters': {n: {'value': v, 'deviation': d} for n, v, d in self.base_table()},
            'offsets': self.offsets,
            'gains': self.gains,
            'noise': self.noise,
            'rmse': {name: {'before': a, 'after': b} for name, (a, b) in self.rmse().items()},
        }


def identify(
    paths: Sequence[str | Path],
    robot: Robot,
    reading: Reading | None = None,
    filtering: Filtering | None = None,
    unknowns: Unknowns | None = None,
    held_out: Sequence[str | Path] = (),
    share: float = 0.5,
    find_gains: bool = False,
) -> Identification:
    """Fit to `paths`, validate on `held_out`.

    Without held-out recordings: fit to the first `share` of each path, validate on the rest.
    """
    reading, filtering = reading or Reading(), filtering or Filtering(10.0)
    unknowns = unknowns or Unknowns(robot.friction.sign or 'exact')
    recordings = [Recording(Bag(path), robot, reading) for path in paths]
    if not held_out and not 0 < share <= 1:
        raise BagError(f'--share is {share}; it must be above 0 and at most 1')
    part = (0.0, 1.0 if held_out else share)
    items = [(i, w) for i, recording in enumerate(recordings) for w in recording.windows(*part)]
    urdf = (robot.urdf.text, robot.urdf.source)
    job = IdentificationJob(tuple(map(Path, paths)), robot.config, urdf, reading, filtering, unknowns)
    results = parallel.run(job, items, 'reading')
    factors = next(results)
    for result in results:
        for factor, other in zip(factors, result, strict=True):
            factor.add(other)
    if not factors[0].count:
        raise BagError(f'{paths[0]}: nothing is left after filtering; it is too short or has too many gaps')
    regressor = Regressor(robot, unknowns, recordings[0].moving, recordings[0].measured)
    found = solve(regressor, factors, reading.locked, find_gains)
    found.used = f'{", ".join(map(str, paths))}, {part[1]:.0%}, {factors[0].count} samples'
    calibrated = replace(reading, gains=found.gains, offsets=found.offsets)
    rest = [(path, (0.0, 1.0)) for path in held_out] or [(path, (share, 1.0)) for path in paths if share < 1]
    for path, span in rest:
        found.before.append(validate(path, robot, reading, filtering, span))
        found.after.append(validate(path, found.robot, calibrated, filtering, span))
    found.held_out = ', '.join(f'{path}, {b - a:.0%}' for path, (a, b) in rest)
    return found


def solve(
    regressor: Regressor,
    factors: list[TriangularFactor],
    locked: Mapping[str, float],
    find_gains: bool = False,
) -> Identification:
    """Motor gains if requested, physically consistent parameters, and base parameters."""
    robot = regressor.robot
    names = [name for name, row in zip(robot.joint_names, regressor.rows, strict=True) if row]
    gains, deviations = {}, {}
    if find_gains:
        for i, name in enumerate(names):
            if regressor.measured[robot.joint_names.index(name)]:
                gains[name], deviations[name] = motor_gain(regressor, factors[i], name)
                factors[i] = factors[i].scaled(gains[name])
    driven = regressor.measured[regressor.rows]
    theta, deviation, noises = fit_parameters(regressor, factors, driven)
    R, z = stacked(factors, noises)
    exciting = regressor.matrix(random_motion(robot, max(60, len(regressor.names)), locked))
    preferred = np.arange(len(regressor.names)) >= regressor.inertial
    base = base_parameters(exciting[:, regressor.rows].reshape(-1, len(regressor.names)), preferred)
    return Identification(
        regressor.names,
        regressor.prior,
        theta,
        deviation,
        base,
        fit_base(R, z, base),
        dict(zip(names, noises.tolist(), strict=True)),
        gains,
        deviations,
        *_as_robot(regressor, theta, gains),
        _kinds(regressor, theta, deviation),
        len(regressor.bodies),
    )


def _as_robot(regressor: Regressor, theta: Array, gains: dict[str, float]) -> tuple[dict[str, float], Robot]:
    """Offsets of the effort by joint, and the robot with the other parameters."""
    robot = regressor.robot

    def value(kind: str) -> Array:
        return regressor.value(theta, kind)

    forward, backward = value('coulomb_forward'), value('coulomb_backward')
    coulomb = value('coulomb') + (forward + backward) / 2
    # Asymmetric friction is symmetric friction plus a constant torque.
    offset = value('offset') + (forward - backward) / 2
    viscous, rotors = value('viscous'), value('rotor')
    for j, moves in enumerate(regressor.moving):
        if not moves:  # it was not excited
            viscous[j], coulomb[j] = robot.friction.viscous[j], robot.friction.coulomb[j]
            rotors[j] = robot.rotor_inertia()[j, j]
    bodies = {robot.model.names[body]: theta[10 * i : 10 * i + 10] for i, body in enumerate(regressor.bodies)}
    factors = np.array([gains.get(name, 1.0) for name in robot.joint_names])
    config = with_friction_and_motors(robot, viscous, coulomb, regressor.unknowns.sign, rotors, factors)
    offsets = {
        name: float(x) for name, x, m in zip(robot.joint_names, offset, regressor.measured, strict=True) if m
    }
    return offsets, Robot(config, with_inertias(robot, bodies))


def _kinds(
    regressor: Regressor, theta: Array, deviation: Array
) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Joint -> kind -> value before, after, and standard deviation."""
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    for i, (kind, j) in enumerate(regressor.columns, regressor.inertial):
        entry = found.setdefault(regressor.robot.joint_names[j], {})
        entry[kind] = (float(regressor.prior[i]), float(theta[i]), float(deviation[i]))
    return found

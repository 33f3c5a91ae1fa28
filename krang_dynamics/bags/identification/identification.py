"""`krang identify`: link, rotor and friction parameters from recordings, checked on what was held out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import Array, Mask
from ...errors import BagError
from ...robot.config import RobotConfig
from ...robot.model import Robot
from ...robot.urdf import Urdf
from ...text import number, table
from ..io import parallel
from ..io.reader import Bag
from ..validation.filtering import SHORTEST_RUN, Filtering, Motion, low_pass, motions
from ..validation.recording import Reading, Recording, Window
from ..validation.validation import Validation, validate
from .consistent_fit import fit_consistent, is_consistent
from .least_squares import Base, BaseFit, Triangle, base_parameters, fit_base, stacked
from .model_files import with_friction_and_motors, with_inertias
from .regressor import Regressor, Unknowns, random_motion

THIN = 2.5  # samples per period of the cutoff that are used: more would only repeat each other's noise
LIGHT, DENSE = 4.0, 20.0  # cutoff [cutoffs] and rate [samples per period] at which Y is evaluated
TURNS = 8  # in which the noise of the rows settles
LEAST_NOISE = 1e-9  # [N m]
KNOWN = 0.1  # relative deviation up to which a base parameter counts as known


@dataclass(frozen=True)
class IdentifyJob(parallel.Job[tuple[int, Window], list[Triangle]]):
    """Windows of several recordings to triangles of [Y y]."""

    paths: tuple[Path, ...]
    config: RobotConfig
    urdf: tuple[str | bytes, str]  # text and source
    reading: Reading
    filtering: Filtering
    unknowns: Unknowns

    def open(self) -> Callable[[tuple[int, Window]], list[Triangle]]:
        robot = Robot(self.config, Urdf(*self.urdf))
        recordings = [Recording(Bag(path), robot, self.reading) for path in self.paths]
        regressor = Regressor(robot, self.unknowns, recordings[0].moving, recordings[0].measured)

        def work(item: tuple[int, Window]) -> list[Triangle]:
            return _triangles(recordings[item[0]], regressor, self.filtering, item[1])

        return work


def _triangles(
    recording: Recording, regressor: Regressor, filtering: Filtering, window: Window
) -> list[Triangle]:
    """Per row of the regressor, of the samples that arrived in the window."""
    start, stop = window
    margin = round(1e9 * max(2 * filtering.settling, 20 / recording.rate if recording.rate else 0.0))
    samples = recording.samples(start - margin, stop + margin)
    p = len(regressor.names)
    rows = np.flatnonzero(regressor.rows).tolist()
    total = [Triangle(np.zeros((0, p + 1)), 0) for _ in rows]
    for whole in motions(samples, _lightly(filtering, recording.rate)):
        if len(whole.t) < SHORTEST_RUN:
            continue
        for triangle, (Y, y) in zip(total, _filtered(regressor, whole, filtering, window), strict=True):
            triangle.add(Triangle.of(Y, y))
    return total


def _lightly(filtering: Filtering, rate: float) -> Filtering:
    """A filter before Y is evaluated, which spares the harmonics that friction makes of slow motion."""
    if filtering.cutoff is None or LIGHT * filtering.cutoff > 0.3 * rate:
        return replace(filtering, cutoff=None)
    return replace(filtering, cutoff=LIGHT * filtering.cutoff)


def _filtered(
    regressor: Regressor, motion: Motion, filtering: Filtering, window: Window
) -> Iterator[tuple[Array, Array]]:
    """Per row: Y and torque through one and the same low pass, which leaves tau = Y theta true."""
    rate, cutoff = 1 / float(np.median(np.diff(motion.t))), filtering.cutoff
    step = max(1, int(rate / (DENSE * cutoff))) if cutoff else 1
    motion, rate = motion.every(step), rate / step
    Y = regressor.matrix(motion)
    drop = round(filtering.settling * rate)
    arrival = motion.arrival[drop : len(motion.t) - drop]
    first, last = (drop + np.searchsorted(arrival, window)).tolist()
    kept = slice(first, last, max(1, round(rate / (THIN * cutoff))) if cutoff else 1)
    for j in np.flatnonzero(regressor.rows):
        columns = np.column_stack([Y[:, j], motion.effort[:, j]])
        if cutoff:
            alive = np.flatnonzero(columns.any(axis=0))
            columns[:, alive] = low_pass(columns[:, alive], cutoff, rate)
        yield columns[kept, :-1], columns[kept, -1]


@dataclass
class Identification:
    """What was found: theta over `names` with deviations, base parameters, and the robot that it makes."""

    names: tuple[str, ...]
    prior: Array
    theta: Array
    deviation: Array
    base: Base
    base_fit: BaseFit
    noise: dict[str, float]  # by joint [N m]
    gains: dict[str, float]  # measured torque is to be multiplied by
    gain_deviations: dict[str, float]
    offsets: dict[str, float]  # and this taken off [N m]
    robot: Robot
    kinds: dict[str, dict[str, tuple[float, float, float]]]  # joint, kind: before, after, deviation
    bodies: int  # the first ten entries of theta for each
    before: list[Validation] = field(default_factory=list)  # of what was held out
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
        return int((self.base_fit.deviation <= KNOWN * np.abs(self.base_fit.value)).sum())

    def consistent(self) -> int:
        """How many bodies can exist; all, unless rounding spoilt one."""
        bodies = range(0, 10 * self.bodies, 10)
        return sum(is_consistent(self.theta[i : i + 10]) for i in bodies)

    def rmse(self) -> dict[str, tuple[float, float]]:
        """By joint: RMSE on what was held out, before and after, over all its recordings [N m]."""
        result = {}
        for name in self.before[0].joints if self.before else ():
            pair = [
                float(np.sqrt(np.mean([v.joints[name]['friction'].rmse ** 2 for v in kind])))
                for kind in (self.before, self.after)
            ]
            result[name] = (pair[0], pair[1])
        return result

    def text(self) -> str:
        rows = []
        for joint, kinds in self.kinds.items():
            for kind, (before, after, deviation) in kinds.items():
                rows.append([joint, kind, number(before), number(after), number(deviation, 2)])
        lines = [
            f'Used: {self.used}',
            f'{len(self.base.independent)} base parameters of {len(self.names)}, condition number '
            f'{self.base_fit.condition:.3g}; {self.known()} have a deviation below {KNOWN:.0%}',
            '',
            'Rotors [kg m2], friction [N m s/rad, N m], offsets [N m]',
            *(f'  {line}' for line in table(['joint', 'parameter', 'before', 'after', 'deviation'], rows)),
            '',
            f'Bodies, {self.consistent()} of {self.bodies} physically consistent',
            *(f'  {line}' for line in self._bodies()),
        ]
        if self.gain_deviations:
            gains = [[n, number(g), number(self.gain_deviations[n], 2)] for n, g in self.gains.items()]
            lines += ['', 'Motor gains, torque per what was believed to be torque']
            lines += [f'  {line}' for line in table(['joint', 'gain', 'deviation'], gains)]
        if self.before:
            compared = [
                [name, f'{a:.3f}', f'{b:.3f}', f'{self.noise.get(name, np.nan):.3f}']
                for name, (a, b) in self.rmse().items()
            ]
            lines += ['', f'RMSE on what was held out ({self.held_out}) [N m]']
            lines += [f'  {line}' for line in table(['joint', 'before', 'after', 'noise'], compared)]
        return '\n'.join(lines)

    def _bodies(self) -> list[str]:
        rows = []
        for i in range(0, 10 * self.bodies, 10):
            m0, m, dm = self.prior[i], self.theta[i], self.deviation[i]
            com = ' '.join(number(x, 3) for x in self.theta[i + 1 : i + 4] / m)
            rows.append([self.names[i][:-2], number(m0), number(m), number(dm, 2), com])
        return table(['moved by', 'kg before', 'kg after', 'deviation', 'centre of mass [m]'], rows)

    def as_json(self) -> dict[str, Any]:
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
    """Fit on `paths`, or on the first `share` of each where nothing is held out, and compare on the rest."""
    reading, filtering = reading or Reading(), filtering or Filtering(10.0)
    unknowns = unknowns or Unknowns(robot.friction.sign or 'exact')
    recordings = [Recording(Bag(path), robot, reading) for path in paths]
    if not held_out and not 0 < share <= 1:
        raise BagError(f'--share is {share}; it must be above 0 and at most 1')
    part = (0.0, 1.0 if held_out else share)
    items = [(i, w) for i, recording in enumerate(recordings) for w in recording.windows(*part)]
    urdf = (robot.urdf.text, robot.urdf.source)
    job = IdentifyJob(tuple(map(Path, paths)), robot.config, urdf, reading, filtering, unknowns)
    parts = parallel.run(job, items, 'reading')
    triangles = next(parts)
    for more in parts:
        for triangle, other in zip(triangles, more, strict=True):
            triangle.add(other)
    if not triangles[0].count:
        raise BagError(f'{paths[0]}: nothing is left of it after filtering; it is too short or too torn')
    regressor = Regressor(robot, unknowns, recordings[0].moving, recordings[0].measured)
    result = solve(regressor, triangles, reading.locked, find_gains)
    result.used = f'{", ".join(map(str, paths))}, {part[1]:.0%}, {triangles[0].count} samples'
    calibrated = replace(reading, gains=result.gains, offsets=result.offsets)
    rest = [(path, (0.0, 1.0)) for path in held_out] or [(path, (share, 1.0)) for path in paths if share < 1]
    for path, span in rest:
        result.before.append(validate(path, robot, reading, filtering, span))
        result.after.append(validate(path, result.robot, calibrated, filtering, span))
    result.held_out = ', '.join(f'{path}, {b - a:.0%}' for path, (a, b) in rest)
    return result


def solve(
    regressor: Regressor, triangles: list[Triangle], locked: Mapping[str, float], find_gains: bool = False
) -> Identification:
    """Gains where asked for, base parameters, then the physically consistent ones."""
    robot = regressor.robot
    names = [name for name, row in zip(robot.joint_names, regressor.rows, strict=True) if row]
    gains, deviations = {}, {}
    if find_gains:
        for i, name in enumerate(names):
            if regressor.measured[robot.joint_names.index(name)]:
                gains[name], deviations[name] = motor_gain(regressor, triangles[i], name)
                triangles[i] = triangles[i].scaled(gains[name])
    driven = regressor.measured[regressor.rows]
    theta, deviation, noises = _fit(regressor, triangles, driven)
    R, z = stacked(triangles, noises)
    rich = regressor.matrix(random_motion(robot, max(60, len(regressor.names)), locked))
    preferred = np.arange(len(regressor.names)) >= regressor.inertial
    base = base_parameters(rich[:, regressor.rows].reshape(-1, len(regressor.names)), preferred)
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


def _fit(regressor: Regressor, triangles: list[Triangle], driven: Mask) -> tuple[Array, Array, Array]:
    """theta, its deviations, and the noise of every row, which is what theta leaves of it, in turns.

    To begin with, a row with a motor has the noise that its own best fit leaves. That alone would be too
    little: noise of accelerations makes a fit of one row shrink. A row without a motor says Y theta = 0,
    which theta = 0 explains best of all, so it begins with what the description leaves.
    """
    prior, spread = regressor.prior, regressor.spread
    least = np.array([t.noise() if own else LEAST_NOISE for t, own in zip(triangles, driven, strict=True)])
    noises = np.where(driven, least, [triangle.left(prior) for triangle in triangles])
    for _ in range(TURNS):
        R, z = stacked(triangles, np.maximum(noises, LEAST_NOISE))
        design = np.vstack([R * spread, np.eye(len(spread))])
        theta = spread * np.linalg.lstsq(design, np.concatenate([z, prior / spread]), rcond=None)[0]
        noises = np.maximum([triangle.left(theta) for triangle in triangles], least)
    noises = np.maximum(noises, LEAST_NOISE)
    R, z = stacked(triangles, noises)
    return *fit_consistent(R, z, prior, spread, len(regressor.bodies), regressor.positive), noises


def motor_gain(regressor: Regressor, triangle: Triangle, joint: str) -> tuple[float, float]:
    """What to multiply a joint's effort by so that the links' torques come out as described, and how sure.

    effort = (Y theta_links) / gain + rotor, friction and offset, in effort's own unit.
    """
    j = regressor.robot.joint_names.index(joint)
    links = triangle.R[:, : regressor.inertial] @ regressor.prior[: regressor.inertial]
    own = [regressor.inertial + i for i, (_, k) in enumerate(regressor.columns) if k == j]
    columns = np.column_stack([links, triangle.R[:, own]])
    y = triangle.R[:, -1]
    solution = np.linalg.lstsq(columns, y, rcond=None)[0]
    noise = np.linalg.norm(y - columns @ solution) / np.sqrt(max(triangle.count - len(solution), 1))
    inverse = float(solution[0])
    spread = float(noise * np.sqrt(np.linalg.pinv(columns.T @ columns)[0, 0]))
    if inverse <= 3 * spread:
        raise BagError(
            f'the gain of {joint} cannot be found: its links hardly show in its effort; '
            'leave --gains away, or record faster motion'
        )
    return 1 / inverse, spread / inverse**2


def _as_robot(regressor: Regressor, theta: Array, gains: dict[str, float]) -> tuple[dict[str, float], Robot]:
    """Offsets of the effort by joint, and the robot with everything else."""
    robot = regressor.robot

    def value(kind: str) -> Array:
        return regressor.value(theta, kind)

    forward, backward = value('coulomb_forward'), value('coulomb_backward')
    coulomb = value('coulomb') + (forward + backward) / 2
    # Friction that differs by direction is a symmetric one and a torque that pushes one way.
    offset = value('offset') + (forward - backward) / 2
    viscous, rotors = value('viscous'), value('rotor')
    for j, moves in enumerate(regressor.moving):
        if not moves:  # nothing was seen of it
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
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    for i, (kind, j) in enumerate(regressor.columns, regressor.inertial):
        entry = found.setdefault(regressor.robot.joint_names[j], {})
        entry[kind] = (float(regressor.prior[i]), float(theta[i]), float(deviation[i]))
    return found

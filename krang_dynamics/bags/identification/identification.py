"""`krang identify`: link, rotor and friction parameters from recordings, validated on held-out data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import Array, Mask
from ...errors import BagError
from ...robot.model import Robot
from ...robot.payload import Payload
from ...text import number, table
from .. import parallel
from ..io.reader import Bag
from ..validation.filtering import Filtering
from ..validation.recording import Reading, Recording
from ..validation.residual import explained_effort
from ..validation.validation import INVERTED, Validation, validate
from .consistent_fit import fit_consistent, is_consistent
from .least_squares import (
    BaseFit,
    BaseParameters,
    TriangularFactor,
    base_parameters,
    fit_base,
    stacked,
)
from .model_choice import choose_model, chosen_factors, suitable_cutoff, survey_all
from .model_files import with_friction_and_motors, with_inertias
from .parameter_fit import motor_gain, motor_gain_by_load, noise_levels
from .plausible_bodies import body_bounds
from .regressor import Regressor, Unknowns, link_parameters, random_motion
from .window_equations import Estimate, Item, Source, WeightedEquations, weighting

WORSE = 1.1  # ratio of errors from which a model is worse on held-out data,
NOTICEABLE = 0.02  # if the error grows by this share of the torque
HEAVIER = 3.0  # factor between described and identified mass from which the recording is doubtful
EXPLAINED = 0.3  # least share of a joint's effort that model, motion or pose must explain
SIGNIFICANT = 2.0  # delay of the effort up to which it counts as zero [standard deviations]
FITS = 0.5  # least r2 of an identified model on held-out data
KNOWN = 0.1  # relative deviation up to which a base parameter counts as well determined


@dataclass
class Gains:
    """Factors on the effort by joint, their standard deviations and sources, and why others are missing."""

    values: dict[str, float] = field(default_factory=dict)
    deviations: dict[str, float] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


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
    gains: Gains
    robot: Robot
    kinds: dict[str, dict[str, tuple[float, float, float]]]  # joint, kind: before, after, deviation
    bodies: int  # number; theta begins with ten entries for each
    delay: tuple[float, float] = (0.0, 0.0)  # of the effort behind the motion [s], and its deviation
    count: int = 0  # samples used, after thinning
    light: dict[str, int] = field(default_factory=dict)  # by joint: samples that lost weight as outliers
    left_out: dict[str, str] = field(default_factory=dict)  # joints whose equations were not used, and why
    check: list[str] = field(default_factory=list)  # of the recordings
    contradictions: list[str] = field(default_factory=list)  # of the recordings: units and limits
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

    def worse(self) -> list[str]:
        """A sentence on each joint that the identified model fits worse on held-out data."""
        return [
            f'{name}: RMSE {a:.4g} N m before, {b:.4g} N m after'
            for name, (a, b) in self.rmse().items()
            if b > WORSE * a and b**2 - a**2 > (NOTICEABLE * self._torque(name)) ** 2
        ]

    def doubts(self) -> list[str]:
        """Sentences on why the result should not be trusted."""
        found = [
            f'{self.names[i][:-2]}: mass from {self.prior[i]:.4g} to {self.theta[i]:.4g} kg'
            for i in range(0, 10 * self.bodies, 10)
            if not 1 / HEAVIER < self.theta[i] / self.prior[i] < HEAVIER
        ]
        return [*self.contradictions, *found, *self._unexplained()]

    def _unexplained(self) -> list[str]:
        """A sentence on each driven joint whose effort on the held-out data is not that of the new model."""
        found = []
        for name in self.after[0].joints if self.after else ():
            figures = [result.joints[name]['friction'] for result in self.after]
            largest = max(
                np.abs(r.series.measured[:, r.names.index(name)]).max(initial=0.0) for r in self.after
            )
            used = self.robot.config.joints[name].driven and name not in self.left_out
            r2, rmse = np.mean([f.r2 for f in figures]), max(f.rmse for f in figures)
            if used and r2 < FITS and rmse > NOTICEABLE * largest:
                found.append(
                    f'{name}: r2 is {r2:.2g} after identification; check joint names, signs, offsets'
                )
        return found

    def _torque(self, joint: str) -> float:
        """Standard deviation of a joint's measured torque on the held-out data [N m]."""
        figures = [result.joints[joint]['friction'] for result in self.before]
        return float(np.sqrt(np.nanmean([f.rmse**2 / max(1 - f.r2, 1e-12) for f in figures])))

    def text(self) -> str:
        """The report for a terminal."""
        rows = []
        notes = [f'! {name} is left out: {why}' for name, why in self.left_out.items()]
        notes += [f'! {problem}' for problem in self.gains.problems]
        outliers = ', '.join(f'{name} {count}' for name, count in self.light.items() if count)
        for joint, kinds in self.kinds.items():
            for kind, (before, after, deviation) in kinds.items():
                rows.append([joint, kind, number(before), number(after), number(deviation, 2)])
        lines = [
            'Recording',
            *(f'  {line}' for line in [*self.check, *notes]),
            '',
            f'Data used: {self.used}',
            f'Effort lags behind motion by {1e3 * self.delay[0]:.2f} ms',
            *([f'Samples that lost weight as outliers: {outliers}'] if outliers else []),
            f'{len(self.base.independent)} base parameters of {len(self.names)}, condition number '
            f'{self.base_fit.condition:.3g}; {self.known()} have a standard deviation below {KNOWN:.0%}',
            '',
            'Rotor [kg m2], viscous [N m s/rad], Coulomb, Stribeck friction and offset [N m], load [1]',
            *(f'  {line}' for line in table(['joint', 'parameter', 'before', 'after', 'deviation'], rows)),
            '',
            f'Bodies, {self.consistent()} of {self.bodies} physically consistent',
            *(f'  {line}' for line in self._bodies()),
        ]
        if self.gains.values:
            found = self.gains
            gains = [
                [name, number(gain), number(found.deviations[name], 2), found.sources[name]]
                for name, gain in found.values.items()
            ]
            lines += ['', 'Motor gains: factors on the recorded effort']
            lines += [f'  {line}' for line in table(['joint', 'gain', 'deviation', 'from'], gains)]
        if self.before:
            compared = [
                [
                    name,
                    f'{a:.3f}',
                    f'{b:.3f}',
                    f'{self.noise.get(name, np.nan):.3f}',
                    f'{np.mean([v.joints[name]["friction"].r2 for v in self.after]):.3f}',
                ]
                for name, (a, b) in self.rmse().items()
            ]
            lines += ['', f'RMSE on held-out data ({self.held_out}) [N m]']
            lines += [
                f'  {line}' for line in table(['joint', 'before', 'after', 'noise', 'r2 after'], compared)
            ]
        return '\n'.join(lines)

    def _bodies(self) -> list[str]:
        rows = []
        for i in range(0, 10 * self.bodies, 10):
            m0, m, dm = self.prior[i], self.theta[i], self.deviation[i]
            com = ' '.join(number(x, 3) for x in self.theta[i + 1 : i + 4] / m)
            rows.append([self.names[i][:-2], number(m0), number(m), number(dm, 2), com])
        return table(['moved by', 'mass before [kg]', 'after', 'deviation', 'centre of mass [m]'], rows)

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
            'delay': {'value': self.delay[0], 'deviation': self.delay[1]},
            'offsets': dict(zip(self.robot.joint_names, self.robot.friction.offset.tolist(), strict=True)),
            'widths': dict(zip(self.robot.joint_names, self.robot.friction.width.tolist(), strict=True)),
            'gains': self.gains.values,
            'left_out': self.left_out,
            'outliers': self.light,
            'check': self.check,
            'noise': self.noise,
            'rmse': {name: {'before': a, 'after': b} for name, (a, b) in self.rmse().items()},
        }


@parallel.shared_workers()
def identify(
    paths: Sequence[str | Path],
    robot: Robot,
    reading: Reading | None = None,
    filtering: Filtering | None = None,
    unknowns: Unknowns | None = None,
    held_out: Sequence[str | Path] = (),
    share: float = 0.5,
    find_gains: bool = False,
    total_mass: float | None = None,
    loaded: Sequence[str | Path] = (),
    loads: Sequence[Payload] = (),
) -> Identification:
    """Fit to `paths`, validate on `held_out`; the default cutoff follows from the motion.

    Without held-out recordings: fit to the first `share` of each path, validate on the rest. Motor gains are
    identified from recordings `loaded` with known payloads, `loads`, where there are some.
    """
    reading = reading or Reading()
    unknowns = unknowns or Unknowns(robot.friction.sign or 'smooth')
    if not held_out and not 0 < share <= 1:
        raise BagError(f'--share is {share}; it must be above 0 and at most 1')
    for path in (*held_out, *loaded):
        Recording(Bag(path), robot, reading)
    part = (0.0, 1.0 if held_out else share)
    recordings, used, checks = _checked(paths, robot, reading, filtering, part)
    contradictory = sorted({name for check in checks for name in check.contradictory})
    notes = [
        f'! {name}: differentiated positions are used in place of its velocity' for name in contradictory
    ]
    lines = [line for check in checks for line in check.check]
    if contradictory:
        reading = replace(reading, differentiated=tuple(contradictory))
        recordings, used, checks = _checked(paths, robot, reading, filtering, part)
    filtering = used
    source, left_out = _source(paths, robot, reading, filtering, recordings, checks)
    items = [(i, w) for i, recording in enumerate(recordings) for w in recording.windows(*part)]
    with_load = _with_load(source, robot, loaded, loads) if loaded else None
    found = fit(source, items, unknowns, recordings[0].locked, find_gains, total_mass, with_load)
    found.left_out = left_out
    found.check = [*lines, *notes]
    found.contradictions = [line for check in checks for line in check.wrong]
    if not find_gains:
        found.contradictions += [
            f'{name}: effort is {factor:.3g} times the predicted torque; check its unit, or use --gains'
            for name, factor in {n: f for check in checks for n, f in check.factors.items()}.items()
            if 0 < factor < 1
        ]
    names = ', '.join(map(str, paths))
    found.used = f'{names}, {part[1]:.0%}, {found.count} samples after thinning, {filtering.describe()}'
    calibrated = replace(reading, gains=found.gains.values)
    rest = [(path, (0.0, 1.0)) for path in held_out] or [(path, (share, 1.0)) for path in paths if share < 1]
    for path, span in rest:
        found.before.append(validate(path, robot, reading, filtering, span))
        faults = [line for line in found.before[-1].check if line[0] == '!' and line not in found.check]
        found.check += [f'! held out: {line[2:]}' for line in faults]
        found.after.append(validate(path, found.robot, calibrated, filtering, span))
    found.held_out = ', '.join(f'{path}, {b - a:.0%}' for path, (a, b) in rest)
    return found


def _checked(
    paths: Sequence[str | Path],
    robot: Robot,
    reading: Reading,
    filtering: Filtering | None,
    part: tuple[float, float],
) -> tuple[list[Recording], Filtering, list[Validation]]:
    """The recordings, the filter, by default one that suits the motion, and the checks by `validate`."""
    recordings = [Recording(Bag(path), robot, reading) for path in paths]
    filtering = filtering or Filtering(max(map(suitable_cutoff, recordings)))
    return recordings, filtering, [validate(path, robot, reading, filtering, part) for path in paths]


def _source(
    paths: Sequence[str | Path],
    robot: Robot,
    reading: Reading,
    filtering: Filtering,
    recordings: list[Recording],
    checks: list[Validation],
) -> tuple[Source, dict[str, str]]:
    """The joints whose equations are used, and why others are not."""
    silent = {name for recording in recordings for name in recording.silent}
    resting = set.intersection(*(set(check.resting) for check in checks)) - set(recordings[0].locked)
    left_out = dict.fromkeys(sorted(silent), 'its effort is missing or always zero')
    left_out |= dict.fromkeys(sorted(resting), 'it does not move')
    frozen = {name for check in checks for name in check.frozen}
    left_out |= dict.fromkeys(sorted(frozen), 'its effort does not change for a large part of the motion')
    inverted = {name for check in checks for name in check.inverted}
    left_out |= dict.fromkeys(sorted(inverted), INVERTED)
    for j in np.flatnonzero(recordings[0].measured):
        name = robot.joint_names[j]
        if name not in left_out and explained_effort([check.series for check in checks], int(j)) < EXPLAINED:
            left_out[name] = 'its effort follows neither the model, nor its motion, nor its pose'
    moves, measured, known = (
        np.logical_and.reduce([getattr(recording, kind) for recording in recordings])
        for kind in ('moving', 'measured', 'known')
    )
    used = np.array([name not in left_out for name in robot.joint_names])
    if not (measured & used).any():
        reasons = '; '.join(f'{name}: {why}' for name, why in left_out.items() if name not in resting)
        raise BagError(
            f'{paths[0]}: no joint with effort moves; record a motion (krang excite), or identify masses '
            'from poses at rest with --static'
            if not reasons
            else f'{paths[0]}: no joint can be used; {reasons}'
        )
    masks = (moves & used, measured & used, known & used)
    return Source(tuple(map(Path, paths)), robot, reading, filtering, *masks), left_out


@dataclass(frozen=True)
class Loaded:
    """Recordings with a known load, and what it adds to the parameters of the links."""

    source: Source
    items: list[Item]
    load: Array


def _with_load(source: Source, robot: Robot, paths: Sequence[str | Path], loads: Sequence[Payload]) -> Loaded:
    source = replace(source, paths=tuple(map(Path, paths)))
    recordings = [Recording(Bag(path), robot, source.reading) for path in paths]
    items = [(i, window) for i, recording in enumerate(recordings) for window in recording.windows()]
    loaded = robot.carrying((*robot.payloads, *loads))
    return Loaded(source, items, link_parameters(loaded) - link_parameters(robot))


def fit(
    source: Source,
    items: list[Item],
    unknowns: Unknowns,
    locked: Mapping[str, float],
    find_gains: bool = False,
    total_mass: float | None = None,
    loaded: Loaded | None = None,
) -> Identification:
    """Delay, shape of friction, motor gains if requested, then physically consistent and base parameters."""
    robot = source.robot
    surveyed = survey_all(source, unknowns, items)
    first = Regressor(robot, unknowns, source.moving, source.measured, source.known)
    regressor, delay = choose_model(first, surveyed)
    factors = chosen_factors(first, regressor, surveyed, delay)
    names = [name for name, row in zip(robot.joint_names, regressor.rows, strict=True) if row]
    gains = Gains()
    if find_gains or loaded:
        others = None
        if loaded:
            others = chosen_factors(
                first, regressor, survey_all(loaded.source, unknowns, loaded.items), delay
            )
        gains = _gains(regressor, factors, others, loaded)
        factors = [
            factor.scaled(gains.values.get(name, 1.0)) for factor, name in zip(factors, names, strict=True)
        ]
        source = replace(source, reading=replace(source.reading, gains=gains.values))
    driven = regressor.measured[regressor.rows]
    theta, noises = noise_levels(regressor, factors, driven)
    estimate = Estimate(theta, noises, delay)
    results = parallel.run(partial(weighting, source, regressor.unknowns, estimate), items, 'fitting')
    weighted = next(results)
    for other in results:
        weighted.add(other)
    solution = solve(regressor, weighted, delay, locked, total_mass)
    return Identification(
        names=regressor.names,
        prior=regressor.prior,
        theta=solution.theta,
        deviation=solution.deviation,
        base=solution.base,
        base_fit=solution.base_fit,
        noise=dict(zip(names, solution.noises.tolist(), strict=True)),
        gains=gains,
        robot=_as_robot(regressor, solution, gains.values),
        kinds=_kinds(regressor, solution.theta, solution.deviation),
        bodies=len(regressor.bodies),
        delay=solution.delay,
        count=weighted.factors[0].count,
        light=dict(zip(names, weighted.light.astype(int).tolist(), strict=True)),
    )


def _gains(
    regressor: Regressor,
    factors: list[TriangularFactor],
    with_load: list[TriangularFactor] | None,
    loaded: Loaded | None,
) -> Gains:
    """Gains from a known load; of joints that do not carry it, or without one, from the described links."""
    gains = Gains()
    for i, j in enumerate(np.flatnonzero(regressor.rows)):
        name = regressor.robot.joint_names[j]
        if not regressor.measured[j]:
            continue
        try:
            if loaded and with_load and (with_load[i].R[:, : len(loaded.load)] @ loaded.load).any():
                pair, source = (factors[i], with_load[i]), 'load'
                found = motor_gain_by_load(regressor, pair, name, loaded.load)
            else:
                found, source = motor_gain(regressor, factors[i], name), 'links'
        except BagError as error:
            gains.problems.append(str(error))
            continue
        gains.values[name], gains.deviations[name] = found
        gains.sources[name] = source
    return gains


@dataclass(frozen=True)
class Solution:
    """theta and base parameters with deviations, noise of each row, and the delay of the effort [s]."""

    theta: Array
    deviation: Array
    base: BaseParameters
    base_fit: BaseFit
    noises: Array
    width: Array  # of the smooth sign, over joint_names [rad/s]
    delay: tuple[float, float]  # and its standard deviation


def solve(
    regressor: Regressor,
    equations: WeightedEquations,
    delay: float,
    locked: Mapping[str, float],
    total_mass: float | None,
) -> Solution:
    """Parameters for the best widths and the best correction of `delay` [s].

    Residuals that are correlated in time make deviations larger.
    """
    count, driven = len(regressor.names), regressor.measured[regressor.rows]
    active, last = regressor.active, np.array([1.0])
    factors = [f.columns(own, count, last) for f, own in zip(equations.factors, active, strict=True)]
    noises = noise_levels(regressor, factors, driven)[1]

    def with_delay(scales: Array) -> tuple[Array, Array, list[Array]]:
        """R and z of all joints for the best widths, the delay in the first column; rows of the widths."""
        pairs = [
            f.columns(np.append(own + 2, (1, 0)), count + 2, last).without_first(scale)
            for f, own, scale in zip(equations.factors, active, scales, strict=True)
        ]
        return *stacked([f for f, _ in pairs], scales), [row for _, row in pairs]

    exciting = regressor.matrix(random_motion(regressor.robot, max(60, count), locked))
    preferred = np.arange(count) >= regressor.inertial
    base = base_parameters(exciting[:, regressor.rows].reshape(-1, count), preferred)
    R, z, width_rows = with_delay(noises * np.sqrt(equations.correlation()))
    # Errors that repeat enlarge the deviations; they do not move the values.
    repetition = equations.repetition()
    scales = noise_levels(regressor, factors, driven, repetition)[1] * np.sqrt(repetition)
    uncertain, z_uncertain, _ = with_delay(scales)
    together = replace(base, independent=[0, *(k + 1 for k in base.independent)])
    late = float(fit_base(uncertain, z_uncertain, together).deviation[0])
    shift = float(fit_base(R, z, together).value[0])
    is_late = abs(delay + shift) > SIGNIFICANT * late  # a delay that the data do not show is zero
    row, z_row = R[0], z[0]
    R, z = (R[1:, 1:], z[1:]) if is_late else (R[:, 1:], z + delay * R[:, 0])
    uncertain, z_uncertain = uncertain[1:, 1:], z_uncertain[1:]
    bounds = body_bounds(regressor, total_mass)
    theta, deviation = fit_consistent(
        R, z, regressor.prior, regressor.spread, len(regressor.bodies), regressor.positive, bounds, uncertain
    )
    shift = float((z_row - row[1:] @ theta) / row[0]) if is_late else -delay
    wider = [(r[-1] - r[1:-1] @ np.append(shift, theta)) / r[0] for r in width_rows]
    width = regressor.width.copy()
    for j, x in zip(np.flatnonzero(regressor.rows).tolist(), np.clip(wider, -2.0, 2.0), strict=True):
        width[j] *= np.exp(regressor.width_spread(j) * x)
    base_fit = replace(fit_base(R, z, base), deviation=fit_base(uncertain, z_uncertain, base).deviation)
    return Solution(theta, deviation, base, base_fit, noises, width, (delay + shift, late))


def _as_robot(regressor: Regressor, solution: Solution, gains: dict[str, float]) -> Robot:
    """The robot with the identified parameters."""
    theta, width = solution.theta, solution.width
    robot, friction, unknowns = regressor.robot, regressor.robot.friction, regressor.unknowns

    def value(kind: str, otherwise: Array) -> Array:
        """Over joint_names; `otherwise` for a joint that was not excited."""
        return np.where(has(kind), regressor.value(theta, kind), otherwise)

    def has(kind: str) -> Mask:
        return np.array([(kind, j) in regressor.columns for j in range(robot.nv)])

    forward, backward = regressor.value(theta, 'coulomb_forward'), regressor.value(theta, 'coulomb_backward')
    asymmetric = has('coulomb_forward')
    coulomb = np.where(asymmetric, (forward + backward) / 2, value('coulomb', friction.coulomb))
    # Asymmetric friction is symmetric friction plus a constant torque.
    offset = np.where(asymmetric, (forward - backward) / 2, value('offset', friction.offset))
    identified = has('coulomb') | asymmetric
    stribeck = np.where(identified, regressor.value(theta, 'stribeck'), friction.stribeck)
    load = np.where(identified, regressor.value(theta, 'load'), friction.load)
    speed = np.array([unknowns.stribeck.get(name, 0.0) for name in robot.joint_names])
    speed = np.where(speed > 0, speed, friction.stribeck_speed)
    smooth = unknowns.sign == 'smooth'
    shape = {
        'width': _entries(robot, np.where(width == 1.0, 0.0, width) if smooth else 0 * width),
        'stribeck': _entries(robot, stribeck if smooth else 0 * stribeck),
        'stribeck_speed': _entries(robot, np.where(stribeck > 0, speed, 0.0) if smooth else 0 * speed),
        'load': _entries(robot, load if smooth else 0 * load),
        'offset': _entries(robot, offset),
    }
    links = theta[: regressor.inertial]
    if robot.payloads:
        links = links - (regressor.prior[: regressor.inertial] - link_parameters(robot.carrying(())))
    bodies = {robot.model.names[body]: links[10 * i : 10 * i + 10] for i, body in enumerate(regressor.bodies)}
    for name, parameters in bodies.items():
        if robot.payloads and not is_consistent(parameters):
            raise BagError(f'{name} moves less than the payload that is given; was it mounted?')
    config = with_friction_and_motors(
        robot,
        value('viscous', friction.viscous),
        coulomb,
        unknowns.sign,
        value('rotor', np.diag(robot.rotor_inertia())),
        np.array([gains.get(name, 1.0) for name in robot.joint_names]),
        shape,
    )
    return Robot(config, with_inertias(robot, bodies), robot.payloads)


def _entries(robot: Robot, values: Array) -> dict[str, float]:
    return {name: float(x) for name, x in zip(robot.joint_names, values, strict=True) if x != 0}


def _kinds(
    regressor: Regressor, theta: Array, deviation: Array
) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Joint -> kind -> value before, after, and standard deviation."""
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    for i, (kind, j) in enumerate(regressor.columns, regressor.inertial):
        entry = found.setdefault(regressor.robot.joint_names[j], {})
        entry[kind] = (float(regressor.prior[i]), float(theta[i]), float(deviation[i]))
    return found

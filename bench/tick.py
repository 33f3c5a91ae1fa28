"""One step of the controller against the bare Pinocchio calls that it needs, in one run.

All terms that a robot can use, and the safety stage. `cold` is a step 1 ms after the last, as in a node.
"""

import time

import numpy as np
import pinocchio as pin
from timing import figure, median_costs, ratio

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.wrench import WrenchSample
from krang_dynamics.safety.joint_buffer import JointSamples

HANDS = ('left_hand', 'right_hand')
TERMS = {
    'krang': ('gravity', 'friction', 'computed_torque', 'wrench', 'observer'),
    'otbot': ('rolling_base', 'friction', 'damping', 'joint_limits', 'observer'),
    'pendubot': ('gravity', 'friction', 'damping', 'computed_torque', 'joint_limits', 'observer'),
}
CARTESIAN = ('gravity', 'friction', 'cartesian_impedance', 'wrench', 'observer')
ROUNDS, COLD_ROUNDS = 3000, 1000
COLD_GOAL = 140.0  # half of the 280 us that a cold step took [us]


def run():
    for name in TERMS:
        robot = kd.load_robot(name)
        step = stepper(robot)
        ours, bare, fewer = median_costs(step, bare_calls(robot), fewer_calls(robot), rounds=ROUNDS)
        assert step().fault is None, 'a stop was measured'
        yield ratio(f'step of {name} / bare calls', ours, bare, 3.0)
        yield {
            'figure': f'step of {name} / fewer bare calls',
            'ours us': ours,
            'bare us': fewer,
            'value': ours / fewer,
        }
    krang = kd.load_robot('krang')
    yield ratio('step of krang, both hands on springs / bare calls', *costs(krang, CARTESIAN), 10.0)
    step = stepper(krang)
    yield figure('step of krang, cold us', cold_cost(step), COLD_GOAL)


def costs(robot, terms=None):
    """Median costs [us] of a step and of its bare calls."""
    step = stepper(robot, terms)
    result = median_costs(step, bare_calls(robot), rounds=ROUNDS)
    assert step().fault is None, 'a stop was measured'
    return result


def cold_cost(step, rounds=COLD_ROUNDS, period=1e-3):
    """Median cost [us] of a call that comes after a pause."""
    times = []
    for _ in range(rounds):
        time.sleep(period)
        start = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - start)
    return np.median(times) / 1000


def stepper(robot, terms=None):
    """A call that makes one more step of an active controller, 1 ms after the last."""
    controller, now = controller_at_work(robot, terms)
    # Inputs are prepared outside: they are no part of a step's cost.
    prepared = iter([inputs(robot, now + 1e-3 * k) for k in range(ROUNDS + 10)])
    outputs = controller.step(next(prepared))
    assert outputs.torque is not None, (outputs.fault, outputs.refused)
    return lambda: controller.step(next(prepared))


def controller_at_work(robot, terms=None):
    """An active controller on a slow trajectory, and the time of its next step."""
    terms = terms or TERMS.get(robot.name, TERMS['pendubot'])
    conventions = {f'wrench.{hand}.convention': 'applied_by_robot' for hand in hands(robot)}
    settings = Settings(terms=terms, ramp_time=0.0, wheels_locked=True, **conventions)
    controller = TorqueController(robot, settings)
    start = 1000.0
    controller.step(inputs(robot, start, enable=True))
    others = {}
    if 'computed_torque' in terms:
        slow = np.array([robot.home, robot.home + 1e-3])
        others['trajectory'] = JointTrajectory(robot.joint_names, np.array([0.0, 1e6]), slow)
    controller.step(inputs(robot, start + 1e-3, **others))
    return controller, start + 2e-3


def hands(robot):
    return [frame for frame in HANDS if frame in robot.frames]


def inputs(robot, now, **others):
    # Every state differs, so that no result of the last step can be used again.
    q, v, effort = robot.home + 1e-6 * (now % 1), np.zeros(robot.nv), robot.gravity_torque(robot.home)
    wrenches = [WrenchSample(hand, hand, np.arange(6.0), now) for hand in hands(robot)]
    samples = [JointSamples(robot.joint_names, q, v, effort, now, now)]
    return Inputs(now, now, samples, wrenches=wrenches, **others)


def bare_calls(robot):
    """The Pinocchio calls of one step: one pass, the Coriolis matrix, and the Jacobians of the hands.

    A rolling robot also needs the inverse dynamics and the Jacobians of its wheels. The step has learnt to do
    with fewer_calls(); these calls stay the same, so that the ratios of all versions can be compared.
    """
    model, data = robot.model, robot.model.createData()
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    frames = [model.getFrameId(hand, pin.FrameType.BODY) for hand in hands(robot)]
    wheels = [model.getFrameId(wheel.link, pin.FrameType.BODY) for wheel in robot.config.rolling]
    aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED

    def calls():
        pin.computeCoriolisMatrix(model, data, q, v)
        pin.computeAllTerms(model, data, q, v)
        for frame in frames:
            pin.getFrameJacobian(model, data, frame, aligned)
        if wheels:
            pin.rnea(model, data, q, v, v)
        for frame in wheels:
            pin.computeFrameJacobian(model, data, q, frame, aligned)

    return calls


def fewer_calls(robot):
    """What a step calls at least: one pass, and the placements and velocities of hands and wheels."""
    model, data = robot.model, robot.model.createData()
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    links = [*hands(robot), *(wheel.link for wheel in robot.config.rolling)]
    frames = [model.getFrameId(link, pin.FrameType.BODY) for link in links]
    is_rolling = bool(robot.config.rolling)
    aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED

    def calls():
        pin.computeAllTerms(model, data, q, v)
        if is_rolling:
            pin.computeJointJacobians(model, data, q)
            pin.forwardKinematics(model, data, q, v, v)
        for frame in frames:
            pin.updateFramePlacement(model, data, frame)
            if is_rolling:
                pin.getFrameJacobian(model, data, frame, aligned)
                pin.getFrameVelocity(model, data, frame, aligned)
                pin.getFrameClassicalAcceleration(model, data, frame, aligned)

    return calls

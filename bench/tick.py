"""One step of the controller on Krang against the bare Pinocchio calls that it needs, in one run.

Gravity, friction, computed torque on a moving reference, two wrenches, observer, safety.
"""

import numpy as np
import pinocchio as pin
from timing import ROUNDS, median_costs

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.wrench import WrenchSample
from krang_dynamics.safety.joint_buffer import JointSamples

HANDS = ('left_hand', 'right_hand')
TERMS = ('gravity', 'friction', 'computed_torque', 'wrench', 'observer')


def run():
    robot = kd.load_robot('krang')
    step, bare = stepper(robot), bare_calls(robot)
    ours, pinocchio = median_costs(step, bare)
    yield {'call': 'step', 'ours us': ours, 'bare us': pinocchio, 'ratio': ours / pinocchio}


def stepper(robot):
    """A call that makes one more step of an active controller, 1 ms after the last."""
    controller, now = controller_at_work(robot)
    # Inputs are prepared outside: they are no part of a step's cost.
    prepared = iter([inputs(robot, now + 1e-3 * k) for k in range(ROUNDS + 10)])
    assert controller.step(next(prepared)).torque is not None
    return lambda: controller.step(next(prepared))


def controller_at_work(robot):
    """An active controller on a slow trajectory, and the time of its next step."""
    conventions = {f'wrench.{hand}.convention': 'applied_by_robot' for hand in HANDS}
    controller = TorqueController(
        robot, Settings(terms=TERMS, ramp_time=0.0, wheels_locked=True, **conventions)
    )
    start = 1000.0
    controller.step(inputs(robot, start, enable=True))
    slow = np.array([robot.home, robot.home + 1e-3])
    trajectory = JointTrajectory(robot.joint_names, np.array([0.0, 1e6]), slow)
    controller.step(inputs(robot, start + 1e-3, trajectory=trajectory))
    return controller, start + 2e-3


def inputs(robot, now, **others):
    q, v, effort = robot.home, np.zeros(robot.nv), robot.gravity_torque(robot.home)
    wrenches = [WrenchSample(hand, hand, np.arange(6.0), now) for hand in HANDS]
    samples = [JointSamples(robot.joint_names, q, v, effort, now, now)]
    return Inputs(now, now, samples, wrenches=wrenches, **others)


def bare_calls(robot):
    """The Pinocchio calls of one step: one pass, the Coriolis matrix, and two Jacobians."""
    model, data = robot.model, robot.model.createData()
    q, v = robot.home, np.zeros(robot.nv)
    frames = [model.getFrameId(hand, pin.FrameType.BODY) for hand in HANDS]
    aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED

    def calls():
        pin.computeCoriolisMatrix(model, data, q, v)
        pin.computeAllTerms(model, data, q, v)
        for frame in frames:
            pin.getFrameJacobian(model, data, frame, aligned)

    return calls

"""How good is the model? Record a robot, compare the recording with its URDF, and identify what is wrong.

The simulated robot carries 2 kg and has friction that the model does not have.
"""

import tempfile
from pathlib import Path

import numpy as np

import krang_dynamics as kd
from krang_dynamics.bags.identification.identification import identify
from krang_dynamics.bags.io.joint_state_codec import TYPE, encode
from krang_dynamics.bags.io.writer import BagWriter
from krang_dynamics.bags.validation.filtering import Filtering
from krang_dynamics.bags.validation.validation import validate

RATE = 200.0  # of the joint states [Hz]
DURATION = 20.0  # [s]
NOISE = 0.05  # of the measured torque [N m]
CUTOFF = 10.0  # of the low-pass filter [Hz]

model = kd.load_robot('planar_2r')
friction = {'viscous': {'joint_1': 0.8, 'joint_2': 0.4}}  # [N m s/rad]
real = kd.load_robot('planar_2r', friction=friction).with_payload(
    model.config.end_effectors[0], 2.0, (0, 0, 0)
)


def record(path):
    """Move the real robot along sums of sines; write position, velocity and measured torque as a bag."""
    random = np.random.default_rng(1)
    with BagWriter(path) as bag:
        for t in np.arange(0, DURATION, 1 / RATE):
            w = 2 * np.pi * np.array([0.31, 0.47])  # [rad/s]
            q = model.home + 0.5 * np.sin(w * t) + 0.2 * np.sin(2.7 * w * t)
            v = 0.5 * w * np.cos(w * t) + 0.2 * 2.7 * w * np.cos(2.7 * w * t)
            a = -0.5 * w**2 * np.sin(w * t) - 0.2 * (2.7 * w) ** 2 * np.sin(2.7 * w * t)
            tau = real.inverse_dynamics(q, v, a, friction=True) + NOISE * random.normal(size=2)
            stamp = 1_700_000_000_000_000_000 + round(1e9 * t)  # [ns]
            bag.write('/joint_states', TYPE, encode(model.joint_names, stamp, q, v, tau), stamp)


def show(title, robot, path):
    """RMSE of the whole model, joint by joint."""
    joints = validate(path, robot, filtering=Filtering(CUTOFF)).as_json()['joints']
    errors = {name: f'{levels["friction"]["rmse"]:.3f} N m' for name, levels in joints.items()}
    print(f'{title}: RMSE {errors}')


with tempfile.TemporaryDirectory() as folder:
    bag = Path(folder, 'bag')
    record(bag)
    show('model as given  ', model, bag)
    result = identify([bag], model, filtering=Filtering(CUTOFF))  # on the first half of the recording
    show('model identified', result.robot, bag)

viscous = result.robot.friction.viscous.round(1)
print(f'friction: {viscous} N m at 1 rad/s, real: [0.8, 0.4]')
extra = real.gravity_torque(model.home) - result.robot.gravity_torque(model.home)
print(f'gravity torque: off by {np.abs(extra).max():.3f} N m')

"""Cost as the work grows: joints, terms, rate of the states, controllers on one machine, hours of bag.

`krang bench growth --plot FILE` draws it. It takes about two minutes on an idle machine.
"""

import tempfile
from multiprocessing import get_context
from pathlib import Path

import bags
import numpy as np
import tick

import krang_dynamics as kd
from krang_dynamics.control.terms.term import Term, register_term

JOINTS = (2, 5, 10, 20, 40, 60)
RATES = (100, 200, 500, 1000, 2000)  # [Hz]
CONTROLLERS = (1, 2, 4)
MINUTES = (1, 5, 20, 60)
TERMS = ('gravity', 'friction', 'damping', 'computed_torque', 'joint_limits', 'observer', 'wrench')
LINK = """<link name="link{0}"><inertial><origin xyz="0.05 0 0.02"/><mass value="0.1"/>
<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="joint{0}" type="revolute"><origin xyz="0.1 0 0"/><axis xyz="{1}"/>
<parent link="link{2}"/><child link="link{0}"/>
<limit lower="-3" upper="3" effort="1000" velocity="10"/></joint>"""


def run():
    for count in JOINTS:
        yield cost('joints', count, chain(count), ('gravity', 'friction', 'computed_torque', 'observer'))
    names = (*TERMS, *(spare_term(f'spare_{k}') for k in range(2)))
    krang = kd.load_robot('krang')
    for count in range(1, len(names) + 1):
        yield cost('terms', count, krang, names[:count])
    for rate in RATES:
        us = tick.cold_cost(tick.stepper(krang), rounds=200, period=1 / rate)
        yield {'grows': 'rate Hz', 'size': rate, 'step us': us, 'of a core %': 1e-4 * us * rate}
    for count in CONTROLLERS:
        with get_context('spawn').Pool(count) as pool:
            us = np.median(pool.map(cold_step, range(count), chunksize=1))
        yield {'grows': 'controllers', 'size': count, 'step us': us}
    for minutes in MINUTES:
        with tempfile.TemporaryDirectory() as folder:
            bags.record(Path(folder) / 'bag', 60 * minutes)
            seconds, megabytes = bags.measured(Path(folder) / 'bag', 'validate')
        yield {'grows': 'hours of bag', 'size': minutes / 60, 'seconds': seconds, 'megabytes': megabytes}


def cost(grows, size, robot, terms):
    """A step and its bare calls, interleaved."""
    ours, bare = tick.costs(robot, terms)
    return {'grows': grows, 'size': size, 'step us': ours, 'bare us': bare}


def cold_step(_):
    """Median cost [us] of the steps of one of several controllers at 1 kHz."""
    return tick.cold_cost(tick.stepper(kd.load_robot('krang')))


def chain(count):
    """A robot of `count` equal links whose axes alternate."""
    axes = ('0 0 1', '0 1 0', '1 0 0')
    links = [LINK.format(k) for k in range(count + 1)]
    joints = [JOINT.format(k, axes[k % 3], k - 1) for k in range(1, count + 1)]
    return kd.load_robot(f'<robot name="chain">{"".join(links + joints)}</robot>')


def spare_term(name):
    """A term that adds nothing, as many as are needed."""

    def torque(self, state):
        return np.zeros_like(state.q)

    methods = {'from_settings': classmethod(lambda cls, robot, settings: cls()), 'torque': torque}
    register_term(type(name, (Term,), {'name': name, **methods}))
    return name


def plot(rows, path):
    """One panel per way to grow."""
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(row['grows'] for row in rows))
    figure, axes = plt.subplots(1, len(panels), figsize=(4 * len(panels), 3.2), layout='constrained')
    for axis, panel in zip(axes, panels, strict=True):
        mine = [row for row in rows if row['grows'] == panel]
        for key in ('step us', 'bare us', 'seconds'):
            if key in mine[0]:
                axis.plot([row['size'] for row in mine], [row[key] for row in mine], 'o-', label=key)
        axis.set(xlabel=panel, ylim=(0, None))
        axis.legend()
    figure.savefig(path, dpi=110)

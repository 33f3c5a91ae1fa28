"""Files of config/ for other programs."""

from pathlib import Path
from xml.etree import ElementTree

import krang_dynamics.control.controller  # noqa: F401  registers the terms
from krang_dynamics.control.terms.term import registered_terms
from krang_dynamics.robot.library import load_robot

LAYOUT = Path(__file__).parents[1] / 'config' / 'plotjuggler' / 'krang.xml'


def test_the_layout_of_plotjuggler_names_topics_terms_and_joints_that_exist():
    curves = [curve.get('name').split('/')[1:] for curve in ElementTree.parse(LAYOUT).iter('curve')]
    assert len(curves) > 20
    for *topic, joint, field in curves:
        assert joint in load_robot('krang').joint_names
        assert field in ('position', 'effort')
        assert topic == ['joint_states'] or topic[0] == 'torque_controller'
        if 'terms' in topic:
            assert topic[-1] in registered_terms()

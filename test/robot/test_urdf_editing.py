"""Edits of a URDF change what they name and nothing else."""

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.robot.urdf import Urdf
from krang_dynamics.robot.urdf_editing import UrdfDocument, kinematics_xml

PLANAR = kd.load_robot('planar_2r').urdf


@pytest.fixture
def document():
    return UrdfDocument(PLANAR.text)


def edited(document):
    return Urdf(document.text())


@pytest.mark.parametrize('name', kd.robots())
def test_an_unedited_document_is_the_same_robot(name):
    urdf = kd.load_robot(name).urdf
    again = Urdf(UrdfDocument(urdf.text).text())
    assert kinematics_xml(again) == kinematics_xml(urdf)
    assert Urdf(kinematics_xml(urdf)).links.keys() == urdf.links.keys()


def test_comments_stay():
    text = '<robot name="r"><!-- kept --><link name="a"/></robot>'
    assert '<!-- kept -->' in UrdfDocument(text).text()


def test_a_new_inertia_replaces_the_old_one(document):
    com, inertia = np.array([0.1, 0.2, 0.3]), np.array([[3, 0.1, 0.2], [0.1, 4, 0.3], [0.2, 0.3, 5]])
    document.set_inertia('link_1', 7.0, com, inertia)
    urdf = edited(document)
    assert urdf.links['link_1'].mass == 7.0
    np.testing.assert_array_equal(urdf.links['link_1'].com, com)
    np.testing.assert_array_equal(urdf.links['link_1'].inertia, inertia)
    assert urdf.links['link_2'].mass == PLANAR.links['link_2'].mass
    assert len(document.links['link_1'].findall('inertial')) == 1


def test_scaled_masses_scale_masses_and_inertias_only(document):
    document.scale_masses(2.0)
    urdf = edited(document)
    for name, link in PLANAR.links.items():
        assert urdf.links[name].mass == 2 * link.mass
        np.testing.assert_array_equal(urdf.links[name].com, link.com)
        np.testing.assert_allclose(urdf.links[name].inertia, 2 * link.inertia, rtol=1e-15)


def test_removed_links_take_their_joints_along(document):
    document.remove_links(PLANAR.subtree('link_2'))
    urdf = edited(document)
    assert set(urdf.links) == set(PLANAR.links) - set(PLANAR.subtree('link_2'))
    assert set(urdf.joints) == {'joint_1'}


def test_a_fixed_link_is_part_of_the_body_that_carries_it(document):
    document.add_link('tool')
    document.set_inertia('tool', 1.0, np.zeros(3), np.eye(3))
    document.add_fixed_joint('link_1', 'tool', np.array([0.1, 0.0, 0.2]))
    urdf = edited(document)
    assert urdf.rigid_part('link_1') == ['link_1', 'tool']
    np.testing.assert_array_equal(urdf.joints['tool_fixed'].xyz, [0.1, 0.0, 0.2])
    document.remove_inertia('tool')
    assert edited(document).links['tool'].mass == 0


def test_friction_replaces_dynamics(document):
    document.set_friction('joint_1', 0.5, 0.25)
    document.set_friction('joint_1', 1.5, 0.75)
    joint = edited(document).joints['joint_1']
    assert (joint.viscous, joint.coulomb) == (1.5, 0.75)


def test_whole_kinds_of_elements_can_be_removed():
    document = UrdfDocument('<robot name="r"><gazebo/><link name="a"/><gazebo/><transmission/></robot>')
    document.remove('gazebo', 'transmission')
    assert [element.tag for element in document.robot] == ['link']

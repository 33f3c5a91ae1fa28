"""Small helpers of the tests: random states and comparisons with a named tolerance."""

import numpy as np

EQUATIONS = 1e-9  # relative, what the equations of motion are held to
SMALLEST = 1e-3  # N m, kg m2 or m: below it, what is zero in theory has no size to compare with


def states(count, n, parts=3, reach=2.5):
    """`parts` arrays (count, n), uniform in +-reach, the same at every run."""
    return np.random.default_rng(1).uniform(-reach, reach, (parts, count, n))


def relative_error(actual, expected):
    """Largest difference over all entries, relative to the largest entry of each state."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    axes = tuple(range(1, expected.ndim))
    scale = np.abs(expected).max(axis=axes, initial=SMALLEST)
    return float((np.abs(actual - expected).max(axis=axes, initial=0.0) / scale).max())


def assert_close(actual, expected, tolerance=EQUATIONS):
    """Every state's entries agree, relative to the largest entry of that state."""
    assert np.shape(actual) == np.shape(expected)
    assert relative_error(actual, expected) <= tolerance


def rod_robot(rods):
    """The URDF of hinged uniform rods, no frame at the end; (length [m], mass [kg], effort [N m]) each."""
    parts, parent, end = ['<robot name="rods"><link name="world"/>'], 'world', 0.0
    for i, (length, mass, effort) in enumerate(rods, start=1):
        inertia = mass * length**2 / 12
        parts.append(
            f'<link name="link_{i}"><inertial><origin xyz="0 0 {length / 2}"/><mass value="{mass}"/>'
            f'<inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia / 50}" ixy="0" ixz="0" iyz="0"/>'
            f'</inertial></link><joint name="joint_{i}" type="revolute">'
            f'<parent link="{parent}"/><child link="link_{i}"/>'
            f'<origin xyz="0 0 {end}"/><axis xyz="0 1 0"/>'
            f'<limit effort="{effort}" velocity="5" lower="-3.1" upper="3.1"/></joint>'
        )
        parent, end = f'link_{i}', length
    return ''.join([*parts, '</robot>'])


ROD = rod_robot([(0.8, 2.0, 30.0)])

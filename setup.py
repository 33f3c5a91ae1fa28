"""ament_python package; the PyPI extras replace what a ROS 2 installation provides."""

import re
from pathlib import Path

import numpy
from setuptools import Extension, find_packages, setup

NAME = 'krang_dynamics'
ROS_PACKAGES = 'rclpy[fastrtps] std-srvs ament-index-python ament-package'.split()
ROS_MESSAGES = 'sensor geometry std trajectory diagnostic lifecycle rosgraph nav visualization'.split()


def shared(folder: str) -> list[tuple[str, list[str]]]:
    """All files below `folder`, installed under share/NAME at the same relative path."""
    paths = sorted(p for p in Path(folder).rglob('*') if p.is_file() and '__pycache__' not in p.parts)
    return [(f'share/{NAME}/{path.parent}', [str(path)]) for path in paths]


def wheels(distribution: str) -> list[str]:
    """PyPI names of the packages that are used from a ROS 2 distribution."""
    names = [*ROS_PACKAGES, *(f'{name}-msgs' for name in ROS_MESSAGES)]
    return [f'ros-{distribution}-{name}' for name in names]


def version() -> str:
    """The version in the package's __init__.py, which is read and not imported."""
    found = re.search(r"^__version__ = '(.+)'$", Path(NAME, '__init__.py').read_text(), re.MULTILINE)
    assert found
    return found[1]


setup(
    name=NAME,
    version=version(),
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    # No fused multiply-adds: the same inputs give the same bits on every machine.
    ext_modules=[
        Extension(
            f'{NAME}.kernels',
            sorted(map(str, Path(NAME, 'kernels').glob('*.c'))),
            depends=sorted(map(str, Path(NAME, 'kernels').glob('*.h'))),
            include_dirs=[numpy.get_include()],
            extra_compile_args=['-O3', '-ffp-contract=off'],
        )
    ],
    package_data={NAME: ['py.typed', 'kernels.pyi', 'bags/validation/uplot/*']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        *shared('bench'),
        *shared('config'),
        *shared('launch'),
        *shared('urdf'),
    ],
    python_requires='>=3.10',
    install_requires=['numpy', 'scipy', 'PyYAML', 'ruckig'],
    extras_require={
        'pinocchio': ['pin>=3.9'],
        'ros': wheels('jazzy'),
        'ros-kilted': wheels('kilted'),
        'derivation': ['casadi', 'sympy'],
        'simulation': ['mujoco'],
        'bags': ['rosbags'],
        'campaign': ['bokeh', 'dask[distributed]', 'matplotlib', 'pyarrow', 'rosbags'],
        'peers': ['dartpy', 'drake', 'pybullet'],
        'viewer': ['matplotlib', 'pillow'],
        'page': ['pycollada', 'viser>=1.1,<1.2'],
        'docs': ['furo', 'myst-parser', 'sphinx'],
        'test': [
            'colcon-common-extensions',
            'hypothesis',
            'mypy',
            'pytest',
            'pytest-cov',
            'pytest-rerunfailures',
            'pytest-xdist',
            'ruff',
            'selenium',
            'setuptools<80',  # colcon runs setup.py install
            'types-PyYAML',
        ],
    },
    zip_safe=True,
    maintainer='krang_dynamics developers',
    maintainer_email='krang-dynamics@example.org',
    description='Rigid-body dynamics and torque control of robots, built on Pinocchio and ROS 2',
    license='Apache-2.0',
    entry_points={
        'console_scripts': [
            'krang = krang_dynamics.cli.main:command',
            'torque_controller = krang_dynamics.nodes.torque_controller:main',
            'gravity_compensation = krang_dynamics.nodes.torque_controller:gravity_compensation',
            'computed_torque = krang_dynamics.nodes.torque_controller:computed_torque',
            'wrench_to_torque = krang_dynamics.nodes.torque_controller:wrench_to_torque',
            'torque_guard = krang_dynamics.nodes.torque_guard:main',
            'simulator = krang_dynamics.nodes.simulator:main',
        ]
    },
)

"""GIFs last as long as the motion, move and are small; invalid motions are refused."""

from itertools import pairwise

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.viewer.animation import PERIOD, POSES, SIZE, animate, draw

pytest.importorskip('matplotlib', reason='matplotlib is not installed; pip install matplotlib pillow')
Image = pytest.importorskip('PIL.Image', reason='pillow is not installed')


def swing(robot, seconds):
    times = np.arange(0, seconds, 0.01)
    return times, robot.home + 0.3 * np.sin(np.outer(times, np.linspace(1, 2, robot.nv)))


@pytest.mark.slow
@pytest.mark.parametrize('name', ['krang', 'otbot', 'pendubot', 'planar_2r', 'anthropomorphic'])
def test_a_gif_lasts_as_long_as_the_motion_and_moves(name, tmp_path):
    robot = kd.load_robot(name)
    times, positions = swing(robot, 2.0)
    path = tmp_path / 'motion.gif'
    animate(robot, times, positions, path)
    with Image.open(path) as gif:
        assert gif.size == SIZE
        assert gif.n_frames * PERIOD == pytest.approx(2.0, abs=PERIOD)
        assert gif.info['duration'] == pytest.approx(1000 * PERIOD)
        pictures = []
        for k in range(gif.n_frames):
            gif.seek(k)
            pictures.append(np.asarray(gif.convert('RGB'), dtype=int))
    changes = [np.abs(b - a).max() for a, b in pairwise(pictures)]
    assert min(changes) > 50
    assert path.stat().st_size < 300_000


def test_uneven_times_are_played_in_real_time(tmp_path):
    robot = kd.load_robot('planar_2r')
    times = np.array([5.0, 5.1, 6.4])
    animate(robot, times, np.array([[0, 0], [0.1, 0], [1.4, 0]]), tmp_path / 'steady.gif')
    with Image.open(tmp_path / 'steady.gif') as gif:
        assert gif.n_frames == round(1.4 / PERIOD) + 1


def test_a_picture_shows_some_poses_with_rising_opacity(tmp_path):
    from matplotlib.figure import Figure

    robot = kd.load_robot('krang')
    sheet = Figure()
    axes = sheet.add_subplot()
    draw(axes, robot, swing(robot, 3.0)[1])
    poses = [c for c in axes.collections if type(c).__name__ == 'PolyCollection']
    assert len(poses) == POSES
    opacities = [pose.get_alpha() for pose in poses]
    assert opacities == sorted(opacities)
    assert opacities[-1] == 1
    trails = {line.get_label(): line for line in axes.lines if line.get_label() in robot.config.end_effectors}
    assert set(trails) == {'left_hand', 'right_hand'}
    assert len(trails['left_hand'].get_xdata()) == 300
    sheet.savefig(tmp_path / 'krang.png')


@pytest.mark.parametrize(
    ('times', 'positions', 'words'),
    [
        ([0, 1], np.zeros((2, 3)), 'positions'),
        ([0, 1, 2], np.zeros((2, 2)), 'times'),
        ([1, 0], np.zeros((2, 2)), 'rise'),
        ([], np.zeros((0, 2)), 'empty'),
        ([0, 1], [[0, 0], [np.nan, 0]], 'positions'),
    ],
)
def test_an_invalid_motion_is_refused(times, positions, words, tmp_path):
    with pytest.raises(kd.KrangError, match=words):
        animate(kd.load_robot('planar_2r'), times, positions, tmp_path / 'x.gif')


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    robot = kd.load_robot('planar_2r')
    with pytest.raises(kd.KrangError, match='nowhere'):
        animate(robot, *swing(robot, 0.2), tmp_path / 'nowhere' / 'x.gif')

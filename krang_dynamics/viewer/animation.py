"""The motion of a robot as one picture or as an animated GIF."""

from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array, array
from ..bags.io.files import writing
from ..colours import TRAILS
from ..errors import InputError, KrangError
from ..robot.model import Robot
from .figure import Figure

PERIOD = 0.07  # of the frames of an animation [s]; a GIF stores hundredths
FINER = 4  # points of a trail per frame
SIZE = (420, 360)  # of an animation [pixels]
COLOURS = 64  # of an animation
POSES = 6  # in one picture
INK, FLOOR = '#1a1a20', '#dcdce2'


def draw(axes: Any, robot: Robot, positions: Array) -> None:
    """Draw a motion into matplotlib axes: POSES rows of `positions` [rad, m], the last one opaque."""
    motion = _motion(robot, positions)
    figure = Figure(robot, motion)
    _prepare(axes, figure)
    shown = np.unique(np.linspace(0, len(motion) - 1, POSES).round().astype(int))
    for row, opacity in zip(shown, np.linspace(0, 1, len(shown) + 1)[1:], strict=True):
        _Pose(axes, figure, robot, 0.1 + 0.9 * opacity**3).show(motion[row])
    for frame, colour in zip(robot.config.end_effectors, TRAILS, strict=False):
        axes.plot(*figure.trail(frame, motion).T, color=colour, lw=1.5, label=frame)


def animate(robot: Robot, times: Array, positions: Array, file: str | Path) -> None:
    """Write a GIF in real time: rising `times` [s], and a row of `positions` [rad, m] for each."""
    motion = _motion(robot, positions)
    t = array('times', times, (len(motion),))
    if (np.diff(t) < 0).any():
        raise InputError('times decrease; they must rise')
    fine = np.arange(t[0], t[-1] + PERIOD / 2, PERIOD / FINER)
    path = np.column_stack([np.interp(fine, t, column) for column in motion.T])
    first, *others = _pictures(robot, path)
    with writing(file):
        first.save(file, 'GIF', save_all=True, append_images=others, duration=round(1000 * PERIOD), loop=0)


def _motion(robot: Robot, positions: Array) -> Array:
    rows = np.shape(positions)[0] if np.ndim(positions) == 2 else 1
    if not rows:
        raise InputError('positions is empty; give at least one row')
    return array('positions', positions, (rows, robot.nv))


def _pictures(robot: Robot, path: Array) -> list[Any]:
    """Images of rows 0, FINER, 2 FINER, ..."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Sheet
        from PIL import Image
    except ImportError as error:
        raise KrangError(f'{error.name} is not installed; run `pip install matplotlib pillow`') from None
    sheet = Sheet(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100)
    canvas, axes = FigureCanvasAgg(sheet), sheet.add_axes((0, 0, 1, 1))
    figure = Figure(robot, path)
    _prepare(axes, figure)
    canvas.draw()
    ground = canvas.copy_from_bbox(sheet.bbox)
    trails = [figure.trail(frame, path) for frame in robot.config.end_effectors]
    lines = [axes.plot([], [], color=c, lw=1.5)[0] for _, c in zip(trails, TRAILS, strict=False)]
    pose = _Pose(axes, figure, robot, 1.0)
    clock = axes.text(0.03, 0.03, '', transform=axes.transAxes, color=INK)
    images: list[Any] = []
    for row in range(0, len(path), FINER):
        clock.set_text(f'{row / FINER * PERIOD:.1f} s')
        for line, trail in zip(lines, trails, strict=False):
            line.set_data(*trail[: row + 1].T)
        pose.show(path[row])
        canvas.restore_region(ground)
        for artist in (*lines, *pose.artists, clock):
            axes.draw_artist(artist)
        images.append(Image.frombytes('RGBA', SIZE, bytes(canvas.buffer_rgba())).convert('RGB'))
    palette = images[-1].quantize(COLOURS)  # of the last frame, which shows the whole trails
    return [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]


def _prepare(axes: Any, figure: Figure) -> None:
    """Draw the ground, fix the limits and hide the axes."""
    from matplotlib.collections import LineCollection

    figure.widen(axes.bbox.width / axes.bbox.height)
    axes.add_collection(LineCollection(figure.floor(), colors=FLOOR, lw=0.8, zorder=0), autolim=False)
    axes.set(xlim=(figure.low[0], figure.high[0]), ylim=(figure.low[1], figure.high[1]), aspect='equal')
    axes.set_axis_off()


class _Pose:
    """Shapes, sticks, joints and end effectors of one pose, with an opacity from 0 to 1."""

    def __init__(self, axes: Any, figure: Figure, robot: Robot, opacity: float) -> None:
        from matplotlib.collections import LineCollection, PolyCollection

        self._figure, self._hands = figure, robot.config.end_effectors
        look: dict[str, Any] = {'alpha': opacity, 'zorder': 2}
        self._solids = PolyCollection([], edgecolors=INK, lw=0.4, **look)
        self._sticks = LineCollection([], colors=INK, lw=1.2, **look)
        for collection in (self._solids, self._sticks):
            axes.add_collection(collection, autolim=False)
        (self._joints,) = axes.plot([], [], 'o', ms=2.5, color=INK, **look)
        colours = zip(self._hands, TRAILS, strict=False)
        self._ends = [axes.plot([], [], 'o', ms=5, color=colour, **look)[0] for _, colour in colours]
        self.artists = [self._solids, self._sticks, self._joints, *self._ends]

    def show(self, q: Array) -> None:
        """Move the artists to the pose q."""
        solids, origins = self._figure.polygons(q), self._figure.origins(q)
        self._solids.set_verts([outline for outline, _ in solids])
        self._solids.set_facecolor([colour for _, colour in solids])
        self._sticks.set_segments(self._figure.sticks(q))
        self._joints.set_data(*np.array(list(origins.values())).T)
        for end, hand in zip(self._ends, self._hands, strict=False):
            end.set_data(*origins[hand].reshape(2, 1))

"""A recording as the source of the page: time slider, speed, and the moments to look at."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from .. import colours
from ..bags.observed_robot import Snapshot
from ..bags.replay.recorded_controller import RecordedController
from ..bags.validation.validation import Validation
from .charts import Chart

SPEEDS = ('0.1', '0.25', '0.5', '1', '2', '5', '10')
WORST = 3  # moments of each joint, the largest errors first
MOST_MOMENTS = 40
LEAD = 1.0  # shown before a moment [s]


@dataclass(frozen=True)
class Moment:
    """A time of the recording [s] to look at, and the reason."""

    time: float
    text: str
    is_fault: bool = False


class Playback:
    """Snapshots by the time of the recording, which advances while it plays."""

    is_live = False

    def __init__(
        self,
        snapshots: Sequence[Snapshot],
        controller: RecordedController,
        start: int,
        validation: Validation | None = None,
        problem: str = '',
    ) -> None:
        self.controller, self.problem = controller.name, ''
        self._snapshots = snapshots
        self._times = np.array([snapshot.time for snapshot in snapshots])
        self.duration = float(self._times[-1])  # [s]
        self.validation, self.model_problem = validation, problem
        self.time, self.speed, self.is_playing = 0.0, 1.0, True
        self._polled_at = monotonic()
        self.moments = sorted(_moments(controller, start, validation), key=lambda moment: moment.time)

    def poll(self) -> Snapshot:
        """The snapshot of now."""
        now = monotonic()
        if self.is_playing:
            self.time += self.speed * (now - self._polled_at)
            if self.time >= self.duration:
                self.time, self.is_playing = self.duration, False
        self._polled_at = now
        row = min(int(np.searchsorted(self._times, self.time)), len(self._times) - 1)
        return self._snapshots[row]

    def jump(self, time: float) -> None:
        self.time = min(max(time, 0.0), self.duration)


class PlaybackControls:
    """Play, speed, time and moments in one operator's browser; all browsers show the same time."""

    def __init__(self, client: Any, playback: Playback) -> None:
        self._playback = playback
        gui = client.gui
        with gui.add_folder('Recording', order=5):
            self._play = gui.add_button('Pause')
            self._play.on_click(lambda _: self._toggle())
            speed = gui.add_dropdown('speed', SPEEDS, initial_value='1')
            speed.on_update(lambda _: setattr(playback, 'speed', float(speed.value)))
            end = round(playback.duration, 2)
            faults = {min(moment.time, end): 'fault' for moment in playback.moments if moment.is_fault}
            marks = tuple({0.0: '0', end: f'{end:g}', **faults}.items())
            self._slider = gui.add_slider('time [s]', 0.0, end, 0.01, 0.0, marks=marks)
            self._slider.on_update(self._move)
            if playback.moments:
                choices = [f'{moment.time:.2f} s: {moment.text}' for moment in playback.moments]
                moments = gui.add_dropdown('jump to', ('-', *choices))
                moments.on_update(lambda _: self._jump(choices, str(moments.value)))

    def show(self) -> None:
        """Follow the time of the recording."""
        label = 'Pause' if self._playback.is_playing else 'Play'
        if self._play.label != label:
            self._play.label = label
        if abs(self._slider.value - self._playback.time) > 0.05:
            self._slider.value = round(self._playback.time, 2)

    def _toggle(self) -> None:
        playback = self._playback
        if not playback.is_playing and playback.time >= playback.duration:
            playback.jump(0.0)
        playback.is_playing = not playback.is_playing

    def _move(self, event: Any) -> None:
        if event.client_id is not None:  # in a browser, not by show()
            self._playback.jump(float(self._slider.value))

    def _jump(self, choices: list[str], chosen: str) -> None:
        if chosen in choices:
            self._playback.jump(self._playback.moments[choices.index(chosen)].time - LEAD)


class ModelCharts:
    """Measured against predicted torque of one joint over the whole recording."""

    def __init__(self, gui: Any, tab: Any, validation: Validation) -> None:
        self._validation = validation
        self._torque = Chart(gui, tab, 'torque', 1, height=220)
        self._residual = Chart(gui, tab, 'residual', 2)
        self.show(next(iter(validation.joints)))

    def show(self, joint: str) -> None:
        series, j = self._validation.series, self._validation.names.index(joint)
        measured, predicted = series.measured[:, j], series.predicted['friction'][:, j]
        fit = self._validation.joints[joint]['friction']
        self._torque.title = f'{joint}: measured and predicted torque [N m]'
        self._residual.title = f'{joint}: residual [N m], RMSE {fit.rmse:.3g}'
        curves = {
            'measured': measured,
            'whole model': predicted,
            'gravity only': series.predicted['gravity'][:, j],
        }
        self._torque.draw(series.t, curves, (colours.MEASURED, colours.PREDICTED, colours.GRAVITY))
        self._residual.draw(series.t, {'residual': measured - predicted}, (colours.PREDICTED,))


def choose_joint(
    gui: Any, names: Sequence[str], chosen: Callable[[str], None], label: str, order: int
) -> None:
    """A list of joints in an operator's browser."""
    dropdown = gui.add_dropdown(label, tuple(names), order=order)
    dropdown.on_update(lambda _: chosen(str(dropdown.value)))


def _moments(controller: RecordedController, start: int, validation: Validation | None) -> list[Moment]:
    faults = [
        Moment((record.time - start) * 1e-9, f'fault {record.state.fault}', True)
        for record in controller.faults
    ]
    if validation is None:
        return faults
    worst = [
        (abs(error), Moment(time, f'{joint}: error of {error:.3g} N m'))
        for joint, errors in validation.worst.items()
        for time, error in errors[:WORST]
    ]
    worst.sort(key=lambda entry: -entry[0])
    return [*faults, *(moment for _, moment in worst[:MOST_MOMENTS])]

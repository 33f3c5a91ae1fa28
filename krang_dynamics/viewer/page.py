"""The page: scene, charts, table and state, in any number of browsers."""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from time import monotonic, sleep
from typing import Any, Protocol

import numpy as np

from ..arrays import Array
from ..bags.observed_robot import Snapshot
from ..control.node_state import NodeState
from ..errors import InputError
from ..robot.model import Robot
from .access import Access, is_local, stored_token
from .charts import Charts
from .controls import Actions, Controls, HandTargets
from .playback import ModelCharts, Playback, PlaybackControls, choose_joint
from .scene import RobotScene
from .web_server import start_server
from .words import charts_html, joints_html, legend_html, parameters_html, state_html, text_html

PERIOD = 1 / 30  # of the scene [s]
PER_CHART = 6  # frames between two drawings of charts and tables
# The camera's first position, relative to the size of the robot; one that drives needs room.
OBLIQUE, FROM_ABOVE = (1.35, -1.25, 0.55), (5.5, -5.2, 5.1)
LEFT, RIGHT = 350, 375  # widths of the panels [pixels]
JUMP = 1.0  # in the time of a recording that ends the trails [s]


class RobotSource(Actions, Protocol):
    """A running robot: its snapshots, and what an operator can ask of it."""

    controller: str  # full name of the controller's node; empty while it is not known
    problem: str  # why there is none
    is_live: bool  # running nodes, not a recording

    def poll(self) -> Snapshot: ...


class Page:
    """A web page that shows a robot. Operators, whose address has the token, can also control it."""

    _state: Any
    _joints: Any
    _hint: Any

    def __init__(
        self, robot: Robot, source: RobotSource | Playback, host: str, port: int, allow: bool
    ) -> None:
        if not 0 <= port < 65536:
            raise InputError(f'--port is {port}; it must be within 0 .. 65535')
        self._robot, self._source = robot, source
        token = stored_token() if allow or is_local(host) else None
        try:
            self.server = start_server(host, port, Access(host, token), f'{robot.name} · krang')
        except OSError as error:
            raise InputError(
                f'{host}:{port} cannot be used: {error}; give another --host or --port'
            ) from None
        shown = 'localhost' if is_local(host) or host in ('0.0.0.0', '::') else host
        self.url = f'http://{shown}:{self.server.get_port()}/' + (f'{token}/' if token else '')
        self._snapshot: Snapshot | None = None
        self._frame = 0
        self._errors: set[str] = set()
        self._parameters_of: NodeState | None = None
        self._controls: dict[int, Callable[[Snapshot], None]] = {}  # by browser: how its controls follow
        with self.server.atomic():
            self.scene = RobotScene(self.server.scene, robot)
            self._look_at_robot()
            self._add_panels()
        self.server.on_client_connect(self._connect)
        self.server.on_client_disconnect(self._disconnect)

    def run(self, is_over: Callable[[], bool]) -> None:
        """Follow the source until is_over(), at most 30 times per second."""
        while not is_over():
            start = monotonic()
            try:
                self.show(self._source.poll())
            except Exception as error:  # of any kind: one bad message must not end the page
                self._report(error)
            sleep(max(0.001, PERIOD - (monotonic() - start)))

    def close(self) -> None:
        with redirect_stdout(StringIO()):  # viser prints that it has stopped
            self.server.stop()

    def show(self, snapshot: Snapshot) -> None:
        """Draw one frame."""
        if self._snapshot is not None and not 0 <= snapshot.time - self._snapshot.time < JUMP:
            self.scene.clear_trails()
        self._snapshot = snapshot
        limits = self._limits(snapshot)
        self._charts.add(snapshot, snapshot.reports.get(self._source.controller))
        with self.server.atomic():
            self.scene.show(snapshot)
            if self._frame % PER_CHART == 0:
                self.scene.tint(snapshot.torque / np.where(limits > 0, limits, np.inf))
                self._show_texts(snapshot, limits)
            if self._frame % PER_CHART == PER_CHART // 2:
                self._charts.draw(limits)
        self._frame += 1
        for show in list(self._controls.values()):
            show(snapshot)

    def _report(self, error: Exception) -> None:
        """Print an error, each kind once."""
        kind = type(error).__name__
        if kind not in self._errors:
            self._errors.add(kind)
            print(f'krang: the page cannot show a message: {kind}: {error}', file=sys.stderr, flush=True)

    def _show_texts(self, snapshot: Snapshot, limits: Array) -> None:
        source = self._source
        for handle, html in (
            (self._state, state_html(snapshot, source.controller, source.problem, source.is_live)),
            (self._joints, joints_html(self._robot, snapshot, limits)),
            (self._hint, charts_html(snapshot)),
        ):
            if handle.content != html:
                handle.content = html
        if snapshot.controller is not self._parameters_of:
            self._parameters_of = snapshot.controller
            self._parameters.content = parameters_html(snapshot.controller)

    def _limits(self, snapshot: Snapshot) -> Array:
        """Effort limits in force [N m]; before a controller is known, those of the URDF."""
        state = snapshot.controller
        effort = [] if state is None else state.limits.get('effort', [])
        if len(effort) == self._robot.nv:
            return np.array([np.inf if x is None else x for x in effort], float)
        return np.array([self._robot.urdf.joints[name].effort for name in self._robot.joint_names])

    # -- layout ------------------------------------------------------------------------------------------

    def _look_at_robot(self) -> None:
        camera, middle, size = self.server.initial_camera, self.scene.middle, self.scene.size
        drives = self._robot.config.odom is not None
        camera.look_at = middle
        camera.position = middle + size * np.array(FROM_ABOVE if drives else OBLIQUE)
        camera.fov = np.radians(45)

    def _add_panels(self) -> None:
        gui = self.server.gui
        gui.main_panel.dock_right()
        gui.main_panel.set_width(RIGHT)
        panel = gui.add_panel()
        with panel.add_tab('Charts') as tab:
            self._charts = Charts(gui, tab, self._robot)
            self._hint = gui.add_html('', order=0)
        self._model = self._add_model(gui, panel)
        with panel.add_tab('Parameters'):
            self._parameters = gui.add_html(parameters_html(None))
        with panel.add_tab('Legend'):
            gui.add_html(legend_html(self.scene.ends))
        panel.dock_left()
        panel.set_width(LEFT)
        self._state = gui.add_html(text_html('Waiting for the robot.'), order=0)
        self._joints = gui.add_html('', order=20)
        if self.scene.problems:
            gui.add_html(text_html('Not shown:', *self.scene.problems), order=30)

    def _add_model(self, gui: Any, panel: Any) -> ModelCharts | None:
        """Measured against predicted torque, where the source is a recording."""
        if not isinstance(self._source, Playback):
            return None
        tab = panel.add_tab('Model')
        if self._source.validation is not None:
            return ModelCharts(gui, tab, self._source.validation)
        with tab:
            gui.add_html(text_html(self._source.model_problem))
        return None

    def _connect(self, client: Any) -> None:
        """An operator's browser; those of observers never get here, as nothing is received from them."""
        client.gui.set_panel_label(f'{self._robot.name} · operator')
        source, charts, joints = self._source, self._charts, self._robot.joint_names
        if isinstance(source, Playback):
            playback = PlaybackControls(client, source)
            self._controls[client.client_id] = lambda snapshot: playback.show()
            if self._model is not None and source.validation is not None:
                choose_joint(client.gui, list(source.validation.joints), self._model.show, 'model chart', 10)
        else:
            source.operate()
            controls = Controls(client, self._robot, source)
            targets = HandTargets(client, self._robot, source, self.scene.size)

            def show(snapshot: Snapshot) -> None:
                controls.show(snapshot.controller)
                targets.show(snapshot)

            self._controls[client.client_id] = show
        automatic = 'most loaded joint'
        choose_joint(
            client.gui, (automatic, *joints), lambda name: setattr(charts, 'joint', name), 'torque chart', 11
        )

    def _disconnect(self, client: Any) -> None:
        self._controls.pop(client.client_id, None)

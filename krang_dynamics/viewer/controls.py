"""Controls in one operator's browser: buttons, which ask for confirmation, sliders, and handles of hands."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..bags.observed_robot import Snapshot
from ..control.node_state import NodeState
from ..robot.model import Robot

Then = Callable[[bool, str], None]  # takes whether a request has succeeded, and the answer in words

HEAVIEST = 20.0  # of the slider [kg]
TILT = 30.0  # largest of the sliders [deg]
GAINS = {  # name: largest, step, meaning
    'gains.bandwidth': (60.0, 0.1, 'bandwidth [rad/s]'),
    'gains.damping_ratio': (2.0, 0.01, 'damping ratio'),
    'friction.scale': (1.5, 0.01, 'friction scale'),
}
TERM = 'cartesian_impedance'  # that follows targets of hands
SIZE = 0.15  # of the handle of a hand, relative to the robot
QUESTIONS = {
    'enable': 'The motors get torque. Is everyone out of reach of the robot?',
    'disable': 'The stop policy runs: the robot is held, or lowered until it is at rest.',
    'clear fault': 'Has the cause of the fault been removed? Clearing does not enable the robot.',
    'release': 'Torque goes to zero from any mode: an arm without brakes or support FALLS.',
    'release emergency stop': 'Is the danger over?',
}


class Actions(Protocol):
    """What an operator can ask of a running robot; the answers come later, in any thread."""

    @property
    def hands(self) -> Collection[str]: ...  # for which the controller takes targets
    def operate(self) -> None: ...  # comes first: until then nothing can be published
    def press_emergency_stop(self) -> None: ...
    def release_emergency_stop(self, then: Then) -> None: ...
    def enable(self, on: bool, then: Then) -> None: ...
    def clear_fault(self, then: Then) -> None: ...
    def release(self, then: Then) -> None: ...
    def set_parameters(self, values: Mapping[str, Any], then: Then) -> None: ...
    def move_hand(self, frame: str, position: Array, quaternion: Array) -> None: ...  # [m], x y z w


class Controls:
    """The controls of one browser."""

    def __init__(self, client: Any, robot: Robot, actions: Actions) -> None:
        self._client, self._robot, self._actions = client, robot, actions
        gui = client.gui
        with gui.add_folder('Operate', order=5):
            stop = gui.add_button('EMERGENCY STOP', color='red', icon='hand-stop')
            stop.on_click(lambda _: self._press_stop())
            for name, act in (
                ('enable', partial(actions.enable, True)),
                ('disable', partial(actions.enable, False)),
                ('clear fault', actions.clear_fault),
                ('release', actions.release),
            ):
                self._add_button(gui, name, act)
            self._release_stop = self._add_button(
                gui, 'release emergency stop', actions.release_emergency_stop
            )
            self._release_stop.visible = False
        self._sliders = gui.add_folder('Adjust', order=9, expand_by_default=False)
        self._state: NodeState | None = None
        self._handles: dict[str, Any] = {}

    def show(self, state: NodeState | None) -> None:
        """Set the sliders to the values in force."""
        if state is None or state is self._state:
            return
        self._state = state
        pressed = state.fault is not None and state.fault.kind == 'emergency_stop'
        if self._release_stop.visible != pressed:
            self._release_stop.visible = pressed
        for name, (largest, step, label) in GAINS.items():
            value = state.parameters.get(name)
            if isinstance(value, (int, float)):
                self._show_slider(name, label, 0.0, largest, step, float(value))
        for frame in self._robot.config.end_effectors:
            mass = float(state.parameters.get(f'payload.{frame}.mass') or 0.0)
            self._show_slider(f'payload.{frame}.mass', f'payload of {frame} [kg]', 0.0, HEAVIEST, 0.1, mass)
        if len(state.gravity) == 3 and any(state.gravity):
            for axis, angle in zip('xy', tilt_of(np.array(state.gravity)), strict=True):
                self._show_slider(f'tilt {axis}', f'base tilt about {axis} [deg]', -TILT, TILT, 0.5, angle)

    def _add_button(self, gui: Any, name: str, act: Callable[[Then], None]) -> Any:
        button = gui.add_button(name.capitalize())
        button.on_click(lambda _: self._confirm(name, act))
        return button

    def _confirm(self, name: str, act: Callable[[Then], None]) -> None:
        """Ask in this browser alone."""
        gui = self._client.gui
        modal = gui.add_modal(f'{name.capitalize()}?')
        with modal:
            gui.add_markdown(QUESTIONS[name])
            yes = gui.add_button(f'Yes, {name}', color='red')
            no = gui.add_button('No')

        def confirmed(_: Any) -> None:
            modal.close()
            act(partial(self._tell, name))

        yes.on_click(confirmed)
        no.on_click(lambda _: modal.close())

    def _press_stop(self) -> None:
        self._actions.press_emergency_stop()
        self._tell('emergency stop', True, 'pressed')

    def _tell(self, name: str, success: bool, answer: str) -> None:
        title = name.capitalize() if success else f'{name.capitalize()} was refused'
        self._client.add_notification(
            title, answer, color='green' if success else 'red', auto_close_seconds=5 if success else 15
        )

    # -- sliders -----------------------------------------------------------------------------------------

    def _show_slider(self, name: str, label: str, low: float, high: float, step: float, value: float) -> None:
        value = round(value, 2)
        if name in self._handles:
            slider = self._handles[name]
            value = min(max(value, slider.min), slider.max)
            if abs(slider.value - value) > step / 2:
                slider.value = value
            return
        with self._sliders:
            low, high = min(low, value), max(high, value)
            slider = self._client.gui.add_slider(label, low, high, step, value)
        slider.on_update(lambda event: self._change(name, event.client_id))
        self._handles[name] = slider

    def _change(self, name: str, client: int | None) -> None:
        """Set the parameter of a slider that was moved in a browser; only refusals are shown."""
        if client is None:
            return
        value = float(self._handles[name].value)
        values: dict[str, Any] = {name: value}
        if name.startswith('tilt') and self._state is not None:
            tilts = [float(self._handles[f'tilt {axis}'].value) for axis in 'xy']
            size = float(np.linalg.norm(self._state.gravity))
            values = {'gravity': gravity_at(tilts[0], tilts[1], size).tolist()}
        self._actions.set_parameters(values, partial(self._check, name))

    def _check(self, name: str, success: bool, reason: str) -> None:
        if success:
            return
        self._tell(name, False, reason)
        state, self._state = self._state, None
        self.show(state)  # back to the value in force


class HandTargets:
    """One handle per hand in one operator's browser, while the controller follows targets.

    A hand gets its target when the handle is released, not while it is dragged.
    """

    def __init__(self, client: Any, robot: Robot, actions: Actions, size: float) -> None:
        self._scene, self._robot, self._actions, self._size = client.scene, robot, actions, SIZE * size
        self._switch = client.gui.add_checkbox('drag hands', False, order=8, visible=False)
        self._handles: dict[str, Any] = {}

    def show(self, snapshot: Snapshot) -> None:
        """Offer the hands of a controller that moves; their handles begin where the hands are."""
        state = snapshot.controller
        follows = state is not None and state.mode == 'active' and TERM in state.parameters.get('terms', ())
        hands = self._actions.hands if follows and np.isfinite(snapshot.q).all() else ()
        if self._switch.visible != bool(hands):
            self._switch.visible = bool(hands)
        shown = hands if self._switch.value else ()
        for frame in set(self._handles) - set(shown):
            self._handles.pop(frame).remove()
        for frame in set(shown) - set(self._handles):
            pose = self._robot.frame_pose(snapshot.q, frame)
            turn = pin.Quaternion(pose[:3, :3])
            handle = self._scene.add_transform_controls(
                f'/target/{frame}', self._size, depth_test=False, position=pose[:3, 3],
                wxyz=(turn.w, turn.x, turn.y, turn.z),
            )  # fmt: skip
            handle.on_update(partial(self._move, frame))
            self._handles[frame] = handle

    def _move(self, frame: str, event: Any) -> None:
        if event.phase == 'end' and frame in self._handles:
            w, x, y, z = event.target.wxyz / np.linalg.norm(event.target.wxyz)
            self._actions.move_hand(frame, np.array(event.target.position), np.array([x, y, z, w]))


def tilt_of(gravity: Array) -> tuple[float, float]:
    """Rotations of the base about x, then y [deg], that give this gravity in its axes."""
    x, y, z = gravity / np.linalg.norm(gravity)
    return float(np.degrees(np.arctan2(-y, -z))), float(np.degrees(np.arcsin(np.clip(x, -1, 1))))


def gravity_at(about_x: float, about_y: float, size: float) -> Array:
    """Gravity [m/s2] in the axes of a base with these rotations [deg]."""
    a, b = np.radians([about_x, about_y])
    return size * np.array([np.sin(b), -np.cos(b) * np.sin(a), -np.cos(b) * np.cos(a)])

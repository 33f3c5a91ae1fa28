"""Handles at the robot's hands that an operator drags to where they should go."""

from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

from ..bags.observed_robot import Snapshot
from ..robot.model import Robot
from .controls import Actions

TERM = 'cartesian_impedance'  # that follows targets
SIZE = 0.15  # of a handle, relative to the robot


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

"""Joint friction, [krang] eq. 17: Gamma_f = diag(v) F_v + diag(sign v) F_c."""

from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from .config import FrictionConfig


class Friction:
    """Friction torque Gamma_f(v) [N m], on the side of A a + C v + Q."""

    def __init__(self, config: FrictionConfig, joint_names: Sequence[str]) -> None:
        self.viscous = np.array([config.viscous.get(name, 0.0) for name in joint_names])
        self.coulomb = np.array([config.coulomb.get(name, 0.0) for name in joint_names])
        self.sign = config.sign
        # tanh(v) = 2 / (1 + exp(-2 v)) - 1, the smooth sign of the source.
        self._sign = np.tanh if config.sign == 'smooth' else np.sign

    def torque(self, v: Array) -> Array:
        """Gamma_f(v) [N m], v in rad/s."""
        torque = self._sign(v)
        torque *= self.coulomb
        torque += self.viscous * v
        return np.asarray(torque)

    def slope(self, v: Array) -> Array:
        """dGamma_f/dv [N m s/rad]; the exact sign has slope 0, also at v = 0."""
        if self.sign == 'smooth':
            return np.asarray(self.viscous + self.coulomb * (1 - np.tanh(v) ** 2))
        return self.viscous.copy()

"""Joint friction, [krang] eq. 17: Gamma_f = diag(v) F_v + diag(sign v) F_c, and what it lacks."""

from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..kernels import friction
from .config import FrictionConfig

WIDTH, STRIBECK_SPEED = 1.0, 0.1  # of joints that the robot file does not name [rad/s]


class Friction:
    """Friction torque Gamma_f [N m], on the side of A a + C v + Q; Q [N m] is needed if it has a load."""

    def __init__(self, config: FrictionConfig, joint_names: Sequence[str]) -> None:
        def values(entries: dict[str, float], default: float = 0.0) -> Array:
            return np.array([entries.get(name, default) for name in joint_names])

        self.viscous = values(config.viscous)
        self.coulomb = values(config.coulomb)
        self.width = values(config.width, WIDTH)
        self.stribeck = values(config.stribeck)
        self.stribeck_speed = values(config.stribeck_speed, STRIBECK_SPEED)
        self.offset = values(config.offset)
        self.sign = config.sign
        self.has_offset = bool(self.offset.any())
        self.load = values(config.load)
        self.has_load = bool(self.load.any())
        self._is_smooth = config.sign == 'smooth'
        parts = (self.viscous, self.coulomb, self.width, self.stribeck, self.stribeck_speed, self.offset)
        self._table = np.array(parts)

    def torque(self, v: Array, Q: Array | None = None) -> Array:
        """Gamma_f(v, Q) [N m], v in rad/s; without Q that of a joint without load."""
        # tanh(v) = 2 / (1 + exp(-2 v)) - 1, the smooth sign of the source.
        torque = friction(v, self._table, self._is_smooth)
        return torque + self._loaded(Q) * np.tanh(v / self.width) if self.has_load else torque

    def slope(self, v: Array, Q: Array | None = None) -> Array:
        """dGamma_f/dv [N m s/rad]; the exact sign has slope 0, also at v = 0."""
        if self.sign != 'smooth':
            return self.viscous.copy()
        sign, x = np.tanh(v / self.width), v / self.stribeck_speed
        falling = self.stribeck * np.exp(-(x**2)) * -2 * x / self.stribeck_speed
        dry = self.coulomb + self.stribeck * np.exp(-(x**2)) + self._loaded(Q)
        return np.asarray(self.viscous + dry * (1 - sign**2) / self.width + falling * sign)

    def load_slope(self, v: Array, Q: Array) -> Array:
        """dGamma_f/dQ [1]."""
        return np.asarray(self.load * np.sign(Q) * np.tanh(v / self.width))

    def _loaded(self, Q: Array | None) -> Array:
        """Coulomb friction by load [N m]."""
        return self.load * (0.0 if Q is None else np.abs(Q))

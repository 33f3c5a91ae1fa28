"""A rigid body that the robot carries at a frame."""

from dataclasses import dataclass

import numpy as np

from ..arrays import Array, array
from ..errors import InputError


@dataclass(frozen=True)
class Payload:
    """Mass [kg], centre of mass [m] and inertia there [kg m2], in the axes of `frame`."""

    frame: str
    mass: float
    com: Array
    inertia: Array

    @classmethod
    def checked(cls, frame: str, mass: float, com: object, inertia: object) -> 'Payload':
        mass = float(array('mass', mass, ()))
        if mass < 0:
            raise InputError(f'mass is {mass} kg; it must be 0 kg or more')
        matrix = array('inertia', inertia, (3, 3))
        if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12):
            raise InputError(f'inertia is {matrix.tolist()}; it must be symmetric')
        moments = np.linalg.eigvalsh(matrix)
        if moments[0] < -1e-12 or moments[2] - moments[1] > moments[0] * (1 + 1e-9) + 1e-12:
            raise InputError(
                f'inertia has principal moments {moments.tolist()} kg m2; each must be 0 or more, '
                'and at most the sum of the other two'
            )
        return cls(frame, mass, array('com', com, (3,)), matrix)

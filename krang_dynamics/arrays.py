"""Array types, and checks of shape and finiteness where values enter the package."""

from collections.abc import Sequence
from math import sqrt
from typing import cast

import numpy as np
import numpy.typing as npt

from .errors import InputError

try:
    from .kernels import are_vectors
    from .kernels import is_finite as is_finite
except ImportError as error:  # sources that were not installed, or not since an update
    raise ImportError(
        f'the C extension of krang_dynamics is not built ({error}); '
        'run make setup, pip install or colcon build'
    ) from error

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

FLOAT64 = np.dtype(np.float64)


def array(what: str, value: object, shape: tuple[int, ...]) -> Array:
    """`value` as a finite, C-contiguous float64 array of the given shape.

    Contiguity makes results bit-identical: the memory layout determines the order of sums.
    """
    try:
        x = np.asarray(value)
        if x.dtype.kind not in 'fiu':
            raise TypeError
        x = np.asarray(x, FLOAT64, order='C')
    except (TypeError, ValueError):
        raise InputError(f'{what} is {value!r}; it must be {_numbers(shape)}') from None
    if x.shape != shape:
        raise InputError(f'{what} has shape {x.shape}; it must be {_numbers(shape)}')
    if not np.isfinite(x).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0])
        raise InputError(f'{what}{list(where) if where else ""} is {x[where]}; it must be finite')
    return x


def any_true(mask: Mask) -> bool:
    """mask.any(), in a tenth of the time for the masks of a few joints."""
    return 1 in mask.tobytes()


def norm(x: Array) -> float:
    """Euclidean norm; NaN or infinite if a number is not finite."""
    return sqrt(x.dot(x))


def joint_vector(what: str, value: object, names: Sequence[str], shape: tuple[int]) -> Array:
    """One finite number per joint of `names`, whose count is `shape`."""
    if are_vectors(shape[0], value):
        return cast(Array, value)
    try:
        return array(what, value, shape)
    except InputError as error:
        raise InputError(f'{error}, one per joint: {", ".join(names)}') from None


def _numbers(shape: tuple[int, ...]) -> str:
    if not shape:
        return 'one number'
    return f'{" x ".join(map(str, shape))} numbers'


def consecutive(rows: Indices) -> Indices | slice:
    """The same rows as a slice, where they are consecutive: it needs no memory and less time."""
    if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def short_way(angle: Array, continuous: Mask) -> Array:
    """Angles of continuous joints within [-pi, pi) [rad], other coordinates unchanged."""
    if not any_true(continuous & (np.abs(angle) >= np.pi)):
        return angle
    return np.where(continuous, np.remainder(angle + np.pi, 2 * np.pi) - np.pi, angle)

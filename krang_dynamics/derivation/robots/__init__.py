"""Symbolic frames of robots as in their sources; a robot without an entry is derived from its URDF."""

from collections.abc import Callable

from ..engine import Engine
from ..frames import FrameTree
from . import anthropomorphic, krang, otbot, pendubot, planar_2r

SYMBOLIC: dict[str, Callable[[Engine], FrameTree]] = {
    'krang': krang.frames,
    'krang_exact_sign': krang.frames,
    'otbot': otbot.frames,
    'pendubot': pendubot.frames,
    'pendubot_station_7': lambda engine: pendubot.frames(engine, 'station_7'),
    'pendubot_station_9': lambda engine: pendubot.frames(engine, 'station_9'),
    'planar_2r': planar_2r.frames,
    'anthropomorphic': anthropomorphic.frames,
}

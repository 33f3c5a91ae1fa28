"""The five references by the robots' names."""

from reference import anthropomorphic, krang, otbot, pendubot, planar_2r

REFERENCE = {
    'krang': krang,
    'otbot': otbot,
    'pendubot': pendubot,
    'planar_2r': planar_2r,
    'anthropomorphic': anthropomorphic,
}

"""The derivation of the largest robot within a bound of memory."""

import subprocess
import sys


def test_krang_derives_whole_within_500_megabytes():
    # On Linux a child inherits ru_maxrss from the test runner; VmHWM does not have this problem.
    code = (
        'from pathlib import Path; from krang_dynamics.derivation.engine import CasadiEngine\n'
        'from krang_dynamics.derivation.equations import derive\n'
        'from krang_dynamics.derivation.robots.krang import frames\n'
        'equations = derive(frames(CasadiEngine())); assert equations.C.shape == (17, 17)\n'
        'print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stdout) < 500_000

"""README.md: its Python runs, its robots are the shipped ones, its picture is small."""

import re
from pathlib import Path

import numpy as np

import krang_dynamics as kd

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / 'README.md'
LARGEST_PICTURE = 1_000_000  # [bytes]


def test_the_python_of_the_readme_runs_and_the_arm_stays_where_it_is(capsys):
    (code,) = re.findall(r'```python\n(.*?)```', README.read_text(), flags=re.DOTALL)
    assert len(code.splitlines()) <= 22
    exec(compile(code, str(README), 'exec'), names := {})
    assert 'krang' in capsys.readouterr().out
    assert np.abs(names['plant'].q - names['arm'].home).max() < 1e-6


def test_the_robots_of_the_readme_are_the_shipped_ones():
    table = README.read_text().partition('## Robots\n')[2].partition('\n## ')[0]
    rows = [line.split('|')[1] for line in table.splitlines() if line.startswith('| `')]
    assert sorted(re.findall(r'`(\w+)`', ' '.join(rows))) == kd.robots()


def test_pictures_are_small():
    pictures = re.findall(r'!\[[^\]]+\]\(([^)]+)\)', README.read_text())
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < LARGEST_PICTURE

"""docs/identification.md: its commands and its program run as they are printed, and give its figures."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from krang_dynamics.cli.main import main

PAGE = (Path(__file__).resolve().parents[1] / 'docs' / 'identification.md').read_text()


def run(command):
    """One command of krang, as it is in the page."""
    (line,) = re.findall(rf'^{command}.*$', PAGE, flags=re.MULTILINE)
    assert main(shlex.split(line)[1:]) == 0


@pytest.mark.long
def test_the_page_leads_to_the_true_parameters(tmp_path, monkeypatch, capsys):
    pytest.importorskip('rosbags', reason='rosbags is not installed')
    monkeypatch.chdir(tmp_path)
    run('krang excite planar_2r')
    (code,) = re.findall(r'```python\n(.*?)```', PAGE, flags=re.DOTALL)
    exec(compile(code, 'identification.md', 'exec'), {})
    run('krang import run.csv')
    run('krang validate run --robot planar_2r')
    assert 'the residual looks like 0.51 kg more than the model' in capsys.readouterr().out
    run('krang identify run --robot')
    found = yaml.safe_load(Path('better.yaml').read_text())
    assert found['friction']['coulomb']['joint_1'] == pytest.approx(2.0, abs=0.01)
    assert found['friction']['viscous']['joint_1'] == pytest.approx(0.8, abs=0.01)
    run('krang validate run --robot better.yaml')
    assert capsys.readouterr().out.count('good\n') == 2

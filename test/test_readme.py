"""What the README says works when pasted."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / 'README.md'


def test_the_python_of_the_readme_runs(capsys):
    (code,) = re.findall(r'```python\n(.*?)```', README.read_text(), flags=re.DOTALL)
    exec(compile(code, str(README), 'exec'), {})
    assert 'krang' in capsys.readouterr().out


def test_links_lead_somewhere():
    for target in re.findall(r'\]\(([^)#]+)\)', README.read_text()):
        assert (README.parent / target).exists()

"""The pages name files, tests, commands and make targets that exist."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from launching import defaults

from krang_dynamics.cli.main import _parser, main

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob('*.md'), *(ROOT / 'docs').glob('*.md')])
PACKAGE_FOLDERS = {path.name for path in (ROOT / 'krang_dynamics').iterdir() if path.is_dir()}
ROOT_FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}
PLACEHOLDER = re.compile(r'[<*]|NAME|NN_')


def name_of(path):
    return str(path.relative_to(ROOT))


def file_of(reference):
    """The file that `folder/module.py` means: in the repository, or in the package."""
    folder = reference.split('/')[0]
    return ROOT / reference if folder in ROOT_FOLDERS else ROOT / 'krang_dynamics' / reference


@pytest.mark.parametrize('page', PAGES, ids=name_of)
def test_links_lead_to_files(page):
    for target in re.findall(r'\]\(([^)#:]+)(?:#[^)]*)?\)', page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize('page', PAGES, ids=name_of)
def test_files_named_in_a_page_exist(page):
    for reference in re.findall(r'`([\w./<>*-]+/[\w./<>*-]*)`', page.read_text()):
        known = reference.split('/')[0] in ROOT_FOLDERS | PACKAGE_FOLDERS
        if known and not PLACEHOLDER.search(reference):
            assert file_of(reference).exists(), reference


@pytest.mark.parametrize('page', PAGES, ids=name_of)
def test_make_targets_named_in_a_page_exist(page):
    targets = set(re.findall(r'^([a-z0-9-]+):', (ROOT / 'Makefile').read_text(), flags=re.MULTILINE))
    text = '\n'.join(re.findall(r'`[^`]+`', page.read_text().replace('```', '`')))
    assert set(re.findall(r'\bmake ([a-z][a-z0-9-]*)', text)) <= targets


@pytest.mark.parametrize('page', PAGES, ids=name_of)
def test_commands_of_krang_named_in_a_page_exist(page, capsys):
    with pytest.raises(SystemExit):
        main(['--help'])
    listed = set(re.findall(r'^ +([a-z]+) ', capsys.readouterr().out, flags=re.MULTILINE))
    text = '\n'.join(re.findall(r'`[^`]+`', page.read_text().replace('```', '`')))
    assert set(re.findall(r'(?:^|`|\$ )krang ([a-z]+)', text, flags=re.MULTILINE)) <= listed


def commands(page, program):
    """The words of every command of a program in the blocks of a page, as a shell reads them."""
    blocks = re.findall(r'^```(\w*)\n(.*?)^```$', page.read_text(), flags=re.DOTALL | re.MULTILINE)
    shell = '\n'.join(block for language, block in blocks if language in ('', 'sh'))
    lines = [line for line in shell.splitlines() if line.startswith(f'{program} ')]
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.mark.parametrize('page', PAGES, ids=name_of)
def test_every_command_of_krang_in_a_page_has_valid_arguments(page):
    for words in commands(page, 'krang'):
        assert _parser(words).parse_args(words).run


def test_the_pages_have_commands():
    assert len(commands(ROOT / 'README.md', 'krang')) > 10
    assert any(commands(page, 'ros2') for page in PAGES)


@pytest.mark.parametrize('page', PAGES, ids=name_of)
def test_every_launch_in_a_page_has_declared_arguments(page):
    for words in commands(page, 'ros2'):
        if words[:2] == ['launch', 'krang_dynamics']:
            declared = defaults(ROOT / 'launch' / words[2])
            assert {word.partition(':=')[0] for word in words[3:]} <= set(declared)


@pytest.mark.parametrize('page', PAGES, ids=name_of)
def test_python_in_a_page_compiles(page):
    for code in re.findall(r'```python\n(.*?)```', page.read_text(), flags=re.DOTALL):
        compile(code, str(page), 'exec')


def test_every_misprint_has_the_test_that_the_page_names():
    text = (ROOT / 'docs' / 'equations.md').read_text().partition('# Misprints')[2]
    named = [
        name for row in text.splitlines() if row.startswith('|') for name in re.findall(r'`(\w{20,})`', row)
    ]
    tests = (ROOT / 'test' / 'derivation' / 'test_misprints.py').read_text()
    assert len(named) > 20
    for name in named:
        assert f'def test_{name}(' in tests


def test_the_functions_named_beside_a_file_of_the_derivation_exist():
    """docs/equations.md writes `file.py` `function`, `function` ..."""
    text = (ROOT / 'docs' / 'equations.md').read_text().partition('# Misprints')[0]
    for file, names in re.findall(r'`((?:robots/)?\w+\.py)`((?:,? `\w+`)+)', text):
        source = next(
            p for p in (ROOT / 'krang_dynamics' / f / file for f in ('derivation', 'robot')) if p.exists()
        )
        for name in re.findall(r'\w+', names):
            assert re.search(rf'\b{name}\b', source.read_text()), f'{file} has no {name}'


@pytest.mark.parametrize('file', ['.pre-commit-config.yaml', '.github/workflows/ci.yaml'])
def test_configuration_of_the_tools_is_yaml(file):
    assert yaml.safe_load((ROOT / file).read_text())

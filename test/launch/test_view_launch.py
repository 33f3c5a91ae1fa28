"""view.launch.py: the process that it starts."""

import pytest
from launching import Launch, Loaded, defaults, launch_file, needs_launch

pytestmark = pytest.mark.processes

VIEW = launch_file('view')


def test_it_declares_its_arguments_with_defaults_and_descriptions():
    assert defaults(VIEW) == {
        'robot': 'krang',
        'node': '',
        'host': 'localhost',
        'port': '8080',
        'allow_control': 'false',
        'enclave': '',
    }


@needs_launch
def test_it_starts_one_process():
    assert len(Loaded(VIEW, robot='planar_2r', port='8490').nodes()) == 1


@needs_launch
@pytest.mark.parametrize(
    ('arguments', 'enclave'),
    [
        ({}, 'operator'),
        ({'host': '0.0.0.0'}, 'observer'),
        ({'host': '0.0.0.0', 'allow_control': 'true'}, 'operator'),
    ],
)
def test_a_page_that_is_read_only_is_an_observer(arguments, enclave):
    (page,) = Loaded(VIEW, enclave='/lab', **arguments).nodes().values()
    assert page.words[page.words.index('--enclave') + 1] == f'/lab/{enclave}'


@needs_launch
def test_it_prints_the_address_of_the_page(ros, environment):
    launched = Launch(ros, environment, VIEW, robot='planar_2r', port='8490')
    ros.until(lambda: 'http://localhost:8490/' in launched.log, 'the address of the page')

"""The registry of terms: by name, from inside and outside the package."""

import numpy as np
import pytest
from harness import Harness, robot_named

from krang_dynamics.control.parameters import Parameter
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms import term as registry
from krang_dynamics.control.terms.term import Term, build_terms, register_term, registered_terms
from krang_dynamics.errors import InputError, KrangError
from krang_dynamics.safety.modes import Fault

NUDGE = Parameter('nudge.size', 'per_joint', 0.25, 'torque of the term nudge', 'N m', -5, 5, live=True)
SHIPPED = {
    'balance', 'computed_torque', 'damping', 'friction', 'gravity', 'joint_limits', 'observer',
    'rolling_base', 'wrench',
}  # fmt: skip


@pytest.fixture
def nudge():
    """A term from outside the package, registered for one test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, '_registry', registered_terms())

        @register_term
        class Nudge(Term):
            name = 'nudge'
            parameters = (NUDGE,)

            def __init__(self, size):
                self.size = size

            @classmethod
            def from_settings(cls, robot, settings):
                return cls(settings.per_joint('nudge.size', robot))

            def adopt(self, other):
                self.size = other.size

            def torque(self, state):
                return self.size * np.ones(state.q.shape)

        yield Nudge


def test_the_terms_of_the_package_are_registered():
    assert set(registered_terms()) >= SHIPPED


def test_terms_are_built_in_the_order_of_their_names():
    names = ('damping', 'gravity', 'observer')
    terms = build_terms(robot_named('planar_2r'), Settings(terms=names))
    assert tuple(term.name for term in terms) == names


@pytest.mark.parametrize(('names', 'word'), [((), 'at least one'), (('gravity', 'gravity'), 'once')])
def test_no_term_and_a_term_twice_are_refused(names, word):
    with pytest.raises(KrangError, match=word):
        build_terms(robot_named('planar_2r'), Settings(terms=names))


def test_an_unknown_term_is_refused_with_a_suggestion():
    with pytest.raises(KrangError, match="unknown term 'gravty'; did you mean 'gravity'"):
        build_terms(robot_named('planar_2r'), Settings(terms=('gravty',)))


def test_a_term_from_outside_runs_by_name_and_has_its_own_parameter(nudge):
    assert Settings.parameters()['nudge.size'] is NUDGE
    assert 'nudge' in Settings.parameters()['terms'].description
    loop = Harness(terms=('gravity', 'nudge'), nudge_size=[1.0, 0.5]).start()
    np.testing.assert_array_equal(loop.outputs.terms['nudge'], [1.0, 0.5])
    expected = loop.robot.gravity_torque(loop.q) + np.array([1.0, 0.5])
    np.testing.assert_allclose(loop.outputs.torque, expected)
    outputs = loop.step(settings=loop.settings.replace(nudge_size=2.0))
    assert outputs.refused == []
    np.testing.assert_array_equal(outputs.terms['nudge'], [2.0, 2.0])
    with pytest.raises(InputError, match=r'nudge\.size is 9\.0; it must be within -5 \.\. 5'):
        Settings(nudge_size=9.0)


def test_a_term_from_outside_changes_nothing_that_does_not_use_it(nudge):
    with_term = Harness().start().outputs.torque
    registry._registry.pop('nudge')
    assert 'nudge.size' not in Settings.parameters()
    with pytest.raises(InputError, match='nudge_size'):
        Settings(nudge_size=1.0)
    np.testing.assert_array_equal(Harness().start().outputs.torque, with_term)
    assert set(registered_terms()) >= SHIPPED


def test_two_terms_of_one_name_are_refused(nudge):
    with pytest.raises(InputError, match="term 'nudge' is registered already"):

        @register_term
        class Other(Term):
            name = 'nudge'

    assert registered_terms()['nudge'] is nudge


def test_the_same_term_may_be_registered_again_as_when_its_module_is_reloaded(nudge):
    assert register_term(nudge) is nudge


@pytest.mark.parametrize('name', ['', 'two words', 'a.b', '1st'])
def test_a_name_that_is_no_word_is_refused(name):
    with pytest.raises(InputError, match='it must be a word'):
        register_term(type('Odd', (Term,), {'name': name}))


def test_a_class_without_a_name_is_refused():
    with pytest.raises(InputError, match='Nameless: name is'):
        register_term(type('Nameless', (Term,), {}))


@pytest.mark.parametrize('missing', ['from_settings', 'torque'])
def test_a_class_without_its_duties_cannot_be_built(missing):
    duties = {
        'from_settings': classmethod(lambda cls, robot, settings: cls()),
        'torque': lambda self, state: 0,
    }
    del duties[missing]
    with pytest.raises(TypeError, match=missing):
        type('Half', (Term,), {'name': 'half', **duties})()


def test_a_term_without_more_takes_no_samples_and_has_no_fault(nudge):
    term = nudge(1.0)
    assert term.take(3.0, 0.0) == 'nudge takes no float'
    assert term.fault() is None
    assert (term.external, term.contact) == (None, 'none')
    assert term.reset() is None


@pytest.mark.slow
def test_a_fault_of_a_term_stops_the_controller(nudge):
    loop = Harness(terms=('gravity', 'nudge')).start()
    loop.controller.terms[1].fault = lambda: Fault('nudged', 'too much')
    assert str(loop.step().fault) == 'nudged: too much'
    loop.stop()

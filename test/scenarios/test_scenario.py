"""Scenarios: events happen in order at their times; a result passes up to its bound."""

from types import SimpleNamespace

import numpy as np

from krang_dynamics.scenarios.scenario import Criterion, Result, Scenario


def test_a_result_passes_up_to_its_bound_and_never_without_a_number():
    assert Result('x', 1.0, 1.0, 'rad').passed
    assert not Result('x', 1.0 + 1e-9, 1.0, 'rad').passed
    assert not Result('x', np.nan, 1.0, 'rad').passed
    assert not Result('x', np.inf, 1.0, 'rad').passed


def test_only_parts_that_end_within_the_record_are_evaluated():
    early = Criterion('early', lambda _: 1.0, 2.0, 's', 1.0)
    late = Criterion('late', lambda _: 3.0, 2.0, 's', 5.0)
    scenario = Scenario((), 5.0, [], [early, late])
    assert scenario.evaluate(SimpleNamespace(times=[0.95])) == [Result('early', 1.0, 2.0, 's')]
    assert [r.passed for r in scenario.evaluate(SimpleNamespace(times=[5.0]))] == [True, False]


def test_events_happen_in_order_at_their_times():
    happened, shown = [], []
    operator = SimpleNamespace(now=0.0)

    def step():
        operator.now += 0.25

    operator.step = step
    events = [(t, lambda o, t=t: happened.append((t, o.now))) for t in (0.6, 0.3, 0.3, 2.0)]
    Scenario((), 5.0, events, []).play(operator, 1.0, shown.append)
    assert happened == [(0.3, 0.5), (0.3, 0.5), (0.6, 0.75)]
    assert shown == [0.25, 0.5, 0.75, 1.0]

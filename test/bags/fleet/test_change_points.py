"""Change points: steps and ramps in noise, and no false alarm."""

import numpy as np
import pytest

from krang_dynamics.bags.fleet.change_points import find_changes

TIMES = np.arange(60.0)


def noise(seed):
    return np.random.default_rng(seed).normal(0, 1, len(TIMES))


@pytest.mark.parametrize('seed', range(5))
def test_a_step_is_found_where_it_is(seed):
    (change,) = find_changes(TIMES, 10 + noise(seed) + 5 * (TIMES >= 40))
    assert change.index == pytest.approx(40, abs=2)
    assert (change.before, change.after) == pytest.approx((10, 15), abs=0.8)


def test_a_ramp_is_found_where_it_begins():
    (change,) = find_changes(TIMES, 10 + 0.3 * noise(1) + 0.2 * np.maximum(0, TIMES - 30))
    assert change.kind == 'ramp'
    assert change.index == pytest.approx(30, abs=3)
    assert change.relative == pytest.approx(0.58, abs=0.1)


def test_noise_is_no_change():
    assert not [seed for seed in range(60) if find_changes(TIMES, noise(seed))]
    assert find_changes(TIMES[:5], np.arange(5.0)) == []
    assert find_changes(TIMES, np.ones(60)) == []


@pytest.mark.parametrize('levels', [(10, 15, 10), (10, 15, 20), (15, 10, 20)])
def test_two_steps_are_found_where_they_are(levels):
    values = np.select([TIMES < 20, TIMES < 35], levels[:2], levels[2]) + noise(4)
    changes = find_changes(TIMES, values)
    assert [change.index for change in changes] == [pytest.approx(20, abs=1), pytest.approx(35, abs=1)]
    found = [(change.before, change.after) for change in changes]
    assert np.array(found) == pytest.approx(np.array([levels[:2], levels[1:]]), abs=0.8)

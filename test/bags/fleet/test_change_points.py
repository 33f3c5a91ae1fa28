"""Change points: steps, ramps and odd recordings in noise, and no false alarm."""

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


def test_odd_recordings_are_named_and_hide_nothing():
    values = 0.1 * noise(2) + np.where(TIMES >= 30, 5.0, 0.0)
    values[[10, 40, 41]] += 80
    odd, step, pair = find_changes(TIMES, values)
    assert (odd.kind, odd.index, odd.last) == ('odd', 10, 10)
    assert (pair.kind, pair.index, pair.last) == ('odd', 40, 41)
    assert pair.after - pair.before == pytest.approx(80, abs=0.5)
    assert (step.kind, step.index, step.after) == ('step', 30, pytest.approx(5, abs=0.2))


def test_a_series_can_have_any_number_of_changes():
    on_and_off = np.where(TIMES % 20 < 10, 0.0, 8.0)
    assert [c.index for c in find_changes(TIMES, on_and_off + noise(3))] == [10, 20, 30, 40, 50]
    step_and_ramp = 3.0 * (TIMES >= 20) + 0.5 * np.maximum(0, TIMES - 40)
    step, ramp = find_changes(TIMES, 10 + step_and_ramp + 0.2 * noise(4))
    assert (step.kind, step.index, step.relative) == ('step', 20, pytest.approx(0.3, abs=0.02))
    assert (ramp.kind, ramp.index, ramp.after) == (
        'ramp',
        pytest.approx(40, abs=2),
        pytest.approx(22.5, abs=0.5),
    )


def test_a_ramp_may_end():
    changes = find_changes(TIMES, np.clip(TIMES - 20, 0, 15) + 0.3 * noise(5))
    assert (changes[0].kind, changes[0].index) == ('ramp', pytest.approx(20, abs=2))
    assert changes[-1].after == pytest.approx(15, abs=0.3)


def test_changes_of_a_long_series_are_found_in_a_short_time():
    times = np.arange(20_000.0)
    values = np.random.default_rng(6).normal(0, 1, len(times)) + np.where(times >= 7777, 5.0, 0.0)
    (change,) = find_changes(times, values)
    assert change.index == pytest.approx(7777, abs=20_000 / 150)

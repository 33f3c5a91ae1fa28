"""A generated fleet: the table, its findings, and what happens to broken bags."""

import os
import shutil
from dataclasses import replace
from time import perf_counter
from unittest.mock import Mock

import numpy as np
import pytest
from bags.bagging import motion, record_model, torques
from bags.fleet.fleet_bags import DAY, FIRST, NOISE, SINCE, with_friction, write_bag, write_fleet

pytest.importorskip('pyarrow', reason='pyarrow is not installed')
pytest.importorskip('distributed', reason='dask.distributed is not installed')

import pyarrow.parquet

import krang_dynamics as kd
from krang_dynamics.bags.fleet import bag_figures, fleet_table
from krang_dynamics.bags.fleet.bag_figures import JointRow
from krang_dynamics.bags.fleet.change_points import Change
from krang_dynamics.bags.fleet.fleet_report import fleet_html, fleet_text
from krang_dynamics.bags.fleet.fleet_table import (
    Finding,
    Fleet,
    find_bags,
    load_models,
    load_store,
    machine_of,
    update,
)
from krang_dynamics.errors import KrangError

EXPECTED = {
    ('krang-2', 'right_3', 'friction'),
    ('anthropomorphic-1', 'joint_2', 'friction'),
    ('planar_2r-2', 'tip', 'load'),
}


def read(folder, store):
    return update(find_bags([str(folder)]), load_models(None), str(store), cutoff=5.0, workers=2)


def in_this_process(function, items, workers, scheduler=None):
    return map(function, items)


def found(fleet):
    return {(finding.machine, finding.joint, finding.metric) for finding in fleet.findings()}


def test_it_names_what_has_changed_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_table, 'on_cluster', in_this_process)
    machines = ('planar_2r-1', 'planar_2r-2', 'anthropomorphic-1')
    write_fleet(tmp_path / 'bags', 12, duration=6.0, rate=50.0, machines=machines)
    (tmp_path / 'bags' / 'planar_2r-1' / 'broken.mcap').write_bytes(b'no bag')
    cut = tmp_path / 'bags' / 'planar_2r-1' / 'bag_0003' / 'bag_0003.mcap'
    cut.write_bytes(cut.read_bytes()[:-100])
    fleet = read(tmp_path / 'bags', tmp_path / 'store.parquet')
    assert found(fleet) == {change for change in EXPECTED if change[0] in machines}
    assert fleet.damaged == {str(cut.parent): 'bag_0003.mcap: its end is missing'}
    assert 'used without its damaged part' in fleet_text(fleet)
    assert [row.path.rpartition('/')[2] for row in fleet.broken] == ['broken.mcap']
    load = next(finding for finding in fleet.findings() if finding.metric == 'load')
    assert load.since == FIRST + round(12 * SINCE) * DAY
    assert load.change.after == pytest.approx(0.8, abs=0.05)
    assert 'hand tip of planar_2r-2: load +0.8' in fleet_text(fleet)
    assert 'broken.mcap' in fleet_html(fleet)

    # Nothing is read twice, except what has changed.
    read_now = []
    monkeypatch.setattr(
        fleet_table,
        'on_cluster',
        lambda f, items, *_: (read_now.append(task.path) or f(task) for task in items),
    )
    shutil.copytree(tmp_path / 'bags/planar_2r-1/bag_0000', tmp_path / 'bags/planar_2r-1/bag_0099')
    again = read(tmp_path / 'bags', tmp_path / 'store.parquet')
    assert [path.rpartition('/')[2] for path in read_now] == ['bag_0099']
    assert found(again) == found(fleet)


def test_another_rate_of_the_states_is_no_change_of_the_robot(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_table, 'on_cluster', in_this_process)
    for rate, first in ((50.0, 0), (200.0, 10)):
        write_fleet(tmp_path / 'bags', 10, 4.0, rate, ['planar_2r-1'], first)
    fleet = read(tmp_path / 'bags', tmp_path / 'store.parquet')
    assert {round(row.rate, -1) for row in fleet.rows if not row.error} == {50.0, 200.0}
    assert found(fleet) == set()


def test_a_bag_is_read_again_when_its_model_or_the_filter_is_another(tmp_path, monkeypatch):
    read_now = []
    monkeypatch.setattr(
        fleet_table,
        'on_cluster',
        lambda f, items, *_: (read_now.append(task.robot) or f(task) for task in items),
    )
    write_fleet(tmp_path / 'bags', 1, 4.0, 50.0, ['planar_2r-1'])
    (tmp_path / 'bags' / 'planar_2r-1').rename(tmp_path / 'bags' / 'old_arm')
    bags, store = find_bags([str(tmp_path / 'bags')]), str(tmp_path / 'store.parquet')
    (broken,) = update(bags, load_models(None), store, 5.0, 1).broken
    assert "'old_arm'" in broken.error
    fleet = update(bags, {'old*': 'planar_2r'}, store, 5.0, 1)
    assert not fleet.broken
    update(bags, {'old*': 'planar_2r'}, store, 5.0, 1)
    update(bags, {'old*': 'planar_2r'}, store, 4.0, 1)
    assert read_now == ['old_arm', 'planar_2r', 'planar_2r']


def test_the_machine_is_the_nearest_folder_that_matches():
    assert machine_of('/data/krang-2/2026-03/run_1', ['krang*']) == 'krang-2'
    assert machine_of('/data/lab/run_1', ['krang*']) == 'lab'


@pytest.mark.parametrize(
    ('name', 'robot'),
    [
        ('krang', 'krang'),
        ('krang-2', 'krang'),
        ('krang_2', 'krang'),
        ('pendubot_station_7-1', 'pendubot_station_7'),
        ('planar_2r_calibration', 'runs'),
    ],
)
def test_a_shipped_robot_has_a_number_or_a_name_after_a_hyphen(name, robot):
    assert fleet_table._task(f'/data/{name}/runs/run_1', load_models(None), 5.0).robot == robot


def test_robot_files_are_sought_beside_the_list(tmp_path):
    (tmp_path / 'arm.yaml').write_text('extends: planar_2r\n')
    (tmp_path / 'machines.yaml').write_text('arm-*: arm.yaml\nkrang-*: krang\n')
    models = load_models(str(tmp_path / 'machines.yaml'))
    assert models == {'arm-*': str(tmp_path / 'arm.yaml'), 'krang-*': 'krang'}
    (tmp_path / 'machines.yaml').write_text('arm-*: leg.yaml\n')
    with pytest.raises(KrangError, match=r'leg\.yaml'):
        load_models(str(tmp_path / 'machines.yaml'))


def test_a_name_that_is_not_utf_8_does_no_harm(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_table, 'on_cluster', in_this_process)
    write_fleet(tmp_path / 'bags', 1, 4.0, 50.0, ['planar_2r-1'])
    (bag,) = (tmp_path / 'bags' / 'planar_2r-1').iterdir()
    bag.rename(os.fsdecode(os.fsencode(bag) + b'\xff'))
    fleet = read(tmp_path / 'bags', tmp_path / 'store.parquet')
    assert {row.path.endswith('\\udcff') for row in fleet.rows} == {True}


def test_a_store_may_be_a_link(tmp_path):
    (tmp_path / 'folder').mkdir()
    (tmp_path / 'store.parquet').symlink_to(tmp_path / 'folder' / 'real.parquet')
    fleet_table.save_store(str(tmp_path / 'store.parquet'), [])
    assert (tmp_path / 'store.parquet').is_symlink()
    assert load_store(str(tmp_path / 'folder' / 'real.parquet')) == []
    assert [path.name for path in (tmp_path / 'folder').iterdir()] == ['real.parquet']


@pytest.mark.parametrize(('after', 'doubted'), [(-0.16, True), (0.16, False)])
def test_a_negative_load_may_be_an_offset_of_a_position(after, doubted):
    finding = Finding('anthropomorphic-1', 'tool', 'load', FIRST, Change(5, 0.0, after, 'step'))
    assert ('or a position has an offset' in str(finding)) == doubted


def test_a_store_that_is_damaged_or_of_another_kind_is_refused(tmp_path):
    store = str(tmp_path / 'store.parquet')
    fleet_table.save_store(store, [JointRow('bag', 1, 1, 'krang-1', 1, 'waist', rmse=1.0)])
    whole = pyarrow.parquet.read_table(store)
    (tmp_path / 'text').write_text('no table')
    (tmp_path / 'empty').touch()
    (tmp_path / 'cut').write_bytes((tmp_path / 'store.parquet').read_bytes()[:-20])
    for column, values in (('path', [None]), ('rmse', ['much']), ('frictions', [[1.0]]), ('other', [1])):
        table = pyarrow.table(whole.to_pydict() | {column: values})
        pyarrow.parquet.write_table(table, tmp_path / f'{column} is wrong')
    for path in set(tmp_path.iterdir()) - {tmp_path / 'store.parquet'}:
        with pytest.raises(KrangError, match='is no table of krang fleet'):
            fleet_table.load_store(str(path))


def write_krang(folder, day, factor=1.0, frequency=0.1):
    """A bag of krang-1, with another friction of left_3 than its model, and another speed of the motion."""
    robot = with_friction(kd.load_robot('krang'), 'left_3', factor)
    t, q, v, a = motion(robot, 6.0, 50.0, frequency=frequency)
    tau = torques(robot, q, v, a) + np.random.default_rng(day).normal(0, NOISE, q.shape)
    write_bag(folder / 'krang-1' / f'bag_{day:04d}', robot.joint_names, t, q, v, tau, FIRST + day * DAY)


@pytest.mark.parametrize('factor', [1.0, 1.5])
def test_friction_does_not_depend_on_the_speed_of_the_motion(tmp_path, monkeypatch, factor):
    monkeypatch.setattr(fleet_table, 'on_cluster', in_this_process)
    for day in range(10):
        late = day >= 5
        write_krang(tmp_path / 'bags', day, factor if late else 1.0, frequency=0.2 if late else 0.08)
    findings = read(tmp_path / 'bags', tmp_path / 'store.parquet').findings()
    assert [f.joint for f in findings] == ['left_3'] * (factor != 1)
    assert all(f.change.relative == pytest.approx(factor - 1, abs=0.02) for f in findings)


def test_figures_that_a_recording_does_not_determine_are_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_table, 'on_cluster', in_this_process)
    write_fleet(tmp_path / 'bags', 1, 6.0, 50.0, ['planar_2r-1'])
    robot = kd.load_robot('planar_2r')
    t, q, v, a = motion(robot, 6.0, 50.0, reach=0.0)
    tau = torques(robot, q, v, a) + np.random.default_rng(1).normal(0, NOISE, q.shape)
    still = tmp_path / 'bags' / 'planar_2r-1' / 'still'
    write_bag(still, robot.joint_names, t, q, v, tau, FIRST + DAY // 2)
    fleet = read(tmp_path / 'bags', tmp_path / 'store.parquet')
    rows = [row for row in fleet.rows if row.path == str(still)]
    assert not np.isfinite([(row.load, row.friction, row.offset) for row in rows]).any()
    assert [line[3] for line in fleet.weeks()] == ['2', '2', '2']  # bags; the figures are those of the other
    assert [line[4:7].count('-') for line in fleet.weeks()] == [1, 1, 2]


def fleet_of(hands='hand', **figures):
    """A fleet of one joint and one hand with a recording per day; the joint carries `hands`."""
    rows = []
    for name in ('arm', 'hand'):
        own = {k: v for k, v in figures.items() if (k == 'load') == (name == 'hand')}
        for day in range(20):
            values = {metric: float(series[day]) for metric, series in own.items()}
            row = JointRow('', 0, 0, 'krang-1', FIRST + day * DAY, name, torque=10.0, rate=100.0, speed=1.0)
            rows.append(replace(row, path=str(day), hands=hands, **values))
    return Fleet(rows)


@pytest.mark.parametrize(
    ('since', 'size', 'hands', 'expected'),
    [
        (12, 2.0, 'left_hand,hand', ['load']),
        (12, 2.0, 'left_hand', ['load', 'offset']),  # the load is at another arm
        (12, 20.0, 'hand', ['load', 'offset']),
        (5, 2.0, 'hand', ['load', 'offset']),
    ],
)
def test_a_load_explains_an_offset_of_its_time_size_and_arm(since, size, hands, expected):
    days = np.arange(20)
    noise = np.random.default_rng(1).normal(0, 0.01, (2, 20))
    fleet = fleet_of(
        load=noise[0] + 0.8 * (days >= 12), offset=noise[1] + size * (days >= since), hands=hands
    )
    assert [finding.metric for finding in fleet.findings()] == expected


def test_an_odd_recording_is_named_with_its_day():
    load = np.random.default_rng(1).normal(0, 0.01, 20)
    load[4] = 0.8
    (finding,) = fleet_of(load=load).findings()
    assert 'hand hand of krang-1: load +0.8 kg on 2026-03-05 only' in str(finding)


def test_links_and_pipes_do_no_harm(tmp_path):
    real = tmp_path / 'real' / 'bag'
    record_model(real.parent / 'bag', kd.load_robot('planar_2r'), duration=1.0)
    place = tmp_path / 'robots [1]'
    place.mkdir()
    (place / 'planar_2r-7').symlink_to(real.parent)
    (place / 'planar_2r-8').symlink_to(real.parent)
    (place / 'loop').symlink_to(place)
    (place / 'nowhere').symlink_to('dead')
    os.mkfifo(place / 'pipe.mcap')
    (bag,) = find_bags([str(place), str(tmp_path / 'real')])
    assert bag == str(place / 'planar_2r-7' / 'bag')
    assert machine_of(bag, ['planar_2r*']) == 'planar_2r-7'
    (place / 'lost.mcap').symlink_to('dead')
    assert str(place / 'lost.mcap') in find_bags([str(place)])  # it will be listed as broken


def test_other_names_of_machines_apply_to_bags_that_are_known(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_table, 'on_cluster', in_this_process)
    write_fleet(tmp_path / 'planar_2r-x', 1, 4.0, 50.0, ['planar_2r-1'])
    bags, store = find_bags([str(tmp_path)]), str(tmp_path / 'store.parquet')
    assert {row.machine for row in update(bags, {'planar_2r-1': 'planar_2r'}, store, 5.0, 1).rows} == {
        'planar_2r-1'
    }
    monkeypatch.setattr(fleet_table, 'on_cluster', None)
    assert {row.machine for row in update(bags, {'planar_2r-x': 'planar_2r'}, store, 5.0, 1).rows} == {
        'planar_2r-x'
    }


def test_a_bag_is_read_again_if_not_the_bag_was_to_blame(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_table, 'on_cluster', in_this_process)
    write_fleet(tmp_path / 'bags', 1, 4.0, 50.0, ['planar_2r-1'])
    with monkeypatch.context() as little_memory:
        little_memory.setattr(bag_figures, 'Bag', Mock(side_effect=MemoryError))
        assert len(read(tmp_path / 'bags', tmp_path / 'store.parquet').broken) == 1
    assert not read(tmp_path / 'bags', tmp_path / 'store.parquet').broken


def test_what_was_read_before_a_run_was_killed_is_kept(tmp_path, monkeypatch):
    write_fleet(tmp_path / 'bags', 3, 4.0, 50.0, ['planar_2r-1'])
    store = str(tmp_path / 'store.parquet')
    kept = []

    def seen_by_others(function, items, *_):
        for item in items:
            kept.append(len({row.path for row in fleet_table.load_store(store)}))
            yield function(item)

    monkeypatch.setattr(fleet_table, 'on_cluster', seen_by_others)
    monkeypatch.setattr(fleet_table, 'SAVED', 0.0)
    read(tmp_path / 'bags', store)
    assert kept == [0, 1, 2]


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.filterwarnings('ignore')
def test_five_hundred_bags_of_five_machines(tmp_path):
    write_fleet(tmp_path / 'bags', 100, duration=8.0, rate=50.0)
    start = perf_counter()
    fleet = read(tmp_path / 'bags', tmp_path / 'store.parquet')
    print(f'500 bags in {perf_counter() - start:.0f} s')
    assert found(fleet) == EXPECTED

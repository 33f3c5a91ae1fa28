"""A generated fleet: the table, its findings, and what happens to broken bags."""

import shutil
from time import perf_counter

import pytest
from bags.fleet.fleet_bags import DAY, FIRST, SINCE, write_fleet

pytest.importorskip('pyarrow', reason='pyarrow is not installed')
pytest.importorskip('distributed', reason='dask.distributed is not installed')

from krang_dynamics.bags.fleet import fleet_table
from krang_dynamics.bags.fleet.change_points import Change
from krang_dynamics.bags.fleet.fleet_report import fleet_html, fleet_text
from krang_dynamics.bags.fleet.fleet_table import Finding, find_bags, load_models, machine_of, update
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


@pytest.mark.parametrize(('after', 'doubted'), [(-0.16, True), (0.16, False)])
def test_a_negative_load_may_be_an_offset_of_a_position(after, doubted):
    finding = Finding('anthropomorphic-1', 'tool', 'load', FIRST, Change(5, 0.0, after, 'step'))
    assert ('or a position has an offset' in str(finding)) == doubted


def test_a_store_of_another_kind_is_refused(tmp_path):
    (tmp_path / 'store.parquet').write_text('no table')
    with pytest.raises(KrangError, match='is no table of krang fleet'):
        fleet_table.load_store(str(tmp_path / 'store.parquet'))


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.filterwarnings('ignore')
def test_five_hundred_bags_of_five_machines(tmp_path):
    write_fleet(tmp_path / 'bags', 100, duration=8.0, rate=50.0)
    start = perf_counter()
    fleet = read(tmp_path / 'bags', tmp_path / 'store.parquet')
    print(f'500 bags in {perf_counter() - start:.0f} s')
    assert found(fleet) == EXPECTED

"""A recording as a folder of files."""

import numpy as np
import pytest
from bags.bagging import START, record_model

from krang_dynamics import load_robot
from krang_dynamics.bags.io.joint_state_codec import TYPE, encode
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.io.writer import BagWriter
from krang_dynamics.errors import BagError

pytest.importorskip('rosbags', reason='rosbags is not installed')


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    return record_model(tmp_path_factory.mktemp('bags') / 'bag', load_robot('planar_2r'), duration=1.0)


def test_topics_and_types_are_known(bag):
    opened = Bag(bag)
    assert opened.of_type('sensor_msgs/msg/JointState') == ['/joint_states']
    assert 'float64[] position' in opened.topics['/joint_states'].definition


def test_errors_name_what_is_missing_and_what_is_present(bag, tmp_path):
    with pytest.raises(BagError, match='does not exist'):
        Bag(tmp_path / 'nowhere')
    with pytest.raises(BagError, match=r'contains no \.mcap or \.db3'):
        Bag(tmp_path)
    with pytest.raises(BagError, match="did you mean '/joint_states'"):
        next(Bag(bag).read('/joint_state'))


def test_files_of_a_split_recording_are_read_in_order_and_a_missing_one_is_named(tmp_path):
    robot = load_robot('planar_2r')
    folder = tmp_path / 'split'
    folder.mkdir()
    names = []
    for part in (0, 1, 10):
        made = record_model(tmp_path / f'split_{part}', robot, duration=0.1)
        names.append(f'split_{part}.mcap')
        (made / names[-1]).rename(folder / names[-1])
    listed = '\n'.join(f'  - {name}' for name in [*names, 'split_11.mcap'])
    metadata = f'rosbag2_bagfile_information:\n  relative_file_paths:\n{listed}\n'
    (folder / 'metadata.yaml').write_text(metadata)
    assert Bag(folder).damage == ['split_11.mcap is missing']
    (folder / 'metadata.yaml').unlink()
    opened = Bag(folder)
    assert [file.path.name for file in opened._files] == names
    assert len(list(opened.messages(['/joint_states']))) == 60


def test_messages_are_sorted_by_arrival(tmp_path):
    times = [START + 1_000_000 * k for k in (3, 1, 2, 0, 900, 700)]
    with BagWriter(tmp_path / 'bag') as writer:
        for time in times:
            writer.write('/joint_states', TYPE, encode(['a'], time, *3 * [np.zeros(1)]), time)
    assert [time for _, time, _ in Bag(tmp_path / 'bag').in_order(['/joint_states'])] == sorted(times)

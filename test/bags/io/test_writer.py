"""Recordings that rosbags can read."""

from contextlib import suppress

import pytest
import yaml
from bags.bagging import START

from krang_dynamics.bags.io.joint_state_codec import TYPE, encode
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.io.writer import BagWriter
from krang_dynamics.errors import BagError

pytest.importorskip('rosbags', reason='rosbags is not installed')
MESSAGE = encode(['a'], START, [1.0], [2.0], [3.0])


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_rosbags_reads_what_was_written(tmp_path, storage):
    from rosbags.rosbag2 import Reader

    with BagWriter(tmp_path / 'bag', storage) as writer:
        for k in range(10):
            writer.write('/joint_states', TYPE, MESSAGE, START + k)
        assert (writer.count, writer.size) == (10, 10 * len(MESSAGE))
    with Reader(tmp_path / 'bag') as reader:
        assert [bytes(data) for _, _, data in reader.messages()] == [MESSAGE] * 10
    information = yaml.safe_load((tmp_path / 'bag' / 'metadata.yaml').read_text())[
        'rosbag2_bagfile_information'
    ]
    assert information['version'] == 9
    assert information['storage_identifier'] == storage
    assert information['message_count'] == 10
    (topic,) = information['topics_with_message_count']
    assert topic['topic_metadata']['type_description_hash'].startswith('RIHS01_')


def test_nothing_is_lost_after_an_exception(tmp_path):
    with suppress(KeyboardInterrupt), BagWriter(tmp_path / 'bag') as writer:
        writer.write('/joint_states', TYPE, MESSAGE, START)
        raise KeyboardInterrupt
    assert len(list(Bag(tmp_path / 'bag').messages(['/joint_states']))) == 1


def test_an_existing_folder_is_never_written_to(tmp_path):
    with pytest.raises(BagError, match='exists already'):
        BagWriter(tmp_path)


def test_an_unknown_type_is_refused(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer, pytest.raises(BagError, match='does not support'):
        writer.write('/x', 'my_msgs/msg/Secret', b'', START)


def test_messages_of_rosbags_types_can_be_written(tmp_path):
    from rosbags.typesys import Stores, get_typestore

    String = get_typestore(Stores.ROS2_JAZZY).types['std_msgs/msg/String']
    with BagWriter(tmp_path / 'bag') as writer:
        writer.write_message('/chatter', String('hello'), START)
    assert next(Bag(tmp_path / 'bag').read('/chatter'))[1].data == 'hello'

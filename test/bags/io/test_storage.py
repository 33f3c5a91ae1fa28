"""Recordings that are whole, truncated, damaged, foreign or empty."""

import os
import shutil
import sqlite3
import struct

import numpy as np
import pytest
from bags.bagging import START

from krang_dynamics.bags.io.joint_state_codec import TYPE, encode
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.io.writer import BagWriter
from krang_dynamics.errors import BagError

pytest.importorskip('rosbags', reason='rosbags is not installed')
COUNT = 6000
FORMATS = ('mcap', 'sqlite3')


@pytest.fixture(scope='module')
def bags(tmp_path_factory):
    """A recording of several chunks in each format."""
    folder = tmp_path_factory.mktemp('bags')
    for storage in FORMATS:
        with BagWriter(folder / storage, storage) as writer:
            for k in range(COUNT):
                data = encode(
                    [f'joint_{i}' for i in range(17)], k, np.full(17, k), np.zeros(17), np.zeros(17)
                )
                writer.write('/joint_states', TYPE, data, START + 1_000_000 * k)
    return folder


def copy(bags, tmp_path, storage):
    shutil.copytree(bags / storage, tmp_path / 'bag')
    file = next(path for path in (tmp_path / 'bag').iterdir() if path.suffix in ('.mcap', '.db3'))
    return tmp_path / 'bag', file


def count(path):
    bag = Bag(path)
    times = [time for _, time, _ in bag.messages(['/joint_states'])]
    return len(times), bag.damage


def count_in_batches(path):
    bag = Bag(path)
    return sum(len(times) for times, _ in bag.batches('/joint_states')), bag.damage


@pytest.mark.parametrize('storage', FORMATS)
def test_a_recording_is_read_completely_and_in_parts(bags, storage):
    bag = Bag(bags / storage)
    assert bag.duration == pytest.approx(1e-3 * COUNT, abs=2e-3)
    for start, stop in ((0, COUNT), (100, 200), (4321, 4322)):
        found = bag.messages(['/joint_states'], START + 1_000_000 * start, START + 1_000_000 * stop)
        assert [(time - START) // 1_000_000 for _, time, _ in found] == list(range(start, stop))
        batches = bag.batches('/joint_states', START + 1_000_000 * start, START + 1_000_000 * stop)
        assert sum(len(times) for times, _ in batches) == stop - start
    assert not bag.damage
    message = next(bag.read('/joint_states', START + 7_000_000))[1]
    assert message.position[0] == 7


# A database of this size has its root pages in the middle: without them no row can be read.
@pytest.mark.parametrize(
    ('storage', 'share'), [('mcap', 0.1), ('mcap', 0.5), ('mcap', 0.99), ('sqlite3', 0.9)]
)
def test_a_truncated_file_is_read_up_to_the_cut(bags, tmp_path, storage, share):
    path, file = copy(bags, tmp_path, storage)
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    found, damage = count(path)
    assert found >= (0.95 if storage == 'mcap' else 0.6) * share * COUNT
    assert found < COUNT or share == 0.99
    assert len(damage) == 1


def test_batches_hold_the_same_messages_as_single_reading(tmp_path):
    with BagWriter(tmp_path / 'mixed') as writer:
        for k in range(300):
            data = encode(['a'] if k % 3 else ['a', 'b'], k, np.ones(1 if k % 3 else 2), [], [])
            writer.write('/joint_states' if k < 200 else '/others', TYPE, data, START + k)
    bag = Bag(tmp_path / 'mixed')
    for topic in ('/joint_states', '/others'):
        singly = {(time, data) for _, time, data in bag.messages([topic])}
        at_once = {
            (int(time), row.tobytes())
            for times, rows in bag.batches(topic)
            for time, row in zip(times, rows, strict=True)
        }
        assert at_once == singly


def test_a_truncated_recording_without_metadata_is_read(bags, tmp_path):
    path, file = copy(bags, tmp_path, 'mcap')
    (path / 'metadata.yaml').unlink()
    file.write_bytes(file.read_bytes()[:-100])
    found, damage = count(path)
    assert found == COUNT
    assert any('metadata.yaml' in line for line in damage)
    assert count(file)[0] == COUNT


def chunk_places(data):
    """Where the records of the chunks begin."""
    place, found = 8, []
    while place + 9 < len(data):
        opcode, length = struct.unpack_from('<BQ', data, place)
        found += [place] if opcode == 6 else []
        place += 9 + length
    return found


@pytest.mark.parametrize(
    ('place', 'value'),
    [(0, 7), (14, 99), (22, 99), (25, 200), (37, 200), (41, 1)],
    ids=['opcode', 'first time', 'last time', 'size', 'compression', 'compressed size'],
)
def test_a_damaged_head_of_a_chunk_is_noted(bags, tmp_path, place, value):
    path, file = copy(bags, tmp_path, 'mcap')
    data = bytearray(file.read_bytes())
    begin = chunk_places(data)[1]
    assert data[begin + place] != value
    data[begin + place] = value
    file.write_bytes(data)
    for what in (path, file):  # with and without metadata.yaml
        assert count(what)[1], what


@pytest.mark.parametrize(('place', 'value'), [(0, 4), (0, 0x85), (1, 1), (9, 9)])
def test_a_damaged_message_in_a_chunk_without_checksum_is_noted(bags, tmp_path, place, value):
    _, file = copy(bags, tmp_path, 'mcap')
    data = bytearray(file.read_bytes())
    # A message begins with opcode, length, channel, sequence and its time.
    begin = data.index((START + 1_000_000 * 77).to_bytes(8, 'little')) - 15
    data[begin + place] = value
    file.write_bytes(data)
    assert count(file)[1]


@pytest.mark.parametrize('time', [2**63 - 1, 2**64 - 1])
def test_a_message_of_an_impossible_time_in_a_chunk_is_noted(bags, tmp_path, time):
    _, file = copy(bags, tmp_path, 'mcap')
    old = (START + 1_000_000 * 77).to_bytes(8, 'little')
    file.write_bytes(file.read_bytes().replace(old, time.to_bytes(8, 'little')))
    for found, damage in (count(file), count_in_batches(file)):
        assert found == COUNT - 1
        assert len(damage) == 1


@pytest.mark.parametrize('time', [2**63 - 1, -5, 'noon'])
def test_a_row_of_an_impossible_time_is_noted(bags, tmp_path, time):
    path, file = copy(bags, tmp_path, 'sqlite3')
    with sqlite3.connect(file) as connection:
        connection.execute('UPDATE messages SET timestamp = ? WHERE id = 9', (time,))
    connection.close()
    found, damage = count(path)
    assert found == COUNT - 1
    assert damage
    assert Bag(path).duration < 2e-3 * COUNT


@pytest.mark.parametrize('name', ['metadata.yaml', 'data'])
def test_a_pipe_in_a_recording_is_not_opened(bags, tmp_path, name):
    path, file = copy(bags, tmp_path, 'mcap')
    pipe = path / name if name != 'data' else file
    pipe.unlink()
    os.mkfifo(pipe)
    if name == 'data':
        with pytest.raises(BagError, match='give a regular file'):
            Bag(path)
    else:
        assert any('metadata.yaml is missing or damaged' in line for line in Bag(path).damage)


def test_deep_lists_in_metadata_yaml_are_damage(bags, tmp_path):
    path, _ = copy(bags, tmp_path, 'mcap')
    (path / 'metadata.yaml').write_text('[' * 50_000)
    found, damage = count(path)
    assert found == COUNT
    assert any('metadata.yaml is missing or damaged' in line for line in damage)


def test_a_file_that_ends_between_two_records_is_truncated(bags, tmp_path):
    _, file = copy(bags, tmp_path, 'mcap')
    data = file.read_bytes()
    file.write_bytes(data[: chunk_places(data)[2]])
    assert 'end is missing' in count(file)[1][0]


@pytest.mark.parametrize('storage', FORMATS)
def test_messages_that_metadata_yaml_counts_and_the_files_lack_are_noted(bags, tmp_path, storage):
    path, _ = copy(bags, tmp_path, storage)
    metadata = (path / 'metadata.yaml').read_text()
    (path / 'metadata.yaml').write_text(metadata.replace(f'message_count: {COUNT}', 'message_count: 7000'))
    assert count(path) == (COUNT, [f'metadata.yaml counts 7000 messages, the files have {COUNT}'])


def test_a_folder_may_have_any_name(bags, tmp_path):
    path, _ = copy(bags, tmp_path, 'sqlite3')
    assert count(path.rename(tmp_path / 'day 1? #2 100%')) == (COUNT, [])


def test_a_damaged_chunk_is_skipped(bags, tmp_path):
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    writer = Writer(tmp_path / 'packed', version=9, storage_plugin=StoragePlugin.MCAP)
    writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        topic = writer.add_connection('/joint_states', TYPE, typestore=get_typestore(Stores.ROS2_JAZZY))
        for _, time, data in Bag(bags / 'mcap').messages(['/joint_states']):
            writer.write(topic, time, data)
    file = tmp_path / 'packed' / 'packed.mcap'
    assert count(file) == (COUNT, [])
    data = bytearray(file.read_bytes())
    data[200:2000] = bytes(1800)
    file.write_bytes(data)
    found, damage = count(file)
    assert 0 < found < COUNT
    assert 'damaged' in damage[0]


@pytest.mark.parametrize(
    ('name', 'content', 'reason'),
    [
        ('a.mcap', b'', 'empty'),
        ('a.db3', b'', 'empty'),
        ('a.bag', b'#ROSBAG V2.0\n', 'ROS 1'),
        ('a.txt', b'hello, this is some text', 'neither MCAP nor sqlite3'),
        ('a.mcap', b'\x89MCAP0\r\n', 'no messages'),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BagError, match=reason) as caught:
        Bag(tmp_path / name)
    assert '\n' not in str(caught.value)


def test_another_database_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / 'a.db3') as connection:
        connection.execute('CREATE TABLE birds (name TEXT)')
    connection.close()
    with pytest.raises(BagError, match='not a rosbag2 database'):
        Bag(tmp_path / 'a.db3')

"""Existing files are not overwritten."""

import pytest

from krang_dynamics.bags.io.files import refuse_existing, write
from krang_dynamics.errors import KrangError


def test_existing_files_folders_and_missing_folders_are_refused(tmp_path):
    kept = tmp_path / 'kept'
    kept.write_text('precious')
    with pytest.raises(KrangError, match='exists already'):
        refuse_existing([None, str(kept)], force=False)
    refuse_existing([str(kept), str(tmp_path / 'new')], force=True)
    for path in (tmp_path, tmp_path / 'no' / 'where'):
        with pytest.raises(KrangError, match='cannot be written'):
            refuse_existing([str(path)], force=True)
    write(None, 'nothing')
    write(str(kept), 'new')
    assert kept.read_text() == 'new'

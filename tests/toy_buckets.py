"""A bucket served from a folder, and what must be in it."""

import socket

from bioptimus_jax.storage.files import read_json, sha256


def content_of(folder):
    """Name -> SHA-256 of every file of a run in a bucket, without what the mirror keeps for itself."""
    return {
        str(p.relative_to(folder)): sha256(p)
        for p in sorted(folder.rglob('*'))
        # On a disk obstore copies by hard links, and a copy done twice leaves NAME#0, which it never lists.
        if p.is_file() and '.remote' not in p.relative_to(folder).parts and '#' not in p.name
    }


def assert_whole(folder):
    """Everything that the index names is there under that name, with those bytes, and nothing else is."""
    index = read_json(folder / '.remote' / 'index.json')
    assert content_of(folder) == {name: entry['sha256'] for name, entry in index['files'].items()}
    assert not index['pending']
    assert not (folder / '.remote' / 'lease.json').exists()


def free_port():
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return free.getsockname()[1]

"""The program, called as from a shell."""

import json

from bioptimus_jax.cli import main as cli


def call(capsys, *arguments):
    code = cli.main(list(arguments))
    captured = capsys.readouterr()
    assert 'Traceback' not in captured.err
    return code, captured.err.strip()


def document(capsys, *arguments):
    """The one JSON document that a command prints with --json, and nothing else."""
    assert cli.main([*arguments, '--json']) == 0
    return json.loads(capsys.readouterr().out, parse_constant=lambda name: 1 / 0)


def stamps(folder):
    """Stamps by which a change to anything in a folder is seen: a file, a folder, or one that came or went."""
    every = {path: path.lstat() for path in (folder, *folder.rglob('*'))}
    return {path: (found.st_mtime_ns, found.st_size, found.st_ino) for path, found in every.items()}

"""The program, called as from a shell."""

from bioptimus_jax import cli


def call(capsys, *arguments):
    code = cli.main(list(arguments))
    captured = capsys.readouterr()
    assert 'Traceback' not in captured.err
    return code, captured.err.strip()

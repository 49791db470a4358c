"""Lists of tokens that a user gives: files with one a line, such as analyze/bad_tokens.txt."""

from pathlib import Path

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.sets.columns import BYTE_ORDER_MARK
from bioptimus_jax.sets.sentences import text_of


def file_of(path: str, key: str) -> list[Path]:
    """The file that `key` names, or none. Raises ConfigError where there is no such file."""
    if not path:
        return []
    if not Path(path).is_file():
        raise ConfigError(f'{key}: {path}: no such file; give one with a token a line')
    return [Path(path)]


def read(path: str | Path) -> list[str]:
    """The lines of a list that are not empty. Raises InputError, with the line for what is not UTF-8."""
    lines = text_of(Path(path)).removeprefix(BYTE_ORDER_MARK).split('\n')
    return [token for line in lines if (token := line.strip())]

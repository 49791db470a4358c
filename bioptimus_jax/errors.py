"""What ends a command with one line, and the exit codes: see `cli`."""

DONE, FAILED, USAGE, BAD_INPUT, LOST, STOPPED = 0, 1, 2, 3, 69, 75


class ConfigError(Exception):
    """A configuration or a command line that cannot be right; the message names the key and the remedy."""


class InputError(Exception):
    """Input that cannot be used; the message names the file or record and the remedy."""


class BrokenFile(InputError):
    """A file that is cut off, damaged or not what its checksum says, as a whole; the message names the remedy."""


class Stopped(Exception):
    """SIGTERM came and the state is saved; the same command goes on from here."""

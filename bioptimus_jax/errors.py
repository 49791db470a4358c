"""What ends a command with one line: see the exit codes of `cli`; and how any text is made fit to be shown."""

import errno
import re

CALLED = re.compile(r'Unsupported (?:global: GLOBAL|class) (\S+)')  # torch, of a pickle
ESCAPED = re.compile(r'[^\n\t -~]')
PASSWORD = re.compile(r'(\b[a-z][a-z0-9+.-]*://)[^/\s]*@', re.IGNORECASE)
SIGNATURE = re.compile(
    r'([?&;][\w.-]*(?:token|key|secret|signature|sig|password|credential)[\w.-]*=)[^&;\s]+', re.IGNORECASE
)

DONE, FAILED, USAGE, BAD_INPUT, LOST, STOPPED, INTERRUPTED = 0, 1, 2, 3, 69, 75, 130
SAVED = (STOPPED, INTERRUPTED)
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


class ConfigError(Exception):
    """A configuration or a command line that cannot be right; the message names the key and the remedy."""


class InputError(Exception):
    """Input that cannot be used; the message names the file or record and the remedy."""


class BrokenFile(InputError):
    """A file that is cut off, damaged or not what its checksum says, as a whole; the message names the remedy."""


class Stopped(Exception):
    """A signal came and the state is saved; the same command goes on from here."""


def printable(text: str) -> str:
    """The text for a terminal or a log, whoever wrote it.

    Control characters, marks that turn the direction of writing and halves of characters become escapes, as in \\x1b;
    line breaks and tabs stay. What stands before the @ of an address, and keys or signatures behind its ?, become ***.
    """
    hidden = SIGNATURE.sub(r'\1***', PASSWORD.sub(r'\1***@', text))
    return ESCAPED.sub(
        lambda c: c[0] if c[0].isprintable() else c[0].encode('unicode_escape').decode(), hidden
    )


def pickled_code(error: Exception) -> str:
    """What is wrong with weights that torch refuses as they name a function, and the remedy; '' of other errors."""
    called = CALLED.search(str(error))
    remedy = 'weights are numbers alone, ask for model.safetensors'
    return f'is refused, it would run {called[1]} when loaded; {remedy}' if called else ''

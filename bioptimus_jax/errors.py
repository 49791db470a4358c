"""What ends a command with one line: see the exit codes of `cli`; and how any text is made fit to be shown."""

import errno
import os
import re
from pathlib import Path

CALLED = re.compile(r'Unsupported (?:global: GLOBAL|class) (\S+)')  # torch, of a pickle
ESCAPED = re.compile(r'[^\n\t -~]')
PASSWORD = re.compile(r'(\b[a-z][a-z0-9+.-]*://)[^/\s]*@', re.IGNORECASE)
SIGNATURE = re.compile(
    r'([?&;][\w.-]*(?:token|key|secret|signature|sig|password|credential)[\w.-]*=)[^&;\s]+', re.IGNORECASE
)

DONE, FAILED, USAGE, BAD_INPUT, LOST, STOPPED, INTERRUPTED = 0, 1, 2, 3, 69, 75, 130
SAVED = (STOPPED, INTERRUPTED)
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
REMEDIES = {
    **dict.fromkeys(FULL_DISK, 'free some and rerun the same command'),
    errno.EFBIG: 'raise the limit of file sizes (ulimit -f) and rerun the same command',
    **dict.fromkeys((errno.EACCES, errno.EROFS, errno.EPERM), 'check its rights, or choose another place'),
    errno.ENOTDIR: 'a part of its path is a file; choose another place',
    errno.EISDIR: 'a file is needed there; remove the folder, or name another file',
    errno.EEXIST: 'a folder is needed there, not a file or a broken link; choose another place',
    errno.ELOOP: 'correct the link',
    errno.ENAMETOOLONG: 'choose shorter names',
    errno.ENOENT: 'it does not exist, or no longer does; rerun the same command',
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), 'raise the limit of open files (ulimit -n)'),
    **dict.fromkeys((errno.EIO, errno.ESTALE), 'the disk or network failed; rerun the same command'),
}
"""What to do about an error of the system: by its number."""
OUT_OF_MEMORY = re.compile(  # XLA, torch, C++, the system
    r'RESOURCE_EXHAUSTED|out of memory|OutOfMemory|can\'t allocate memory|std::bad_alloc|Cannot allocate memory'
)


class ConfigError(Exception):
    """A configuration or a command line that cannot be right; the message names the key and the remedy."""


class InputError(Exception):
    """Input that cannot be used; the message names the file or record and the remedy."""


class BrokenFile(InputError):
    """A file that is cut off, damaged or not what its checksum says, as a whole; the message names the remedy."""


class Stopped(Exception):
    """A signal came and the state is saved; the same command goes on from here.

    The message says what is not kept, and is empty where everything is.
    """


class Paused(Stopped):
    """All that was asked for is done, and the state is saved; the message says how to go on."""


class Afresh(Exception):
    """What comes needs memory of accelerators that jax holds as long as this process lives: another one goes on."""


def printable(text: str) -> str:
    """The text for a terminal or a log, whoever wrote it.

    Control characters, marks that turn the direction of writing and halves of characters become escapes, as in \\x1b;
    line breaks and tabs stay. What stands before the @ of an address, and keys or signatures behind its ?, become ***.
    """
    hidden = SIGNATURE.sub(r'\1***', PASSWORD.sub(r'\1***@', text))
    return ESCAPED.sub(lambda c: c[0] if c[0].isprintable() else ascii(c[0])[1:-1], hidden)


def of_the_system(error: BaseException, place: str = 'the output folder') -> str:
    """What disk, files or memory have refused, with the remedy, in a line; '' for anything else, a defect perhaps.

    By number, or by words: the writers of safetensors, tokenizers and ArrayRecord raise exceptions of their own.
    `place`: what is named where the error names no file.
    """
    # A renaming has two names, of which one is that of a hidden file of ours.
    names = [name for key in ('filename', 'filename2') if (name := getattr(error, key, None))]
    where = next((name for name in names if not Path(str(name)).name.startswith('.')), (*names, place)[0])
    number = error.errno if isinstance(error, OSError) else None
    if number in FULL_DISK or any(os.strerror(n) in str(error) for n in FULL_DISK):
        return f'{where}: no space left; {REMEDIES[errno.ENOSPC]}'
    if number in REMEDIES:
        return f'{where}: {os.strerror(number)}; {REMEDIES[number]}'
    if lacks_memory(error):
        return (
            f'there is not enough memory ({reason_of(error)}); close other programs that use it, or take a larger '
            'machine'
        )
    return ''


def lacks_memory(error: BaseException) -> bool:
    """Whether memory was asked for, of the host or a device, that is not there."""
    return isinstance(error, MemoryError) or bool(OUT_OF_MEMORY.search(f'{type(error).__name__} {error}'))


def reason_of(error: BaseException) -> str:
    """What another's exception says, cut to a part of a line; its type where it says nothing."""
    return ' '.join(str(error).split())[:200] or type(error).__name__


def pickled_code(error: Exception) -> str:
    """What is wrong with weights that torch refuses as they name a function, and the remedy; '' of other errors."""
    called = CALLED.search(str(error))
    remedy = 'weights are only numbers; ask for a model.safetensors'
    return f'is refused: it would run {called[1]} when loaded; {remedy}' if called else ''

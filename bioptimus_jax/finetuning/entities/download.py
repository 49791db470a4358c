"""BLURB's five NER sets from the repository that they were published in, as a catalogue of the download."""

import fnmatch
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

from bioptimus_jax.corpus.download import Proof, Wanted
from bioptimus_jax.corpus.fetch import Server, check_address
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.sets.blurb import SETS, SOURCE
from bioptimus_jax.sets.sentences import SPLITS


class NerSets:
    """SET/{train,devel,test}.tsv, each proved by the SHA-256 in blurb.py.

    `url` is the folder above BC2GM-IOB and the others, `files` a pattern for names such as bc2gm/train.tsv. Raises
    ConfigError for what cannot be meant.
    """

    def __init__(self, url: str = SOURCE, files: str = '*'):
        check_address(url, f'the folder above BC2GM-IOB, as in {SOURCE}')
        self.url, self.files = url.rstrip('/'), files
        self.checksums = {
            f'{name}/{split}.tsv': checksum
            for name, known in SETS.items()
            if known.folder
            for split, checksum in zip(SPLITS, known.checksums, strict=True)
        }

    async def wanted(self, server: Server, say: Callable[[str], None]) -> list[Wanted]:
        """The files whose names match."""
        names = fnmatch.filter(self.checksums, self.files)
        if not names:
            raise ConfigError(
                f'--files={self.files}: no file has such a name; they are SET/train.tsv, SET/devel.tsv and '
                f'SET/test.tsv of {", ".join(SETS)}'
            )
        parts = [name.split('/') for name in names]
        return [Wanted(f'{name}/{file}', f'{self.url}/{SETS[name].folder}/{file}') for name, file in parts]

    async def proof(self, server: Server, file: Wanted) -> Proof:
        """The SHA-256 of the published file."""
        return Proof('sha256', self.checksums[file.name], 'was published (by SHA-256)')

    def keep(self, path: Path, proof: Proof) -> None:
        """No checksum files are beside a set: its checksums are in the code."""

    def advice(self, to: Path, wanted: Iterable[Wanted]) -> str:
        """What to do with the files."""
        looked, used = (shlex.quote(f'--{flag}={to}') for flag in ('sets', 'config.finetune.folder'))
        return f'to look through them: bioptimus lint {looked}\nto use them: {used}'

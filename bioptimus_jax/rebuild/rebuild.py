"""A public set of texts is made from its originals, checked against the public files, and written as a folder."""

import hashlib
import re
from pathlib import Path

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.rebuild.originals import BUILDERS, Builder, Made, Originals
from bioptimus_jax.sets import texts, words
from bioptimus_jax.sets.inputs import INPUTS, Input
from bioptimus_jax.sets.sentences import SPLITS
from bioptimus_jax.storage.files import whole_folder

AS_PUBLIC = next(iter(INPUTS.values()))


def rebuild(name: str, originals: Path, root: Path, form: str, fold: int) -> list[str]:
    """Write ROOT/NAME and what its input form or fold adds to the name; lines about it.

    Raises ConfigError for what a set does not have or where a folder is there already, InputError for other originals
    than those of the public set; then nothing is written.
    """
    builder: Builder = BUILDERS.load(name)
    record, shape = texts.SETS.get(name) or words.SETS[name], INPUTS[form]
    if not 1 <= fold <= builder.folds:
        raise ConfigError(f'--fold={fold}: {name} has {numbered(builder.folds, "fold")}')
    if shape.ending and not builder.mentions:
        raise ConfigError(f'--input={form}: the originals of {name} do not say where its entities are')
    folder = root / f'{name}{shape.ending}{f"{texts.FOLD}{fold}" * (fold > 1)}'
    if folder.exists():
        raise ConfigError(f'--to={root}: {folder.name} is there already; move it, or choose another folder')
    made = builder.make(Originals(originals), fold)
    said = _checked(record, builder, made, originals, public=fold == 1)
    with whole_folder(folder) as new:
        for split in SPLITS:
            (new / f'{split}.tsv').write_bytes(written(builder, made, split, shape))
    shown = _shown(_counts(builder, made))
    otherwise = f'{shape.meaning}; with dummies ' * bool(shape.ending)
    return [
        f'{folder}: {shown} examples in train / devel / test; {otherwise}{said}',
        *(f'{folder}: {note}' for note in made.notes),
    ]


def written(builder: Builder, made: Made, split: str, shape: Input) -> bytes:
    """The file of a split."""
    lines = [builder.header] * bool(builder.header)
    for example in made.splits[split]:
        columns = list(example.columns)
        if example.mentions:
            at = builder.mentions
            columns[at] = shape.write(columns[at], example.mentions)
        lines.append('\t'.join(columns))
    return ''.join(f'{line}\n' for line in lines).encode()


def _checked(
    record: texts.Published | words.Published, builder: Builder, made: Made, place: Path, public: bool
) -> str:
    """How the set, in the form of the public files, compares with these. Raises InputError where it is another.

    `public`: it is the fold that is public; of others the sum of all splits is known.
    """
    counts = _counts(builder, made)
    known = list(record.documents if isinstance(record, words.Published) else record.examples)
    if (counts != known) if public else (sum(counts) != sum(known)):
        wanted = _shown(known) if public else f'{sum(known):,} together'
        raise InputError(
            f'{place}: gives {_shown(counts)} examples, but {record.name} has {wanted}; these are other originals'
        )
    if not public:
        return 'as many together as the public files'
    if not builder.checksums:
        return 'as many as published'
    for split, wanted in zip(SPLITS, builder.checksums, strict=True):
        found = _sum(written(builder, made, split, AS_PUBLIC), wanted)
        if found != wanted:
            raise InputError(
                f'{place}: gives as many examples as {record.name} has, but other bytes in {split} (SHA '
                f'{found[:12]}, public {wanted[:12]}); these are other originals'
            )
    return 'the public files byte for byte'


def _counts(builder: Builder, made: Made) -> list[int]:
    """Examples of each split as its record counts them: lines, or documents."""
    if not builder.document:
        return [len(made.splits[split]) for split in SPLITS]
    document = re.compile(builder.document)
    names = ([example.columns[-1] for example in made.splits[split]] for split in SPLITS)
    return [len({found[0] for name in of_one if (found := document.match(name))}) for of_one in names]


def _sum(content: bytes, wanted: str) -> str:
    """SHA-256, or what git calls a file, whichever was asked for."""
    if len(wanted) == 64:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b'blob %d\0' % len(content) + content, usedforsecurity=False).hexdigest()


def _shown(counts: list[int]) -> str:
    return ' / '.join(f'{n:,}' for n in counts)

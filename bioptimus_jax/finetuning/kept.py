"""How a fine-tuned model reads text: a part of the model, kept in its folder, and obeyed wherever it is applied."""

import dataclasses
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.sets.cutting import CUTS, Cut, prose
from bioptimus_jax.storage.files import read_json, write_json

NAME = 'reading.json'


@dataclasses.dataclass(frozen=True)
class Reads:
    """What a text is cut into before a model reads it, as in its training.

    `max_pieces`: of a window, 0 where nobody has said it. `overlap_pieces`: what neighbouring windows of a tagger share
    on either side of a border; `cut`: the rule of `cutting.CUTS` for its words and sentences. `segment_ids`: how a
    classifier tells two texts apart; `question`: it cuts the second one, if that can be; `apart`: it reads the texts of
    an example one by one, and gives it the labels of all; `texts`: how many an example has, 0 where nobody has said it
    or they differ; `squeezed`: all white space within them is one blank; `long_words`: it learned words of several
    letters of a script without blanks. `remark`: what has to be said of its answers, as that they are all alike.
    """

    max_pieces: int = 0
    overlap_pieces: int = Finetune.overlap_pieces
    cut: str = prose.__name__
    segment_ids: str = Finetune.segment_ids
    question: bool = False
    apart: bool = False
    texts: int = 0
    squeezed: bool = False
    long_words: bool = False
    remark: str = ''

    @property
    def words(self) -> Cut:
        """The rule that `cut` names."""
        return CUTS[self.cut]

    @property
    def shown(self) -> dict[str, str]:
        """What stands for a text in a `command` and in a list of `python`: where the model reads two, for both."""
        if self.texts == 2:
            return {'command': r"$'...\t...'", 'python': "('...', '...')"}
        return {'command': "'...'", 'python': "'...'"}

    def checked(self) -> dict[str, bool]:
        """Whether each value is one that there can be, by its name."""
        return {
            'cut': self.cut in CUTS,
            'max_pieces': self.max_pieces >= 0,
            'overlap_pieces': self.overlap_pieces >= 0,
            'segment_ids': self.segment_ids in ('one', 'two'),
            'texts': 0 <= self.texts <= 2,
        }

    def write(self, folder: Path) -> None:
        """Leave the record in the folder of a model."""
        write_json(folder / NAME, dataclasses.asdict(self))


def read_reads(folder: Path) -> Reads:
    """How the model in a folder reads, by its record; by the defaults where it has none, as models of others have.

    Raises InputError for a record that is damaged.
    """
    file = folder / NAME
    if not file.is_file():
        return Reads()
    try:
        found: Any = read_json(file)
        if not isinstance(found, dict):
            raise TypeError('it holds no object')
        wanted = {field.name: type(field.default) for field in dataclasses.fields(Reads)}
        flaws = [n for n, kind in wanted.items() if n in found and type(found[n]) is not kind]
        flaws += [name for name in found if name not in wanted]
        made = Reads(**{name: found[name] for name in found if name not in flaws})
        flaws += [name for name, fine in made.checked().items() if not fine]
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f'{file}: is damaged ({error}); keep the model again') from error
    if flaws:
        raise InputError(
            f'{file}: {flaws[0]!r} is unknown or has no value that this version knows; keep the model again, or '
            'remove the file: then texts are read as prose'
        )
    return made

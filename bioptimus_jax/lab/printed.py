"""Tables that papers have printed, as data: what was scored, how, and the numbers."""

import dataclasses
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from bioptimus_jax.config.plugins import Plugins
from bioptimus_jax.sets.blurb import GROUPS

WAY = ' / '
"""The separator, in the name of a row, of the model and what was done with it."""
PAPERS = Plugins('bioptimus_jax.lab.papers', 'TABLES', closed=True)
Conditions = Mapping[str, Callable[[Any], bool]]
"""Key of config.finetune -> whether a value is one of those that the paper used."""
Numbers = dict[str, dict[str, float]]


MEASURES = {
    'ebmnlp': 'macro F1 of words',
    **dict.fromkeys(
        ('chemprot', 'ddi', 'gad', 'hoc', 'chemprot-blue', 'ddi-blue', 'i2b2-2010-re'), 'micro F1'
    ),
    **{f'{name}-{fold}': 'micro F1' for name in ('gad', 'euadr') for fold in range(1, 11)},
    'hoc-blue': 'example-based F1',
    **dict.fromkeys(('pubmedqa', 'bioasq', 'mednli'), 'accuracy'),
    'biosses': "Pearson's r",
}
"""What papers measure on sets by the titles of our metrics; `entity F1` on all others."""


@dataclasses.dataclass(frozen=True)
class Scored:
    """What a column holds: the mean over groups of `within` of their sets, where there are any.

    `mode`: of metrics of one title the one with this key, by default the first. `asked`: under which settings (None:
    any, as devel chooses). `otherwise`: in what the paper's number is not, or may not be, measured as it is here.
    """

    groups: Sequence[Sequence[str]] = ()
    mode: str = ''
    asked: Conditions | None = None
    otherwise: str = ''
    within: Callable[[Iterable[float]], float] = statistics.fmean


@dataclasses.dataclass(frozen=True, eq=False)
class Printed:
    """A table: `title` with paper, version and number. `rows`: name -> column -> number; a way is behind ' / '.

    `ways`: what was done with a model, by settings (None: any, as devel chooses); the others are compared with the
    first. `endings`: of the names of sets, for ways that need another form of them. `average`: over seeds, as in the
    paper. `misprints`: rows and columns that cannot be as they are printed.
    """

    title: str
    columns: Mapping[str, Scored]
    rows: Numbers
    note: str
    ways: Mapping[str, Conditions | None] = dataclasses.field(default_factory=lambda: {'': None})
    endings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    average: Callable[[Sequence[float]], float] = statistics.fmean
    misprints: Collection[tuple[str, str]] = ()
    decimals: int = 2

    @property
    def compares(self) -> bool:
        """Whether it is a table of ways to fine-tune, not of models."""
        return len(self.ways) > 1 or any(column.asked is not None for column in self.columns.values())


def measure(name: str) -> str:
    """The title of the metric on a set."""
    return MEASURES.get(name, 'entity F1')


def one_of(*values: Any) -> Callable[[Any], bool]:
    """Whether a value is one of these."""
    return values.__contains__


def of(dataset: str, **further: Any) -> Scored:
    """The score on one set."""
    return Scored(((dataset,),), **further)


def read(columns: Iterable[str], text: str) -> Numbers:
    """Lines of `name: number number ...` in the order of the columns; `-` is not a number."""
    titles, lines = list(columns), [line.split(':') for line in text.strip().splitlines()]
    return {
        name: {t: float(n) for t, n in zip(titles, numbers.split(), strict=True) if n != '-'}
        for name, numbers in lines
    }


def turned(numbers: Numbers) -> Numbers:
    """Rows as columns: papers print sets as lines, and models as columns."""
    names = dict.fromkeys(name for line in numbers.values() for name in line)
    return {name: {line: n[name] for line, n in numbers.items() if name in n} for name in names}


BLURB: dict[str, Scored] = {
    'BC5-chem': of('bc5-chem'),
    'BC5-disease': of('bc5-disease'),
    'NCBI-disease': of('ncbi-disease'),
    'BC2GM': of('bc2gm'),
    'JNLPBA': of('jnlpba'),
    'EBM PICO': of('ebmnlp'),
    'ChemProt': of('chemprot'),
    'DDI': of('ddi'),
    'GAD': of('gad', otherwise='the paper calls it micro F1; here it is the F1 of class 1'),
    'BIOSSES': of('biosses'),
    'HoC': of(
        'hoc',
        otherwise='the early version says mean over ten hallmarks, the final one micro F1 of abstracts, of the same'
        ' numbers; here micro F1 over ten decisions for each abstract',
    ),
    'PubMedQA': of('pubmedqa'),
    'BioASQ': of('bioasq'),
    'BLURB': Scored(tuple(GROUPS.values())),
}
"""The columns of the final version of the BLURB paper, and of those that follow it."""
EARLY = {
    'JNLPBA early': of('jnlpba', otherwise='the final version measured JNLPBA again'),
    'GAD early': of('gad', otherwise='535 test texts; 534 in the final version and here'),
    'BLURB early': Scored(BLURB['BLURB'].groups, otherwise='with JNLPBA and GAD of the early version'),
}
"""Where the early version (arXiv) has other numbers."""

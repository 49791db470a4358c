"""Sets in folds: the median over those that choose no settings, as Lewis et al. (2020) give it of GAD and EU-ADR."""

import dataclasses
import statistics

from bioptimus_jax.report.layout import Cell, Column, Table, fixed, missing, spread
from bioptimus_jax.report.measures import NOT_SCORED, Measures
from bioptimus_jax.report.section import Addition
from bioptimus_jax.sets.published import first_fold, record_of


@dataclasses.dataclass(frozen=True)
class Folded:
    """A model on the folds of a set under the setting that is best on devel of the first one; none without that."""

    measures: Measures
    model: str
    first: str
    others: tuple[str, ...]

    @property
    def setting(self) -> str:
        return self.measures.chosen(self.model, self.first)

    @property
    def scores(self) -> list[float]:
        """Medians over seeds of each of the other folds, in percent."""
        of_folds = (self.measures.scores(self.model, d, setting=self.setting) for d in self.others)
        return [statistics.median(of_fold) for of_fold in of_folds if of_fold] if self.setting else []

    def middle(self) -> Cell:
        found = self.scores
        if not found:
            return missing()
        value = statistics.median(found)
        return Cell(f'{value:.2f} ({min(found):.2f} to {max(found):.2f})', value)

    def majority(self) -> Cell:
        cells = [r for d in self.others for r in self.measures.cells(self.model, d, self.setting)[:1]]
        known = [100 * r.majority for r in cells if r.majority is not None]
        return fixed(statistics.median(known) if known else None, 2)


def folds(m: Measures) -> Table:
    """A row for every set in folds and model."""
    found: dict[str, dict[str, str]] = {}
    for dataset in m.datasets:
        if first := first_fold(dataset):
            record = record_of(dataset)
            found.setdefault(first, {})[record.name if record else ''] = dataset
    rows = [
        Folded(m, model, names[first], tuple(d for name, d in names.items() if name != first))
        for first, names in found.items()
        if first in names and len(names) > 2
        for model in m.models
    ]
    columns = [
        Column('chosen on', lambda r: r.first),
        Column('model', lambda r: m.label(r.model)),
        Column('setting', lambda r: r.setting),
        Column('measure', lambda r: m.task(r.first).metric.title),
        Column('folds', lambda r: f'{len(r.scores)} of {len(r.others)}'),
        Column('median', Folded.middle, 'high'),
        Column('mean ± sd', lambda r: spread(r.scores), 'high'),
        Column('majority', Folded.majority),
    ]
    note = (
        'Test, percent, over the other folds; of each the median over seeds, in brackets the lowest and the highest.'
        ' The setting is the best one on devel of the first fold, which is not among them. The folds share their'
        ' training texts: their spread is not an interval.'
    )
    absent = 'no set in folds has been scored, or not its first fold.' if m.finetuned else NOT_SCORED
    return Table.of('Median over folds', columns, rows, rank_within='chosen on', note=note, absent=absent)


SECTION = Addition('entities', 'blurb', {'folds': folds})

"""Ways to spend the same hours on a task: models and settings of several runs, fine-tuned alike, beside one of them."""

import dataclasses
import statistics
from collections.abc import Sequence

from bioptimus_jax.progress.console import clock
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, missing, spread, tested
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.sections.efficiency import Effort, effort_at
from bioptimus_jax.report.sections.entities import ModelScores
from bioptimus_jax.scoring.comparison import MACRO, Contrast, SeedKey, compare


@dataclasses.dataclass(frozen=True)
class Way:
    """A model of a run, fine-tuned under one setting; `name`: what a row calls it."""

    name: str
    measures: Measures
    model: str
    setting: str = 'standard'

    def on(self, dataset: str) -> ModelScores:
        """What a row shows of it on one set."""
        return ModelScores(self.measures, dataset, self.model, self.setting)

    def by_seed(self, dataset: str) -> dict[SeedKey, float]:
        """The test score in percent with each seed of fine-tuning; empty where it is not scored."""
        return self.measures.by_seed(self.model, dataset, self.setting)

    def effort(self) -> Effort | None:
        """What surgery and pre-training have spent, None where there was none."""
        step = self.measures.step_of(self.model) if self.measures.trains else None
        return None if step is None else effort_at(self.measures, step)

    def fine_tuning(self, sets: Sequence[str]) -> float | None:
        """Seconds of one fine-tuning, the mean over sets and seeds; None without any."""
        seconds = [cell.seconds or 0.0 for dataset in sets for cell in self.on(dataset).cells]
        return statistics.fmean(seconds) if seconds else None


def ways_table(ways: Sequence[Way], sets: Sequence[str]) -> Table:
    """A row for each way: scores on the sets, less the first way, what the seeds say together, words and hours.

    A way without a score on one of the sets has no difference in their mean.
    """
    scores = {d: {way.name: own for way in ways if (own := way.by_seed(d))} for d in sets}
    families = [(d,) for d in sets] + [tuple(sets)] * (len(sets) > 1)
    asked = [
        Contrast(way.name, ways[0].name, family)
        for family in families
        for way in ways[1:]
        if all(way.name in scores[d] for d in family)
    ]
    found = {(one.model, one.name): tested(one.over_trainings) for one in compare(scores, asked)}

    def score(dataset: str, way: Way) -> Cell:
        return spread([*way.by_seed(dataset).values()])

    def vote(dataset: str, way: Way) -> Cell:
        return way.on(dataset).ensemble() if way.on(dataset).cells else missing()

    def less_first(name: str, way: Way) -> str | Cell:
        return found.get((way.name, name)) or missing()

    def words(way: Way) -> Cell:
        effort = way.effort()
        return count(effort.words) if effort else missing()

    def adaptation(way: Way) -> str | Cell:
        effort = way.effort()
        return clock(effort.seconds) if effort and effort.seconds else missing()

    def fine_tuning(way: Way) -> str | Cell:
        seconds = way.fine_tuning(sets)
        return missing() if seconds is None else clock(seconds)

    names = [one.name for one in (Contrast('', '', family) for family in families)]
    columns = [
        Column('way', lambda way: way.name),
        Column('words read', words),
        *each({d: d for d in sets}, score, 'high'),
        *each({name: f'{name}, difference' for name in names}, less_first),
        *each({d: f'vote, {d}' for d in sets}, vote, 'high'),
        Column('adaptation', adaptation),
        Column('a fine-tuning', fine_tuning),
    ]
    note = (
        f'Test, percent, mean ± sd over seeds of fine-tuning. Difference: less {ways[0].name}, paired by seed,'
        " Student's 95 % with the noise of all ways together; p is corrected after Holm for all ways, and on single"
        f' sets for all of them together. {MACRO.capitalize()}: of ways that have all sets. Each way has one'
        ' pre-training, and another may differ more. Vote: what the seeds say together. Adaptation: surgery and'
        ' pre-training. Times: as recorded, each on its machine.'
    )
    return Table.of('Ways to spend the hours', columns, ways, note=note)

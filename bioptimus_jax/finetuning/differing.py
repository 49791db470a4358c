"""What two models were fine-tuned with differently on a set: named before their scores are compared."""

import dataclasses
import json
from collections.abc import Sequence

from bioptimus_jax.finetuning.finished import FinishedModel
from bioptimus_jax.finetuning.recommended import FOLLOWS
from bioptimus_jax.records.finetune import CellSettings, FineTuning

BY_RULE = 'by the rule'
SEEDS = 'seeds'
EXAMPLES = 'train_sentences'
"""The key that asks for so many examples: how many were learned is said instead."""


@dataclasses.dataclass(frozen=True)
class Difference:
    """A setting that is not the same for both models: its values, and why, where the rule of the defaults made them."""

    setting: str
    a: str
    b: str
    why: str = ''

    @property
    def asked_for(self) -> bool:
        """Whether somebody has chosen to train the models differently: no rule has, nor other seeds, which are left
        out."""
        return self.setting != SEEDS and not self.why.startswith(BY_RULE)

    def words(self, a: str, b: str) -> str:
        """`epochs 3 (A), 5 (B)`, by the names of the models."""
        return f'{self.setting} {self.a} ({a}), {self.b} ({b}){f", {self.why}" if self.why else ""}'


def differing(a: FinishedModel, b: FinishedModel, dataset: str) -> list[Difference]:
    """The settings of a set's fine-tunings that are not the same, values over seeds; nothing of what has no record."""
    sides = [[r for r in m.records[dataset].values() if isinstance(r, FineTuning)] for m in (a, b)]
    if not all(sides):
        return []
    found = []
    # What was learned, not what was asked for: a set may have fewer.
    learned = [_shown([r.train_sentences for r in side if r.train_sentences]) for side in sides]
    if all(learned) and learned[0] != learned[1]:
        found.append(Difference('training examples', *learned))
    settings = [[r.settings for r in side if r.settings] for side in sides]
    if all(settings):
        found += _of_keys(settings[0], settings[1], learned)
    seeds = [', '.join(dict.fromkeys(str(r.seed) for r in side)) for side in sides]
    return found + [Difference(SEEDS, *seeds)] * (seeds[0] != seeds[1])


def differences(a: FinishedModel, b: FinishedModel, names: tuple[str, str] = ('A', 'B')) -> list[str]:
    """A sentence for the sets that differ in the same way; nothing where both models were fine-tuned alike."""
    common = [dataset for dataset in a.cells if dataset in b.cells]
    groups: dict[tuple[Difference, ...], list[str]] = {}
    for dataset in common:
        if found := tuple(differing(a, b, dataset)):
            groups.setdefault(found, []).append(dataset)
    said = []
    for found, datasets in groups.items():
        on = f' on {", ".join(datasets)}' if len(datasets) < len(common) else ''
        theirs = ', so the difference is not of the models alone' * any(one.asked_for for one in found)
        said.append(f'Settings differ{on}: {"; ".join(one.words(*names) for one in found)}{theirs}.')
    return said


def _of_keys(
    a: Sequence[CellSettings], b: Sequence[CellSettings], learned: Sequence[str]
) -> list[Difference]:
    """The keys with other values, and the version of the rule where both have used it."""
    found = []
    versions = [_shown([one.rule for one in side if one.rule]) for side in (a, b)]
    if all(versions) and versions[0] != versions[1]:
        found.append(Difference('version of the rule', versions[0], versions[1]))
    for key in dict.fromkeys(key for one in (*a, *b) for key in one.values):
        values = [_shown([one.values.get(key) for one in side]) for side in (a, b)]
        if key != EXAMPLES and values[0] != values[1]:
            found.append(Difference(key, values[0], values[1], _why(key, a, b, learned)))
    return found


def _why(key: str, a: Sequence[CellSettings], b: Sequence[CellSettings], learned: Sequence[str]) -> str:
    """Why the rule gives two values for a key, or which of the two it gave; nothing where both were asked for."""
    ruled = [all(key in one.by_rule for one in side) for side in (a, b)]
    if not all(ruled):
        return f'the {"first" if ruled[0] else "second"} one {BY_RULE}' if any(ruled) else ''
    widths = [_shown([one.width for one in side]) for side in (a, b)]
    of, what = (widths, 'units') if FOLLOWS[key] == 'width' else (learned, 'examples')
    return f'{BY_RULE} for {of[0]} and {of[1]} {what}' if of[0] != of[1] else BY_RULE


def _shown(values: Sequence[object]) -> str:
    """The values of all seeds, each once."""
    return ' or '.join(dict.fromkeys(v if isinstance(v, str) else json.dumps(v) for v in values))

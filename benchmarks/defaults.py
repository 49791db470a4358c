"""Fine-tuning by its defaults against settings that were searched, on every set of a folder.

    python benchmarks/defaults.py --model 2x128=runs/small-source/export/words --folder sets --cells cells.jsonl

The defaults are those of `finetuning/recommended.py`: rate, batch and epochs by the model's width and the number of
examples. The search begins there, with seed 0: the rate times 1/4, 1/2 and 2, then, with the best of them, the epochs
times 1/2 and 2. Score on devel decides. Defaults and winner then have three seeds each, and test is scored. Train,
devel and test are cut to --examples and --scored (`config.finetune.train_choice`: stratified).

A cell is appended to --cells when it is done, and a second call continues. `--only SET ...` takes some of the sets. The
table is printed, and without --only written to results/defaults_NAME.json.
"""

import argparse
import dataclasses
import json
import statistics
import time
from pathlib import Path
from typing import Any

from protocol import publish

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.recommended import completed, width_of
from bioptimus_jax.finetuning.subset import chosen_examples
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.finetuning.training import finetune
from bioptimus_jax.sets import corpora

SEEDS = (0, 1, 2)
RATES = (1.0, 0.25, 0.5, 2.0)
EPOCHS = (0.5, 2.0)
DEFAULT = (1.0, 1.0)
"""Factors of the rate and the epochs of the defaults."""


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--model', required=True, metavar='NAME=FOLDER')
    parser.add_argument('--folder', required=True, help='sets, a folder each')
    parser.add_argument('--cells', type=Path, required=True, help='file that cells are appended to')
    parser.add_argument(
        '--examples', type=int, default=400, help='training examples; of devel there are half as many'
    )
    parser.add_argument('--scored', type=int, default=1000, help='most test examples')
    parser.add_argument('--only', nargs='*', default=(), metavar='SET')
    options = parser.parse_args()
    name, _, place = options.model.partition('=')
    table = {}
    for chosen in corpora.chosen_sets(Finetune(folder=options.folder, datasets=tuple(options.only))):
        bench = Bench(name, Path(place), chosen, options)
        table[chosen.name] = bench.row()
        print(json.dumps(table[chosen.name]), flush=True)
    behind = [row['searched'] - row['defaults'] for row in table.values()]
    result = {'model': name, 'examples': options.examples, 'scored': options.scored, 'sets': table}
    publish(
        f'defaults_{name}',
        result,
        bool(options.only),
        sets=len(table),
        mean_behind=statistics.mean(behind),
        most_behind=max(behind),
        within_two_points=sum(points <= 2 for points in behind),
    )


class Bench:
    """One set with one model: its cells, those in the file included."""

    def __init__(self, model: str, place: Path, chosen: Any, options: argparse.Namespace):
        self.model, self.place, self.file = model, place, options.cells
        self.task = task_for(chosen)
        data = self.task.read(chosen)
        self.settings = corpora.settings_on(Finetune(train_choice='stratified'), chosen.name)
        wanted = {'train': options.examples, 'devel': options.examples // 2, 'test': options.scored}
        self.data = dataclasses.replace(
            data,
            **{split: self._cut(getattr(data, split), count, data.name) for split, count in wanted.items()},
        )
        self.base = completed(self.settings, width_of(place), len(self.data.train))

    def _cut(self, examples: tuple[Any, ...], count: int, name: str) -> tuple[Any, ...]:
        count = count if count < len(examples) else 0
        return chosen_examples(
            self.task, examples, dataclasses.replace(self.settings, train_sentences=count), name
        )

    def row(self) -> dict[str, Any]:
        """The scores on test of the defaults and of the searched setting: means over the seeds."""
        found = {(rate, 1.0): self.cell(rate, 1.0, 0)['devel'] for rate in RATES}
        rate = max(found, key=lambda factors: found[factors])[0]
        found |= {(rate, epochs): self.cell(rate, epochs, 0)['devel'] for epochs in EPOCHS}
        best = max(found, key=lambda factors: found[factors])
        ours, theirs = ([self.cell(*factors, seed)['test'] for seed in SEEDS] for factors in (DEFAULT, best))
        return {
            'set': self.data.name,
            'task': self.task.title,
            'metric': self.task.metric.name,
            'train': len(self.data.train),
            'scored': len(self.data.test),
            'defaults': statistics.mean(ours),
            'searched': statistics.mean(theirs),
            'seeds': {'defaults': ours, 'searched': theirs},
            'default_rate': self.base.learning_rate,
            'default_epochs': self.base.epochs,
            'batch': self.base.batch_sentences,
            'best_rate': self.base.learning_rate * best[0],
            'best_epochs': max(1, round(self.base.epochs * best[1])),
            'devel': {
                f'{rate:g} x rate, {epochs:g} x epochs': score for (rate, epochs), score in found.items()
            },
        }

    def cell(self, rate: float, epochs: float, seed: int) -> dict[str, Any]:
        """One fine-tuning, from the file where it is there."""
        settings = dataclasses.replace(
            self.base,
            learning_rate=self.base.learning_rate * rate,
            epochs=max(1, round(self.base.epochs * epochs)),
        )
        key = {
            'model': self.model,
            'set': self.data.name,
            'train': len(self.data.train),
            'scored': len(self.data.test),
            'batch': settings.batch_sentences,
            'learning_rate': settings.learning_rate,
            'epochs': settings.epochs,
            'seed': seed,
        }
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        for done in map(json.loads, lines):
            if key.items() <= done.items():
                return done
        started = time.monotonic()
        outcome = finetune(self.task, self.place, self.data, settings, seed)
        metric = self.task.metric.name
        score = self.task.scores([self.task.answers(e) for e in self.data.test], outcome.test)['default'][
            metric
        ]
        done = key | {
            'devel': round(100 * max(epoch[f'devel_{metric}'] for epoch in outcome.history), 2),
            'test': round(100 * score, 2),
            'best_epoch': outcome.best_epoch,
            'sameness': outcome.sameness,
            'seconds': round(time.monotonic() - started, 1),
        }
        with self.file.open('a') as file:
            file.write(json.dumps(done) + '\n')
        return done


if __name__ == '__main__':
    main()

"""What to do with a run that is done: which model to take, the lines that load it, and what to try next."""

import dataclasses
import statistics
from pathlib import Path

from bioptimus_jax.export.card import FILL_MASK, HERE, purpose_of
from bioptimus_jax.finetuning.chosen import command_for_use
from bioptimus_jax.finetuning.config import TOGETHER
from bioptimus_jax.finetuning.task import DEFAULT
from bioptimus_jax.model.tensors import read_architecture
from bioptimus_jax.model.weights import has_weights
from bioptimus_jax.report import gain
from bioptimus_jax.report.cells import cell_folder
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.sections.sentences import lost_similarity
from bioptimus_jax.storage.files import shown_path

CODE = """from transformers import AutoModelForMaskedLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained({folder!r})
model = AutoModelForMaskedLM.from_pretrained({folder!r})"""
FEWEST_SEEDS = 3
VOTE_PAYS = 1.0
"""Points that seeds together are ahead of one, from which on it is said."""


@dataclasses.dataclass(frozen=True)
class Use:
    """The `model` of the run as a folder, Python that loads it, commands that apply fine-tuned ones, what to try next.

    Empty where there is none.
    """

    model: str = ''
    code: str = ''
    commands: tuple[str, ...] = ()
    next: tuple[str, ...] = ()


def use(m: Measures, verdict: gain.Verdict | None) -> Use:
    """How the run's last exported phase is loaded, kept models are applied, and what would make the answer surer.

    `verdict`: what the adaptation brought, as `gain.overall` has it.
    """
    exported = [m.run.stage_folder('export') / phase for phase in m.phases]
    # A mirror of a run in a bucket has the small files alone.
    there = [
        shown_path(folder)
        for folder in exported
        if (folder / 'config.json').is_file() and has_weights(folder)
    ]
    commands = []
    for dataset in m.datasets:
        cells = ((r, cell_folder(m, r)) for r in m.finetuned if r.dataset == dataset)
        if command := command_for_use(cells):
            commands.append(f'{command}  # {dataset}')
    model = there[-1] if there else ''
    return Use(model, _code(model) if model else '', tuple(commands), tuple(_next(m, verdict)))


def _code(model: str) -> str:
    """Lines that load the model of a folder; of one that fills in no words those of its card, which try it, too."""
    purpose = purpose_of(read_architecture(Path(model)), Path(model))
    if purpose.pipeline == FILL_MASK:
        return CODE.format(folder=model)
    return purpose.code.replace(HERE, f'folder = {model!r}').rstrip()


def _next(m: Measures, verdict: gain.Verdict | None) -> list[str]:
    """What would tell more, by what this run lacks; nothing where it lacks nothing."""
    settings = m.run.config.finetune
    steps = [said] if (said := lost_similarity(m)) else []
    if not m.datasets:
        return [
            *steps,
            'Score the model: name sets in config.finetune.folder, yours or those of `bioptimus download --what=ner`.',
        ]
    first, last = gain.before_and_after(m)
    if m.trains and not any(m.scores(m.source, d) for d in m.datasets):
        steps.append('Score the source too: add it to config.finetune.models, as source.')
    learned = [d for d in m.datasets if m.task(d).learns]  # other sets have the same score with every seed
    seeds = max((len(m.scores(x, d)) for x in m.models for d in learned), default=0)
    if learned and seeds < FEWEST_SEEDS:
        steps.append(
            'Fine-tune with more seeds, so that the difference can be tested: --config.finetune.seeds=0,1,2'
        )
    if learned and settings.keep == 'none':
        steps.append('Keep the fine-tuned models, to use them: --config.finetune.keep=best')
    if settings.keep != TOGETHER and (ahead := _together(m, last or first)) >= VOTE_PAYS:
        steps.append(
            f'Use the seeds together, which are {ahead:.1f} points ahead of one on the mean of the sets: '
            f'--config.finetune.keep={TOGETHER}'
        )
    if verdict and verdict.worse:
        kept = m.run.config.vocab.kind == 'source'
        vocabulary = '' if kept else 'with its vocabulary (--config.vocab.kind=source), or '
        steps.append(
            f'On {", ".join(verdict.worse)} the source is ahead: take it there, or adapt {vocabulary}on more text.'
        )
    return steps


def _together(m: Measures, model: str) -> float:
    """How many points the seeds of a model together are ahead of their mean, over its sets; 0 where it is not known."""
    ahead = []
    for dataset in m.datasets:
        found, task = m.statistics_of(model, dataset), m.task(dataset)
        if found and found.ensemble:
            together = found.ensemble.kept(task.averages).test[DEFAULT][task.metric.name]
            ahead.append(100 * together - statistics.fmean(m.scores(model, dataset)))
    return statistics.fmean(ahead) if ahead else 0.0

"""How difficult the masking settings are: the perplexity of one model under each of them (paper, Figure 4).

Legend: R rows, L pieces a row, S samples.

A sample is one mask of all rows; its perplexity is exp of the mean loss over its selected positions, pooled, and the
samples give a mean and an interval. The interval is over masks: the documents are the same for every setting and
sample. Under 80-10-10 the unchanged tenth is nearly free and the corruption goes with the rate, so the perplexity on
[MASK]ed positions alone stands beside the one that decides. The texts must be of a domain that the probe was not
trained on; where none are named, this run's held-out documents are taken, which at least are no training text.
"""

import contextlib
import dataclasses
import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy import special

from bioptimus_jax.corpus.documents import Document, document_key, open_documents
from bioptimus_jax.corpus.readers import input_files, read_inputs
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.files import read_json, write_json
from bioptimus_jax.model import hf
from bioptimus_jax.pretrain import curriculum, evaluate
from bioptimus_jax.pretrain.masking import Vocabulary, slot_count
from bioptimus_jax.pretrain.rows import document_parts, lay_out
from bioptimus_jax.pretrain.step import StepPlan
from bioptimus_jax.run import Run
from bioptimus_jax.schema import BY_DIFFICULTY, Corpus, Experiment
from bioptimus_jax.schema import Source as SourceSettings
from bioptimus_jax.surgery import source
from bioptimus_jax.vocab.wordpiece import SPECIAL_TOKENS

RECORD = 'difficulty.json'
INITIAL = 'initial'  # the weights at step 0
HELDOUT = 'held-out documents of this run'
BATCH_ROWS = 64
PROBE_KEYS = ('config.curriculum.probe', 'config.curriculum.probe_revision')


def phase_order(run: Run, folder: Path, plan: StepPlan, record: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The phases in the order of training, the one of the run's `record` where it has begun; says it in a line.

    Writes difficulty.json where the order is by difficulty. Raises ConfigError, InputError, Stopped.
    """
    e = run.config
    if e.curriculum.order in ('given', 'self_paced'):
        return e.phases
    measured = perplexities(run, folder, plan) if e.curriculum.order in BY_DIFFICULTY else {}
    order = curriculum.recorded_order(e, record)
    if not order:
        order = curriculum.ordered(e, {name: m['perplexity']['mean'] for name, m in measured.items()})
    words = [
        f'{name} ({_short(measured[name]["perplexity"])})' if name in measured else name for name in order
    ]
    by = ', perplexity in brackets' if measured else ''
    run.say(f'pretrain: phases {e.curriculum.order}{by}: {", ".join(words)}')
    return order


def external_inputs(experiment: Experiment) -> list[Path]:
    """The files outside the run that decide the order: texts, and the probe's configuration, weights, tokenizer."""
    if experiment.curriculum.order not in BY_DIFFICULTY:
        return []
    texts = input_files(_reading(experiment), 'curriculum.texts') if experiment.curriculum.texts else []
    folder = _probe_folder(experiment)
    return texts + (hf.deciding_files(folder) if folder else [])


def perplexities(run: Run, folder: Path, plan: StepPlan) -> dict[str, dict[str, Any]]:
    """Phase -> perplexity of the probe under its setting, measured once (anew for added phases), in difficulty.json.

    Each has `perplexity` over all selected positions and `masked_only` over [MASK]ed ones (None without any), as
    `summary` gives them, and the mean number of `positions` selected in a sample.
    """
    known = read_json(folder / RECORD)
    if known is not None and set(run.config.phases) <= known['settings'].keys():
        return known['settings']
    e, settings = run.config, run.config.curriculum
    probe = _load_probe(run)
    documents = _documents(run)
    width = min(e.rows.max_document_pieces, probe.capacity + 2)
    batch = _rows(documents, probe, width)
    if not len(batch['tokens']):
        raise InputError(
            f'{", ".join(settings.texts) or HELDOUT}: hold no text to measure difficulty on; '
            'name files in config.curriculum.texts'
        )
    plan = dataclasses.replace(
        plan,
        architecture=probe.architecture,
        vocabulary=Vocabulary.of(probe.vocabulary, SPECIAL_TOKENS),
        slots=slot_count(max(e.phase[n].rate for n in e.phases), width, plan.settings.max_word_pieces),
    )
    sums = _measure(run, plan, jax.device_put(probe.parameters), batch)
    measured = {name: _of_setting(samples) for name, samples in sums.items()}
    facts = {
        'probe': settings.probe,
        'texts': list(settings.texts) or [HELDOUT],
        'documents': len(documents),
        'rows': len(batch['tokens']),
        'pieces': int(batch['segment_lengths'].sum()),
        'samples': settings.samples,
        'settings': measured,
    }
    write_json(folder / RECORD, facts)
    return measured


def masks_of_samples(
    batch: Mapping[str, np.ndarray], plan: StepPlan, experiment: Experiment
) -> Iterator[evaluate.FrozenMasks]:
    """Every sample's masks under every phase: keyed by (evaluation seed, document, sample), alike for all settings."""
    maskable = evaluate.Maskable.of(batch, plan, experiment.evaluation.seed, BATCH_ROWS)
    mask = evaluate.make_mask(plan, plan.settings.max_word_pieces)
    phases = {name: experiment.phase[name] for name in experiment.phases}
    for sample in range(experiment.curriculum.samples):
        keys_R = jax.vmap(lambda key, s=sample: jax.random.fold_in(key, s))(maskable.keys_R)
        yield maskable.under(phases, mask, lambda phase: plan.slots, keys_R)


def summary(perplexities_S: Sequence[float]) -> dict[str, Any]:
    """Mean over the samples, its 95 % interval (Student's t; None for a single sample), and the samples."""
    count, mean = len(perplexities_S), float(np.mean(perplexities_S))
    half = None
    if count > 1:
        error = float(np.std(perplexities_S, ddof=1)) / math.sqrt(count)
        half = float(special.stdtrit(count - 1, 0.975)) * error
    interval = None if half is None else [mean - half, mean + half]
    return {'mean': mean, 'interval': interval, 'samples': list(perplexities_S)}


def _measure(
    run: Run, plan: StepPlan, params: Any, batch: Mapping[str, np.ndarray]
) -> dict[str, list[dict[str, float]]]:
    """Phase -> the pooled sums of each sample."""
    e = run.config
    compute: Callable = evaluate.make_evaluate(plan)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in e.phases}
    progress = run.progress('difficulty', e.curriculum.samples * len(e.phases), 'masks')
    for masks in masks_of_samples(batch, plan, e):
        for name in e.phases:
            run.check_stop()
            found[name].append(evaluate.pooled(compute, params, masks, name))
            progress.update(1)
    return found


def _of_setting(samples: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    masked = all(s['masked_weight'] for s in samples)
    return {
        'perplexity': summary([math.exp(s['loss'] / s['weight']) for s in samples]),
        'masked_only': summary([math.exp(s['masked_loss'] / s['masked_weight']) for s in samples])
        if masked
        else None,
        'positions': float(np.mean([s['weight'] for s in samples])),
    }


def _probe_folder(experiment: Experiment) -> Path | None:
    """The folder of a probe that is not this run's own model. Raises ConfigError, InputError."""
    settings = experiment.curriculum
    if settings.probe == INITIAL:
        return None
    return hf.source_folder(SourceSettings(settings.probe, settings.probe_revision), PROBE_KEYS)


def _load_probe(run: Run) -> source.Source:
    folder = _probe_folder(run.config) or run.folder('surgery') / 'model'
    probe = source.load(dataclasses.replace(run.config, source=SourceSettings(str(folder))))
    assert probe is not None
    if probe.fresh:
        raise InputError(
            f'{folder}: has no masked-language-model head, so it has no perplexity; '
            'name another model in config.curriculum.probe'
        )
    return probe


def _reading(experiment: Experiment) -> Corpus:
    """How texts are read: as the corpus is, from other files."""
    return dataclasses.replace(experiment.corpus, inputs=experiment.curriculum.texts)


def _documents(run: Run) -> list[Document]:
    """The documents scored, with the smallest hashes of their ids. Raises ConfigError for files trained on."""
    e = run.config
    if e.curriculum.texts:
        _refuse_training_text(e)
        available: Any = read_inputs(_reading(e))
    else:
        available = open_documents(run.folder('corpus'), 'heldout')
    return heapq.nsmallest(e.curriculum.documents, available, key=lambda d: document_key(d.id))


def _refuse_training_text(experiment: Experiment) -> None:
    trained: set[Path] = set()
    with contextlib.suppress(InputError, ConfigError):  # the corpus may be a base run's, its files elsewhere
        trained = {file.resolve() for file in input_files(experiment.corpus)}
    for file in input_files(_reading(experiment), 'curriculum.texts'):
        if file.resolve() in trained:
            raise ConfigError(
                f'config.curriculum.texts: {file} is a file of config.corpus.inputs, which is trained on; '
                'name other texts, or none for the held-out documents'
            )


def _rows(documents: Sequence[Document], probe: source.Source, width: int) -> dict[str, np.ndarray]:
    """One document, or part of a long one, a row, in the probe's own pieces, as `Rows.read` gives rows."""
    parts, _ = document_parts([documents], probe.tokenizer, width)
    block = lay_out(parts, [[number] for number in range(len(parts))], width)
    return {
        'tokens': block.tokens_RxL.astype(np.int32),
        'word_starts': np.unpackbits(block.word_starts_RxL, axis=1, count=width).astype(bool),
        'segment_lengths': block.segment_lengths_RxG.astype(np.int32),
        'documents': block.documents_RxG,
    }


def _short(measured: Mapping[str, Any]) -> str:
    if measured['interval'] is None:
        return f'{measured["mean"]:.4g}'
    return f'{measured["mean"]:.4g} ± {measured["interval"][1] - measured["mean"]:.2g}'

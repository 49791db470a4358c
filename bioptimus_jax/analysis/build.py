"""Stage `analyze`: hidden words and geometry for the source, step 0 and every exported phase; entities in pieces.

Where there is a source also what adaptation does to vectors of sentences.

With sets of entities also the F1 from frozen states of these models and of the snapshots within phases.
"""

import contextlib
import dataclasses
import itertools
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bioptimus_jax.analysis import cloze, contexts, geometry, new_tokens, word_geometry
from bioptimus_jax.analysis.config import HasAnalysis
from bioptimus_jax.analysis.entities import compare_on_entities, entity_files, measured_sets
from bioptimus_jax.analysis.new_tokens import NewTokens
from bioptimus_jax.analysis.sentence_vectors import MeasuredTexts, files_of_pairs
from bioptimus_jax.corpus.config import HOLD_OUT_MORE
from bioptimus_jax.corpus.documents import Document, document_key, open_documents
from bioptimus_jax.errors import InputError
from bioptimus_jax.hosts.devices import present
from bioptimus_jax.model.compute import PLAIN_COMPUTE
from bioptimus_jax.model.config import INITIAL, SOURCE, phase_of
from bioptimus_jax.model.folder import has_sentence_vectors, model_folders
from bioptimus_jax.model.tensors import load_folder, read_architecture
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.records.analysis import AnalysedModel, ByToken, HiddenWords, Shape
from bioptimus_jax.records.counts import AnalysisCounts, ExportCounts, StageResult
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.records.surgery import COPIED, TokenRow
from bioptimus_jax.run.folder import Run
from bioptimus_jax.scoring.frozen_sets import FrozenSets
from bioptimus_jax.storage.files import read_sealed, write_json, write_sealed
from bioptimus_jax.surgery.account import TOKENS_FILE
from bioptimus_jax.surgery.graft import check_rows
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.vocab import lists

PARTS = '.models'
"""Finished models of an analysis that was cut off."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A model to be measured, with its own vocabulary. The geometry of a `snapshot` is not measured."""

    name: str
    folder: Path
    speller: cloze.Speller
    snapshot: bool = False


def build(run: Run[HasAnalysis], folder: Path) -> StageResult:
    """Write cloze.json and geometry.json into `folder`, one record per model; points.json, their words in the plane;
    new_tokens.json and bad_tokens.txt; with a source also similarity.json.

    With `finetune.folder` also entities.json, frozen.json and snapshots.json, the hidden words of snapshots.

    Models that a cut-off attempt has finished are kept. Raises InputError where nothing can be scored.
    """
    e = run.config
    export = run.manifest('export') or Manifest()
    counts = ExportCounts.of(export)
    exported_phases = counts.phases if counts else ()
    run.computes('analyze', str(present()), mesh='one device', **PLAIN_COMPUTE.words())
    candidates, spellers = _candidates(e, run.folder)
    longest = min(read_architecture(candidate.folder).positions for candidate in candidates)
    chosen = _passages(e, run.folder('corpus'), spellers, longest)
    sentences = MeasuredTexts()
    if e.source.path:
        sentences = MeasuredTexts.of(_held_out(run.folder('corpus')), e.finetune)
    measured = word_geometry.choose(e, run.folder('vocab'), run.folder('corpus'), spellers)
    tokens = TokenRow.read_lines(run.folder('surgery') / TOKENS_FILE)
    new = NewTokens.of(
        next(c.speller for c in candidates if c.name == INITIAL),
        frozenset(r.token for r in tokens if r.kind != COPIED),
        e.analysis.tokens,
        run.folder('vocab'),
    )
    sets = FrozenSets.of(e.finetune, e.analysis.frozen_sentences, e.analysis.frozen_layers)
    snapshots = _snapshots(e, run.folder('export'), exported_phases, candidates) if sets else []
    of_snapshot = len(chosen) + len(sets)
    per_model = of_snapshot + len(measured.passages) + len(sentences)
    total = len(candidates) * per_model + len(snapshots) * of_snapshot
    progress = run.console.progress('hidden words, words in context, entities', total, 'texts')
    exported = export.content

    def analysed(candidate: Candidate) -> AnalysedModel:
        run.console.check_stop()
        part = folder / PARTS / f'{candidate.name}.json'
        if record := _finished(part, exported):
            progress.update(of_snapshot if candidate.snapshot else per_model)
            return record
        record = _analyse(candidate, chosen, measured, spellers, new, sets, sentences, e, progress.update)
        write_sealed(part, dataclasses.replace(record, export=exported).json())
        run.saved()
        return record

    (folder / PARTS).mkdir(exist_ok=True)
    every = [analysed(candidate) for candidate in (*candidates, *snapshots)]
    records, on_the_way = every[: len(candidates)], every[len(candidates) :]
    _write_measures(folder, records, measured)
    if sentences:
        write_json(folder / 'similarity.json', [r.similarity.json() for r in records if r.similarity])
    by_model = {r.model: r.by_token for r in records if not r.cloze.skipped}
    # In the order of training, which a computed order may have changed.
    last = [INITIAL, *(name for name in exported_phases if name in e.phases)][-1]
    new_tokens.write(folder, by_model, last)
    if e.finetune.folder:
        known = {c.name: c.speller.subwords for c in candidates}
        owners = known[INITIAL], known.get(SOURCE)
        write_json(folder / 'entities.json', compare_on_entities(measured_sets(e.finetune), *owners).json())
    if sets:
        write_json(folder / 'frozen.json', [of_set.json() for r in every for of_set in r.frozen])
        write_json(folder / 'snapshots.json', [r.cloze.json() for r in on_the_way])
    # Last of all: a kill before it costs no model that is finished.
    shutil.rmtree(folder / PARTS)
    made = AnalysisCounts(
        models=len(records),
        documents=len(chosen),
        hidden_words=sum(len(p.hidden) for p in chosen),
        words=sum(len(p.words) for p in chosen),
        geometry_words=len(measured.texts),
        vocabularies=len(spellers),
        snapshots=len(snapshots) if sets else None,
        frozen_sets=len(sets.sentences) if sets else None,
        frozen_seconds=round(sum(r.frozen_seconds for r in every), 1) if sets else None,
    )
    return StageResult(made)


def _finished(part: Path, exported: str | None) -> AnalysedModel | None:
    """The record of a model that an earlier attempt finished; None where it is damaged, made by older code, or made of
    other models than those `exported` now, since longer pre-training exports new ones."""
    with contextlib.suppress(InputError):
        record = AnalysedModel.read(read_sealed(part), str(part))
        return record if record.export == exported else None
    return None


def _write_measures(folder: Path, records: Sequence[AnalysedModel], measured: contexts.WordPairs) -> None:
    write_json(folder / 'cloze.json', [r.cloze.json() for r in records])
    write_json(folder / 'geometry.json', [r.geometry.json() for r in records if r.geometry])
    drawn = [r.points for r in records if r.points]
    write_json(folder / 'points.json', word_geometry.points(drawn, measured).json())


def external_inputs(experiment: HasAnalysis) -> list[Path]:
    """The second vocabulary and the list of tokens, where the config names them; the NER sets, whose entities are cut
    into pieces; and the sets of pairs of texts. Raises ConfigError."""
    vocab = experiment.analysis.reference_vocab
    listed = lists.file_of(experiment.analysis.tokens, 'config.analysis.tokens')
    second = [subwords.deciding_file(Path(vocab))] if vocab else []
    pairs = files_of_pairs(experiment.finetune) if experiment.source.path else []
    return [*second, *listed, *entity_files(experiment.finetune), *pairs]


def _analyse(
    candidate: Candidate,
    chosen: Sequence[cloze.Passage],
    measured: contexts.WordPairs,
    spellers: Sequence[cloze.Speller],
    new: NewTokens,
    sets: FrozenSets,
    sentences: MeasuredTexts,
    e: HasAnalysis,
    on_rows: Any,
) -> AnalysedModel:
    architecture, params, fresh = load_folder(candidate.folder)
    known = candidate.speller.subwords
    by_token: ByToken = {}
    if fresh:
        score = HiddenWords(model=candidate.name, skipped='has no masked-language-model head')
        on_rows(len(chosen))
    else:
        scorer = cloze.make_scorer(architecture, params)
        scored = cloze.score_words(chosen, candidate.speller, scorer, on_rows)
        score = dataclasses.replace(
            cloze.summarise(candidate.name, scored, spellers),
            mask=cloze.mask_digest(chosen),
            new_tokens=new.by_class(scored),
        )
        by_token = new.by_token(scored)
    started = time.monotonic()
    # Once for all sets: every call of jax would copy the weights to the device again.
    on_device = jax.device_put(params) if sets else params
    frozen = sets.records(candidate.name, known, architecture, on_device, on_rows)
    seconds = time.monotonic() - started
    record = AnalysedModel(
        model=candidate.name, cloze=score, by_token=by_token, frozen=tuple(frozen), frozen_seconds=seconds
    )
    if candidate.snapshot:
        return record
    table_VxD = np.asarray(flatten(params)[architecture.table])[: len(known.tokens)]
    of_source = frozenset() if candidate.name == SOURCE else new.new
    shape = geometry.by_kind(table_VxD, known, of_source, pairs=e.analysis.pairs, seed=e.evaluation.seed)
    of_words, drawn = word_geometry.measure(
        candidate.name, measured, candidate.speller, architecture, params, of_source, e, on_rows
    )
    record = dataclasses.replace(record, geometry=Shape(candidate.name, shape, of_words), points=drawn)
    if not sentences:
        return record
    similar = sentences.measure(candidate.name, known, architecture, params, on_rows)
    if candidate.name == SOURCE:
        similar = dataclasses.replace(similar, for_sentences=has_sentence_vectors(candidate.folder))
    return dataclasses.replace(record, similarity=similar)


def _snapshots(
    e: HasAnalysis, folder: Path, exported: Sequence[str], candidates: Sequence[Candidate]
) -> list[Candidate]:
    """The models in `folder` that were `exported` within phases, in the order of training."""
    speller = next(c.speller for c in candidates if c.name == INITIAL)
    names = [n for n in exported if phase_of(n) in e.phases and n not in e.phases]
    return [Candidate(name, folder / name, speller, snapshot=True) for name in names]


def _candidates(e: HasAnalysis, stage: Callable[[str], Path]) -> tuple[list[Candidate], list[cloze.Speller]]:
    """The models, and every vocabulary that the mask must suit: the run's, the source's, and the reference."""
    folders = model_folders(e, stage, [SOURCE] * bool(e.source.path) + [INITIAL, *e.phases], 'config.phases')
    for folder in folders.values():
        if not (folder / 'config.json').is_file():
            raise InputError(f'{folder}: holds no model; rerun the stage that makes it, with --replace')
        if folder != folders.get(SOURCE):  # surgery may have given the others more positions
            check_rows(e.rows, read_architecture(folder))
    reference = [Path(e.analysis.reference_vocab)] if e.analysis.reference_vocab else []
    known = [subwords.load(place) for place in (*folders.values(), *reference)]
    by_space = len({s.kind for s in known}) > 1
    shared: dict[tuple[str, ...], cloze.Speller] = {}
    every = [shared.setdefault(tuple(s.tokens), cloze.Speller(s, by_space)) for s in known]
    candidates = [Candidate(*place, speller) for place, speller in zip(folders.items(), every, strict=False)]
    # Readers take the first, which has to be that of the run: its phases come last.
    own_first = dict.fromkeys([*reversed(every[: len(candidates)]), *every])
    return candidates, list(own_first)


def _held_out(corpus: Path) -> Iterator[Document]:
    """Held-out documents ordered by the hashes of their ids, so that every run over a corpus takes the same ones."""
    source = open_documents(corpus, 'heldout')
    yield from sorted(source.read(0, len(source)), key=lambda d: document_key(d.id))


def _passages(
    e: HasAnalysis, corpus: Path, spellers: Sequence[cloze.Speller], longest: int
) -> list[cloze.Passage]:
    """Text with hidden words, from held-out documents, cut to what every model can read.

    Raises InputError if there is no word to hide.
    """
    found = cloze.passages(
        itertools.islice(_held_out(corpus), e.analysis.cloze_documents),
        spellers,
        fraction=e.analysis.cloze_fraction,
        seed=e.evaluation.seed,
        max_pieces=min(e.rows.max_document_pieces, longest),
    )
    if not found:
        raise InputError(f'{corpus}: its held-out documents have no word to hide; {HOLD_OUT_MORE}')
    return found

"""The model card of an export: README.md with the metadata of Hugging Face, made from the run's records alone.

It holds no date, no path and nothing that is measured after export, so that the same run gives the same bytes and
scores that come later leave the export as it is. `bioptimus report` writes the card again with those scores.
"""

import contextlib
import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from bioptimus_jax.corpus.config import SPECIAL_ARTICLES
from bioptimus_jax.corpus.readers import PUBMED_NAME
from bioptimus_jax.errors import InputError
from bioptimus_jax.hosts.remote.models import HubModel, hub_model
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.config import Source, phase_of
from bioptimus_jax.model.folder import has_sentence_vectors
from bioptimus_jax.pretrain import adapter, curriculum, mixture, overlap
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.objective import heldout_loss_of, masking_of, objective_in_words, objective_of
from bioptimus_jax.pretrain.rates import FALLS
from bioptimus_jax.pretrain.shape import batch_sizes
from bioptimus_jax.pretrain.shares import OWN
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.counts import CorpusCounts, SurgeryCounts, VocabCounts
from bioptimus_jax.records.curriculum import HeldoutOverlap, PlacedPhase
from bioptimus_jax.records.export import CardFacts, Export
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.records.metrics import Evaluation
from bioptimus_jax.run.manifests import place_of, read_manifest
from bioptimus_jax.run.metrics import lines_of
from bioptimus_jax.storage.files import read_json
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.tokenizer.config import TOKENIZERS
from bioptimus_jax.tokenizer.subwords import SETTINGS

NAME = 'README.md'
CACHED = r'/models--([^/]+)/snapshots/'
TAGS = ('curriculum-learning', 'domain-adaptation', 'bioptimus-jax')
PROJECT_PAPER = 'https://arxiv.org/abs/2308.08625'
HERE = "folder = '.'  # the path of this folder"
"""The line of code by which every card names its folder."""
ON_HUB = """\
from huggingface_hub import snapshot_download

folder = snapshot_download({given})  # the files of this page"""
BESIDE = ' It was exported beside the model `{name}`. The training and held-out losses below are those of that model.'
FILL_MASK = 'fill-mask'
"""The pipeline of models that fill in words, as the hub names it."""
EXAMPLE = 'Treatment with {mask} was effective.'
MASKED_LM = """import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

folder = '.'  # the path of this folder
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForMaskedLM.from_pretrained(folder)

inputs = tokenizer(f'Treatment with {tokenizer.mask_token} was effective.', return_tensors='pt')
with torch.inference_mode():
    logits = model(**inputs).logits[inputs['input_ids'] == tokenizer.mask_token_id]
print(tokenizer.convert_ids_to_tokens(logits[0].topk(5).indices.tolist()))
"""
DISCRIMINATOR = """import torch
from transformers import AutoModelForPreTraining, AutoTokenizer

folder = '.'  # the path of this folder
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForPreTraining.from_pretrained(folder)

inputs = tokenizer('The patient was treated with aspirin.', return_tensors='pt')
with torch.inference_mode():
    replaced = model(**inputs).logits[0].sigmoid()  # the probability that a token is not the original one
print(list(zip(tokenizer.convert_ids_to_tokens(inputs['input_ids'][0]), replaced.tolist())))
"""

VECTORS = """from sentence_transformers import SentenceTransformer  # or: bioptimus_jax.embed(folder, texts)

folder = '.'  # the path of this folder
vectors = SentenceTransformer(folder).encode(['a dose for mice', 'The drug was given to mice.'])
print(vectors[0] @ vectors[1])  # the cosine
"""


class Purpose(NamedTuple):
    """What a model is for: what it is called, its pipeline and tag on the hub, what it does, code, and the library that
    loads it; `masks`: whether it can be tried on a text with a mask."""

    title: str
    pipeline: str | None
    tag: str
    does: str
    code: str
    library: str = 'transformers'
    masks: bool = True


OF_VECTORS = Purpose(
    'encoder of texts',
    'sentence-similarity',
    'sentence-transformers',
    'gives vectors of texts, whose cosines say what is near; it tells nothing true from false, and gives no advice',
    VECTORS,
    'sentence-transformers',
    masks=False,
)
"""The purpose of a model with files that say how its vectors are made, whatever its head."""
PURPOSES = {
    'masked_lm': Purpose(
        'masked language model',
        FILL_MASK,
        'masked-lm',
        'fills in masked words; it gives no advice, medical or other, and what it fills in need not be true',
        MASKED_LM,
    ),
    'discriminator': Purpose(
        'discriminator of replaced tokens',
        None,
        'replaced-token-detection',
        'tells tokens that a generator put in from those that were there; it fills in no words and gives no advice',
        DISCRIMINATOR,
    ),
}
"""Purposes of models, by `Architecture.purpose`."""


@dataclasses.dataclass(frozen=True)
class History:
    """What a card tells of a run: how it was made, also where something else is asked for since.

    `placed`: the phases as they were trained. `ends`: phase or snapshot -> its step. `losses`: step -> held-out loss.
    `others`: name -> the documents of another corpus that phases read. `overlaps`: held-out documents in these.
    """

    config: HasTraining
    corpus: Manifest = Manifest()
    vocab: Manifest = Manifest()
    surgery: Manifest = Manifest()
    placed: Sequence[PlacedPhase] = ()
    ends: Mapping[str, int] = dataclasses.field(default_factory=dict)
    losses: Mapping[int, float] = dataclasses.field(default_factory=dict)
    others: Mapping[str, Manifest] = dataclasses.field(default_factory=dict)
    overlaps: Sequence[HeldoutOverlap] = ()

    @classmethod
    def of(cls, config: HasTraining, workdir: Path) -> 'History':
        """The history of the run in a folder as its records tell it; what is damaged counts as not on record."""

        def manifest(stage: str) -> Manifest:
            with contextlib.suppress(InputError):
                return read_manifest(workdir / stage) or Manifest()
            return Manifest()

        folder = place_of(workdir / 'pretrain')
        evaluations = Evaluation.among(lines_of(workdir / 'pretrain'))
        used = config.recorded_by(lambda stage: read_manifest(workdir / stage))
        return cls(
            used,
            manifest('corpus'),
            manifest('vocab'),
            manifest('surgery'),
            curriculum.read_phases(folder),
            curriculum.recorded_phases(folder),
            {e.step: e.loss for e in evaluations},
            mixture.documents(used, manifest('pretrain')),
            overlap.read(folder),
        )

    def phases_of(self, model: str) -> list[PlacedPhase]:
        """The phases that a phase's model or a snapshot has gone through; the last one until that model."""
        of_phase = (p.stop for p in self.placed if p.name == phase_of(model))
        end = self.ends.get(model, max(of_phase, default=0))
        return [
            dataclasses.replace(p, stop=min(p.stop, end))
            for p in self.placed
            if p.start < end and p.name in self.config.phase
        ]

    def shares_of(self, model: str) -> dict[str, dict[str, float]]:
        """The shares of the corpora in the rows that a model has read, by corpus and phase; the run's own first."""
        return mixture.shares(self.config, [p.name for p in self.phases_of(model)])

    def documents_of(self, model: str) -> dict[str, Manifest]:
        """The records of the documents behind a model, by corpus: the run's own first, then others that it has read."""
        known = {**self.others, OWN: self.corpus}
        return {name: known.get(name, Manifest()) for name in self.shares_of(model)}


def model_card(
    history: History | None,
    name: str,
    architecture: Architecture,
    about: Export,
    scores: Sequence[EvalResult] = (),
    folder: Path | None = None,
    suffix: str = '',
) -> str:
    """The card of phase or snapshot `name`, front matter and text.

    `about`: what export.json says. `history` None: a folder that belongs to no run. `folder`: of the model, for an
    example that its tokenizer can read. `suffix`: of a model that is exported beside that of the phase.
    """
    config = history.config if history else None
    # A source has given a model from scratch at most its tokenizer.
    source = _source(config.source) if config and config.surgery.initialisation.source else None
    purpose = purpose_of(architecture, folder)
    from_scratch = config is not None and not source
    said = source or CardFacts()
    languages = (config and list(config.corpus.languages)) or said.language
    data = ModelCardData(
        # Scores alone need a name: huggingface_hub refuses them without one.
        model_name=f'{architecture.title}, phase {name}' if scores else None,
        language=languages,
        license=said.license,
        library_name=purpose.library,
        pipeline_tag=purpose.pipeline,
        tags=[architecture.model_type, purpose.tag, *_tags(config, from_scratch)],
        base_model=said.base_model,
        datasets=_datasets(history.documents_of(name).values()) if history else None,
        widget=widget_of(purpose, folder),
        eval_results=list(scores) or None,
        ignore_metadata_errors=False,
    )
    parts = [
        f'---\n{data.to_yaml()}\n---\n',
        f'# {architecture.title} after phase {name}{suffix}\n',
        f'{with_article(architecture.title)} {purpose.title}, {"trained from scratch" if from_scratch else "adapted"} '
        f'with [the method of BIOptimus]({PROJECT_PAPER}) by bioptimus-jax. Made from the records of its run.'
        f'{BESIDE.format(name=name) * bool(suffix)}\n',
        f'## Use\n\n```python\n{purpose.code}```\n',
        f'## Model\n\n{bullets(facts_of_model(architecture, about))}',
        f'## How it was made\n\n{bullets(_made(history, name, source, architecture))}',
        _curriculum(history, name),
        _scores_text(scores),
        f'## Limits\n\n{bullets(_limits(config, source, scores, purpose))}',
    ]
    return '\n'.join(part for part in parts if part)


def purpose_of(architecture: Architecture, folder: Path | None) -> Purpose:
    """What a model is for, in `folder` if it is known."""
    pooled = folder is not None and has_sentence_vectors(folder)
    return OF_VECTORS if pooled else PURPOSES[architecture.purpose]


def card_on_hub(text: str, name: str, revision: str = '') -> str:
    """A card whose lines of code and commands get the folder from the hub: the model `name`, of a branch or a tag."""
    given = repr(name) + (f', revision={revision!r}' if revision else '')
    place = f'{name}@{revision}' if revision else name
    text = text.replace(HERE, ON_HUB.format(given=given))
    return text.replace('bioptimus predict . ', f'bioptimus predict {place} ').replace(
        "bx.predict('.',", f"bx.predict('{place}',"
    )


def _tags(config: HasTraining | None, from_scratch: bool) -> list[str]:
    """The tags that hold: one phase is no curriculum, and what begins at random is not adapted."""
    lacking = [TAGS[0]] * (config is not None and len(config.phases) == 1) + [TAGS[1]] * from_scratch
    return [tag for tag in TAGS if tag not in lacking]


def with_article(title: str) -> str:
    """`A BERT`, `An ELECTRA`."""
    return f'{"An" if title[0] in "AEIOU" else "A"} {title}'


def scored(task: Any, dataset: str, percent: float, seeds: int) -> EvalResult:
    """The test score of a `finetuning.task.Task` on a set, as the hub's model-index has it."""
    return EvalResult(
        task_type=task.hub,
        task_name=task.title,
        dataset_type=dataset,
        dataset_name=dataset,
        dataset_split='test',
        metric_type=task.metric.name,
        metric_name=f'{task.metric.title}, mean of {numbered(seeds, "fine-tuning seed")}',
        metric_value=round(percent, 2),
    )


def _source(source: Source) -> CardFacts | None:
    """What is known of the source, None where there is none."""
    if wanted := hub_model(source.path):
        return dataclasses.replace(card_facts(_cached(wanted)), base_model=wanted.name)
    return card_facts(Path(source.path)) if source.path else None


def card_facts(folder: Path) -> CardFacts:
    """What the card of a model's folder says; its name on the hub if the folder is of the hub's cache."""
    named = re.search(CACHED, str(folder.resolve()))
    facts = CardFacts(base_model=named[1].replace('--', '/') if named else None)
    if (folder / NAME).is_file():
        with contextlib.suppress(Exception):  # somebody else's: without metadata, or with broken ones
            said = ModelCard.load(folder / NAME, ignore_metadata_errors=True).data.get
            return dataclasses.replace(
                facts, license=said('license') or None, language=said('language') or None
            )
    return facts


def widget_of(purpose: Purpose, folder: Path | None) -> list[dict[str, str]] | None:
    """What the hub shows beside the model to try it, where it can be tried in a browser."""
    mask = (read_json(folder / SETTINGS) or {}).get('mask_token') if folder else None
    mask = mask.get('content') if isinstance(mask, dict) else mask
    return [{'text': EXAMPLE.format(mask=mask)}] if purpose.pipeline and purpose.masks and mask else None


def _cached(wanted: HubModel) -> Path:
    """Where the hub's client keeps a source that was downloaded for surgery."""
    from huggingface_hub import try_to_load_from_cache

    file = try_to_load_from_cache(wanted.name, NAME, revision=wanted.revision)
    return Path(file).parent if isinstance(file, str) else Path(wanted.name)


def _datasets(corpora: Collection[Manifest]) -> list[str] | None:
    """Data sets that are known for certain: NLM's files by their names, and those that came from the hub."""
    names = [name.partition(':')[2] for corpus in corpora for name in corpus.inputs]
    found = ['ncbi/pubmed'] * any(map(PUBMED_NAME.fullmatch, names))
    urls = [url for corpus in corpora for url in (corpus.origins or {}).get('corpus.inputs', ())]
    found += [url.removeprefix('hf://datasets/').partition('@')[0] for url in urls]
    return list(dict.fromkeys(found)) or None


def facts_of_model(architecture: Architecture, about: Export) -> list[str]:
    """Size, what the gate measured, and what is beside the weights, a line each."""
    a = architecture
    lines = [
        f'{numbered(a.layers, "layer")} x {a.hidden}, {numbered(a.heads, "head")}, {a.vocab_size:,} tokens, '
        f'documents of up to {a.positions:,} pieces'
    ]
    if gate := about.gate:
        lines.append(
            f'Checked on reload with transformers: {gate["pieces"]} pieces compared, hidden states within '
            f'{gate["hidden"]:.1e}, logits within {gate["logits"]:.1e}'
        )
    if about.untouched:
        names = ', '.join(f'`{name}`' for name in about.untouched)
        lines.append(f'Beside these weights, as in the source and not trained further: {names}')
    lines.append('`sha256sums` holds the checksums of the files; `export.json` records where they come from')
    return lines


def _made(
    history: History | None, name: str, source: CardFacts | None, architecture: Architecture
) -> list[str]:
    if history is None:
        return ['Not on record']
    config = history.config
    lines = [_of_source(source, history.surgery, architecture)]
    lines += _corpora(history, name)
    if vocab := VocabCounts.of(history.vocab):
        shared = (
            f', {vocab.kept:,} shared with the source, {vocab.new:,} new' if vocab.kept is not None else ''
        )
        kind = type(TOKENIZERS.load(config.vocab.tokenizer)).__name__
        lines.append(f'Vocabulary: {config.vocab.kind}, {kind}, {architecture.vocab_size:,} tokens{shared}')
    made = SurgeryCounts.of(history.surgery)
    if made and made.synthesised:
        lines.append(
            f'New embedding rows: {made.strategy}, {numbered(made.copied, "row")} copied, '
            f'{made.synthesised:,} made{_of_rows(config.surgery)}; '
            f'{sum(made.fallbacks.values()):,} by a fallback'
        )
    lines.append(_training(config))
    return lines


def _corpora(history: History, model: str) -> list[str]:
    """What the documents behind a model are, and where several corpora were read, how much of each."""
    documents, shares = history.documents_of(model), history.shares_of(model)
    if len(documents) == 1:
        return _corpus(history.corpus) if history.corpus.counts else []
    lines = [
        f'Rows of phase {phase}: '
        + ', '.join(f'{of[phase]:.1%} of corpus `{name}`' for name, of in shares.items() if of[phase])
        for phase in shares[OWN]
    ]
    lines.append(f'Corpus `{OWN}` is that of this run, and the held-out documents are of it')
    return lines + [line for name, found in documents.items() for line in _corpus(found, name)]


def _corpus(manifest: Manifest, name: str = '') -> list[str]:
    """What is on record of a corpus; `name`: where it is one of several."""
    corpus, named = CorpusCounts.of(manifest), f' `{name}`' * bool(name)
    if not corpus:
        return [f'Corpus{named}: not on record']
    kinds = ', '.join(f'{n:,} {SPECIAL_ARTICLES[kind]}' for kind, n in corpus.kinds.items())
    left = ', '.join(f'{n:,} {why.replace("_", " ")}' for why, n in corpus.left_out.items())
    return [
        f'Corpus{named}: {numbered(corpus.train, "document")} for training ({corpus.words.get("train", 0):,} words), '
        f'{corpus.heldout:,} held out; of {corpus.documents_read:,} read were left out: {left or "none"}'
        f'{"; the documents contain " + kinds if kinds else ""}',
        f'Benchmark texts{" in" * bool(name)}{named}: {_audit(corpus, "this corpus" if name else "everything")}',
    ]


def _of_rows(settings: Surgery) -> str:
    """What is said of new rows: their scale, where they have one, and the keys that are not as by default, each after a
    comma; no path."""
    paths = {field.name for field in dataclasses.fields(settings) if field.metadata.get('path')}
    named = {name: value for name, value in settings.different(Surgery()).items() if name != 'batch_pieces'}
    named |= {'scale': settings.scale} if settings.initialisation.scaled else {}
    return ''.join(f', {name} {value}' for name, value in named.items() if name not in paths)


def _training(config: HasTraining) -> str:
    """Optimiser, learning rates with their fall, of each phase where phases differ, batches, seed."""
    p, phases = config.pretrain, config.trained_phases
    rates = list(dict.fromkeys(f'{phase.learning_rate or p.learning_rate:g}' for phase in phases))
    falls = list(dict.fromkeys(phase.fall for phase in phases))
    told = ', '.join(f'it falls {FALLS[fall].meaning}' for fall in falls)
    averaged = f'. These weights are an average over steps with a decay of {p.ema:g}' if p.ema else ''
    if p.averages and not p.ema:
        averaged = f'. These weights are those that {p.optimizer} evaluates in place of the trained ones'
    told += f'. {adapter.words(p)}' if p.lora else ''
    return (
        f'Training: {p.optimizer}, learning rate {", ".join(rates)}{" by phase" * (len(rates) > 1)}; after its warm-up '
        f'{told}; {_batches(config)}, seed {config.seed}{averaged}'
    )


def _batches(config: HasTraining) -> str:
    """The batches of every phase and of its warm-up, each size once, in the order of training."""
    return 'batches of ' + ', then '.join(
        f'{rows} rows of {pieces} pieces' for rows, pieces in batch_sizes(config)
    )


def _of_source(source: CardFacts | None, surgery: Manifest, architecture: Architecture) -> str:
    if not source:
        return 'Source: none; weights from scratch'
    inputs = surgery.inputs
    weights = [value for name, value in inputs.items() if value and name.endswith(('.safetensors', '.bin'))]
    checksum = f', weights with SHA-256 `{weights[0][:16]}…`' if weights else ''
    name = source.base_model or f'a Hugging Face {architecture.title} folder'
    return f'Source: {name}{checksum}'


def _audit(corpus: CorpusCounts, whole: str) -> str:
    """How far benchmark sentences were looked for; `whole`: what the documents that hold one were left out of."""
    found = corpus.audit
    if not found or not found.sentences:
        return 'none were named, so none were looked for or left out'
    return (
        f'{found.sentences:,} sentences were looked for by text, '
        f'{corpus.left_out.get("benchmark", 0):,} documents that hold one were left out of {whole}; '
        f'{found.too_short:,} sentences are too short to be found'
    )


def _curriculum(history: History | None, name: str) -> str:
    """Phases up to this model with steps and held-out loss; later ones are not its history."""
    if history is None or not history.placed:
        return ''
    config, losses = history.config, history.losses
    lines = [
        '## Curriculum\n',
        '| phase | objective | masked | rate | [MASK]-random-same | steps until | held-out loss |',
        '|---|---|---|--:|--:|--:|--:|',
    ]
    if 0 in losses:
        lines.append(f'| step 0 | | | | | 0 | {losses[0]:.3f} |')
    objectives = []
    for phase in history.phases_of(name):
        stop, objective = phase.stop, config.objective_in(phase.name)
        objectives.append(objective)
        masking = masking_of(config, phase.name) or ('—', '—', '—')
        loss = f'{losses[stop]:.3f}' if stop in losses else '—'
        lines.append(f'| {phase.name} | {objective} | {" | ".join(masking)} | {stop:,} | {loss} |')
    told = '. '.join(objective_in_words(config, objective) for objective in dict.fromkeys(objectives))
    lines.append(f'\nObjective {told}.' if told else '')
    lines.append(f'Held-out loss: {heldout_loss_of(config)}, on documents {_unseen(history, name)}.\n')
    return '\n'.join(lines)


def _unseen(history: History, model: str) -> str:
    """How far the held-out documents of a model were not trained on."""
    known = {one.corpus: overlap.in_words(one) for one in history.overlaps}
    told = [
        known.get(name, f'how many of them are in corpus {name} is not on record')
        for name in history.documents_of(model)
        if name != OWN
    ]
    if not told:
        return 'never trained on'
    sentences = (sentence[0].upper() + sentence[1:] for sentence in told)
    return '. '.join([f'of corpus {OWN} that are left out of its rows', *sentences])


def _scores_text(scores: Sequence[EvalResult]) -> str:
    if not scores:
        return ''
    rows = [f'| {s.dataset_name} | {s.metric_value:.2f} | {s.metric_name} |' for s in scores]
    return '\n'.join(['## Scores\n', '| set | test score | |', '|---|--:|---|', *rows, ''])


def _limits(
    config: HasTraining | None,
    source: CardFacts | None,
    scores: Sequence[EvalResult],
    purpose: Purpose,
) -> list[str]:
    of_scores = (
        'Scores are for these sets and this fine-tuning; other tasks were not measured'
        if scores
        else 'This card is written at export, before any fine-tuning: scores are in the report of the run'
    )
    biases = 'It has learned whatever biases the texts have; they were not measured'
    lines = [f'It {purpose.does}', biases, of_scores]
    if config and all(objective_of(config, name).causal for name in config.trained_objectives):
        lines.append('No phase has trained it to fill in masked words, but to go on with a text')
    if source and not source.license:
        lines.append('The licence of the source is not on record; find it before you publish this folder')
    # The source's language is not that of the texts.
    if config and not config.corpus.languages:
        lines.append('The language of the corpus is not on record')
    return lines


def bullets(lines: Sequence[str]) -> str:
    """Lines of Markdown's lists."""
    return ''.join(f'- {line}\n' for line in lines)

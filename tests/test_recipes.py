"""The schedule of every shipped recipe against the published numbers; what was chosen here is not held."""

import dataclasses

import jax.numpy as jnp
import pytest
from toy_configs import shipped_configs

from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.plan import Assumptions, make_plan
from bioptimus_jax.pretrain.shape import RowCounts

COUNTS = RowCounts(10**9, 1, 1)
BERT = {
    'beta1': 0.9,
    'beta2': 0.999,
    'epsilon': 1e-6,
    'weight_decay': 0.01,
    'clip_norm': 1.0,
    'decay': 'bert',
}
ROBERTA = {**BERT, 'beta2': 0.98, 'clip_norm': 0.0, 'decay': 'all'}
MODERN = {'beta1': 0.9, 'beta2': 0.98, 'weight_decay': 1e-5}
STABLE = {**MODERN, 'optimizer': 'stable_adamw', 'decay': 'bert'}
BASE, LARGE = (12, 768, 12, 3072), (24, 1024, 16, 4096)


@dataclasses.dataclass(frozen=True)
class Published:
    """What a paper, or the code that it says it follows, states of a recipe. None: it does not.

    `phases`: (objective, masking rate, steps or tokens) of each. `warmup`: steps. `last`: the share of the peak that
    the last phase ends at. `optimizer`: keys of config.pretrain. `pieces`: of a row.
    """

    peak: float
    phases: tuple[tuple[str, float, float], ...]
    batch_rows: int | None = None
    warmup: int | None = None
    last: float | None = 0.0
    optimizer: dict[str, object] = dataclasses.field(default_factory=dict)
    pieces: int | None = 512
    shape: tuple[int, ...] | None = BASE
    masking: str = 'tokens'
    corruption: tuple[float, ...] = (0.8, 0.1, 0.1)
    layout: str = 'documents'


PUBMEDBERT = Published(6e-4, (('nsp', 0.15, 62_500),), 8192, 6250, 0.0, BERT, masking='words', layout='pairs')
ELECTRA = Published(6e-4, (('rtd', 0.15, 62_500),), 8192, 6250, 0.0, BERT, corruption=(0.85, 0.0, 0.15))
ORIGINAL = dataclasses.replace(ELECTRA, peak=2e-4, warmup=10_000)
BIOLM = Published(6e-4, (('mlm', 0.15, 500_000),), 8192, 25_000, 0.0, ROBERTA)
BIOLM_LARGE = dataclasses.replace(BIOLM, peak=4e-4, shape=LARGE)
DISTIL = Published(5e-4, (('distil', 0.15, 50_000),), 8192, 2500, 0.0, ROBERTA)
MODERNBERT = Published(
    3e-4, (('mlm', 0.30, 0), ('mlm', 0.15, 0)), None, 0, None, MODERN, None, (22, 768, 12, 1152)
)
DETOUR = Published(
    2e-4, (('causal', 0.15, 50e9), ('mlm', 0.15, 5e9)), None, None, 0.1, MODERN, None, (22, 768, 12, 1152)
)


def of(recipe, *objectives, **changes):
    """Another recipe with other objectives, or other steps (`steps`) in its only phase."""
    phases = recipe.phases
    if objectives:
        phases = tuple((name, *phase[1:]) for name, phase in zip(objectives, phases, strict=True))
    if steps := changes.pop('steps', None):
        phases = ((*phases[0][:2], steps),)
    return dataclasses.replace(recipe, **{'phases': phases, **changes})


RECIPES = {
    **{f'pubmedbert:{name}': PUBMEDBERT for name in ('abstracts', 'pmc', 'general')},
    'pubmedbert': PUBMEDBERT,
    'pubmedbert:pmc_long': of(PUBMEDBERT, steps=100_000, warmup=10_000),
    'pubmedbert:pieces': of(PUBMEDBERT, masking='tokens'),
    'pubmedbert:general_pieces': of(PUBMEDBERT, masking='tokens'),
    'pubmedbert:adversarial': of(PUBMEDBERT, 'adversarial'),
    'large': of(PUBMEDBERT, shape=LARGE),
    'large:lower': of(PUBMEDBERT, shape=LARGE, peak=4e-4),
    'electra:ft': ELECTRA,
    'electra:ft_large': of(ELECTRA, shape=LARGE),
    'electra:original': of(ORIGINAL, steps=766_000, batch_rows=256),
    'electra:original_small': of(
        ORIGINAL, steps=1_000_000, batch_rows=128, peak=5e-4, pieces=128, shape=(12, 256, 4, 1024)
    ),
    'electra:original_large': dataclasses.replace(
        ORIGINAL, phases=(('rtd', 0.25, 400_000),), batch_rows=2048, shape=LARGE
    ),
    **{f'biolm:base_{arm}': BIOLM for arm in ('pm', 'pm_voc', 'pm_m3', 'pm_m3_voc')},
    **{f'biolm:large_{arm}': BIOLM_LARGE for arm in ('pm', 'pm_voc', 'pm_m3', 'pm_m3_voc', 'continued')},
    **{'biolm': BIOLM, 'biolm:continued': BIOLM, 'biolm:large': BIOLM_LARGE},
    **{
        f'distil:{arm}': DISTIL
        for arm in ('distil', 'align', 'cosine', 'distil_distilbert', 'align_distilbert')
    },
    'distil:longer': of(DISTIL, 'mlm'),
    **{f'modernbert{arm}': MODERNBERT for arm in ('', ':replace', ':keep')},
    'bioclinical': dataclasses.replace(
        MODERNBERT, phases=(('mlm', 0.30, 160e9), ('mlm', 0.15, 8.2e9)), optimizer=STABLE
    ),
    'detour': DETOUR,
    'detour:masked': of(DETOUR, 'mlm', 'mlm'),
}
# They hold no published schedule, or in small; that of BIOptimus is held by test_plan.py and test_curriculum.py.
OTHERS = {
    'ablations',
    'biolm_tasks',
    'bioptimus',
    'blurb',
    'demo',
    'embed',
    'longer',
    'finetune',
    'flagship',
    'objectives',
    'practice',
    'real',
    'recommended',
    'small',
    'bioclinical:notes',
}


@pytest.fixture
def folders(monkeypatch):
    for name in ('DATA', 'SOURCE', 'TEACHER'):
        monkeypatch.setenv(f'BIOPTIMUS_{name}', f'/{name}')


def test_every_recipe_has_a_line():
    found = {name for name in shipped_configs() if not {name, name.partition(':')[0]} & OTHERS}
    assert found == RECIPES.keys()


@pytest.mark.parametrize('name', RECIPES)
def test_the_schedule_is_the_published_one(name, folders):
    published, e = RECIPES[name], Experiment.from_config(config.load(name), paths=False)
    assert published.batch_rows in (None, e.pretrain.batch_rows)
    assert published.pieces in (None, e.rows.row_pieces)
    assert e.rows.layout == published.layout
    model = e.model
    assert (model.layers, model.hidden, model.heads, model.intermediate) == published.shape
    assert model.dropout == model.attention_dropout == (0.0 if model.family == 'modernbert' else 0.1)
    assert {key: getattr(e.pretrain, key) for key in published.optimizer} == published.optimizer
    planned = make_plan(e, Assumptions(words=4e9))
    assert [p.name for p in planned.phases] == list(e.phases)
    wanted = zip(published.phases, planned.phases, strict=True)
    for (objective, rate, length), of_phase in wanted:
        phase = e.phase[of_phase.name]
        assert (e.objective_in(of_phase.name), phase.rates) == (objective, (rate, rate))
        assert (phase.masking, phase.corruption) == (published.masking, published.corruption)
        if phase.duration_unit == 'steps' and published.batch_rows:
            assert of_phase.steps == length
        elif phase.duration_unit == 'steps':
            assert of_phase.steps * e.pretrain.batch_rows * e.rows.row_pieces == pytest.approx(
                length, rel=1e-3
            )
        elif length:
            assert (phase.duration_unit, phase.duration) == ('tokens', length)
    steps = dataclasses.replace(
        e,
        phase={
            p.name: dataclasses.replace(e.phase[p.name], duration=float(p.steps), duration_unit='steps')
            for p in planned.phases
        },
    )
    table = curriculum.table(schedule := curriculum.make_schedule(steps, COUNTS), steps)
    rate = lambda step: float(curriculum.learning_rate_at(table, jnp.int32(step))) / published.peak  # noqa: E731
    last, total = schedule[-1], schedule[-1].stop
    if published.warmup is not None:
        assert rate(published.warmup) == pytest.approx(1, rel=1e-3)
        if published.warmup:
            assert rate(published.warmup // 2 - 1) == pytest.approx(0.5, abs=1e-3)
            assert rate((published.warmup + total) // 2) == pytest.approx(0.5, abs=1e-3)
    if published.last is not None:
        assert rate(total) == pytest.approx(published.last, abs=2e-3)
    if len(schedule) > 1:  # as the source left off, then 1 - sqrt
        assert rate(last.start - 1) == rate(last.start) == pytest.approx(1)
        fallen = 1 - (1 - (published.last or 0)) * 0.25**0.5
        assert rate(last.start + (total - last.start) // 4) == pytest.approx(fallen, abs=2e-3)


def test_what_else_pubmedbert_states(folders):
    """Abstracts of 128 words and more, uncased; 512 million sequences; the ablation crosses vocabulary and masking."""
    for name in ('pubmedbert', 'large', 'pubmedbert:adversarial'):
        e = Experiment.from_config(config.load(name), paths=False)
        assert (e.corpus.min_words, e.vocab.lowercase) == (128, True)
        assert e.pretrain.batch_rows * e.phase['0.2'].duration == 512_000_000
    arms = [
        config.load(f'pubmedbert:{name}') for name in ('general_pieces', 'general', 'pieces', 'abstracts')
    ]
    crossed = [(arm.vocab.kind, [arm.phase[name].masking for name in arm.phases]) for arm in arms]
    assert crossed == [(kind, [unit]) for kind in ('file', 'train') for unit in ('tokens', 'words')]
    assert all(arm.pretrain == arms[0].pretrain for arm in arms)


def test_biolms_grid_is_size_times_corpus_times_vocabulary(folders):
    found = set()
    for size in ('base', 'large'):
        for corpus in ('pm', 'pm_m3'):
            for own in ('', '_voc'):
                e = Experiment.from_config(config.load(f'biolm:{size}_{corpus}{own}'), paths=False)
                assert (e.vocab.tokenizer, e.vocab.lowercase) == ('bytelevel', False)
                assert any('pmc' in files for files in e.corpus.inputs)
                assert (e.source.path == '') == bool(own)
                notes = any('NOTEEVENTS' in files for files in e.corpus.inputs)
                found.add((e.model.layers, notes, e.vocab.kind, e.surgery.strategy, e.source.path))
    assert len(found) == 8
    assert {kind for _, _, kind, strategy, _ in found if strategy == 'scratch'} == {'train'}
    assert {kind for _, _, kind, strategy, _ in found if strategy == 'copy'} == {'source'}
    large = {path for layers, _, kind, _, path in found if (layers, kind) == (24, 'source')}
    assert [path.partition('@')[0] for path in large] == ['FacebookAI/roberta-large']


def test_bioclinical_changes_its_corpus_with_the_phase(folders):
    """Clinical texts are 2.73 of 53.3 billion tokens, and all of the decay."""
    e = Experiment.from_config(config.load('bioclinical'), paths=False)
    stable, decay = (e.phase[name].corpora for name in e.phases)
    shares = dict(part.split('=') for part in stable)
    assert float(shares['clinical']) == pytest.approx(8.2 / 160, abs=1e-3)
    assert sum(map(float, shares.values())) == pytest.approx(1)
    assert decay == ('clinical=1',)
    notes = Experiment.from_config(config.load('bioclinical:notes'), paths=False)
    assert notes.rows == e.rows
    assert (notes.vocab, notes.source) == (e.vocab, e.source)

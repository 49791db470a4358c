"""Hand-made run folders in the formats of the stages: what the report, its page and its comparisons are tested on."""

import json

import numpy as np

from bioptimus_jax.analysis.geometry import of_words
from bioptimus_jax.analysis.word_geometry import VECTOR_KINDS
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning.entities.files import write_predictions
from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.pretrain.config import PAPER_PHASES
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.records.record import plain
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.run.fingerprint import result_keys
from bioptimus_jax.run.folder import Run
from bioptimus_jax.scoring.score import score
from bioptimus_jax.storage.files import write_json, write_jsonl
from bioptimus_jax.surgery.config import PAPER_ROWS

MODELS = ('one', 'two')
WORD_MEASURES = (
    *('cosine', 'cosine_centred', 'top_share_uncentred', 'top_share', 'isoscore', 'purity', 'purity_centred'),
    'centroid_distance',
)


def scores(f1, gold=100):
    return {'precision': f1 - 0.01, 'recall': f1 + 0.01, 'f1': f1, 'gold': gold, 'predicted': gold}


def cell(model, dataset, setting, seed, f1, types=('X', 'Y')):
    """A record of results.jsonl; test is a point worse than devel."""
    modes = {'default': 0.0, 'strict': -0.02, 'relaxed': 0.04}
    by_type = {kind: scores(f1 - 0.01 + 0.1 * at, 60 - 20 * at) for at, kind in enumerate(types)}
    record = {
        'model': model,
        'dataset': dataset,
        'setting': setting,
        'seed': seed,
        'devel': {mode: scores(f1 + more) for mode, more in modes.items()},
        'test': {mode: scores(f1 - 0.01 + more) for mode, more in modes.items()},
        'test_untyped': {mode: scores(f1 + 0.02 + more) for mode, more in modes.items()},
        'test_by_type': by_type,
        'gold_in_file': 100,
        'gold_scored': 100,
        'sentences': {'train': 9, 'devel': 3, 'test': 3},
        'seconds': 30.0,
        'history': [{'epoch': e, 'loss': 1 / e, 'devel_f1': f1 - 0.1 * (3 - e)} for e in (1, 2, 3)],
        'best_epoch': 3,
    }
    return FineTuning.read(record, 'scores')


def statistics_of(model, dataset, setting, failures=()):
    test = {'seeds': 2, 'failed': len(failures), 'mean': 0.5, 'sd': 0.1, 'mean_without_failed': 0.75}
    return {
        'model': model,
        'dataset': dataset,
        'setting': setting,
        'devel': {'default': test},
        'test': {'default': test},
        'interval': [0.601, 0.7234],
        'unit': 'documents',
        'units': 3,
        'failures': dict(failures),
    }


def measure(recall, gold):
    if recall is None:
        return {'gold': gold, 'predicted': 2.0, 'recall': None, 'recall_interval': None}
    return {
        'gold': gold,
        'predicted': 2.0,
        'recall': recall,
        'recall_interval': [recall - 0.05, recall + 0.05],
    }


SLICES = {
    'surface': {'seen': measure(0.9, 1200), 'unseen': measure(0.5, 30)},
    'surface_and_type': {'seen': measure(0.9, 1200), 'unseen': measure(0.5, 30)},
    'pieces': {'1': measure(0.8, 700), '3-4': measure(0.6, 400), '5+': measure(None, 0)},
    'words': {'1': measure(0.7, 1230)},
}


OWN = {
    'new_token': {'with': measure(0.8, 20), 'without': measure(0.6, 10)},
    'contexts': {'0': measure(0.2, 5), '20+': measure(0.8, 15)},
    'frequency': {'<1': measure(0.3, 4), '>100': measure(0.9, 26)},
}


def lint_record(name, **changes):
    split = {
        'documents': 1,
        'sentences': 1000,
        'words': 20_000,
        'mentions': 5000,
        'mentions_not_strict': 0,
        'mentions_by_type': {'X': 5000},
        'sentences_without_mention': 100,
        'longest_sentence_words': 90,
        'long_sentences': 0,
        'mentions_in_file': 5000,
        'mentions_left_out': 0,
        'repairs': {},
    }
    pieces = {
        'words_without_piece': 2,
        'of_them_in_mentions': 1,
        'mentions_without_piece': 0,
        'examples': [],
        'longest_sentence_pieces': 130,
        'long_sentences': 3,
    }
    places = ('within train', 'within devel', 'within test', 'devel from train', 'test from train')
    return {
        'dataset': name,
        'blurb': '',
        'form': 'columns',
        'scheme': 'IOB2',
        'columns': '',
        'types': ['X'],
        'merged_types': [],
        'cut': 'prose',
        'cut_otherwise': 0,
        'unseen_labels': {},
        'splits': {s: dict(split) for s in ('train', 'devel', 'test')},
        'repeated': {
            place: {'sentences': at, 'mentions': 0} for at, place in enumerate((*places, 'test from devel'))
        },
        'tagged_differently': {'sentences': 0, 'examples': []},
        'tokenizers': {
            MODELS[0]: {'max_pieces': 128, **{s: dict(pieces) for s in ('train', 'devel', 'test')}}
        },
        **changes,
    }


def labels_of(types):
    tags = {'O': 0.9} | {f'{part}-{kind}': 0.05 / len(types) for kind in types for part in 'BI'}
    return {
        split: {
            'words': 100,
            'mentions': 50,
            'tags': tags,
            'types': {kind: 1 / len(types) for kind in types},
        }
        for split in ('train', 'devel', 'test')
    }


def write_scores(folder, models, datasets, own=()):
    """statistics.json, slices.json, lint.json and labels.json of models and sets, beside results.jsonl."""
    pairs = [(model, dataset) for model in models for dataset in datasets]
    write_json(folder / 'statistics.json', [statistics_of(*pair, 'standard') for pair in pairs])
    sliced = [
        {
            'model': model,
            'dataset': dataset,
            'setting': 'standard',
            'slices': SLICES | (OWN if model in own else {}),
            'overlap': {},
        }
        for model, dataset in pairs
    ]
    write_json(folder / 'slices.json', sliced)
    write_json(folder / 'lint.json', [lint_record(name) for name in datasets])
    write_json(folder / 'labels.json', {name: labels_of(['X', 'Y']) for name in datasets})


PHASES = ('0.1', '0.2', '0.3', '0.4')


def fabricate(workdir, finished=True):
    """A run folder in the stages' formats; unfinished: pre-training stopped in phase 0.2."""
    run = Run(workdir, Experiment(), quiet=True)
    last = 400 if finished else 150
    for step in range(10, last + 1, 10):
        phase = PHASES[(step - 1) // 100]
        rate = Experiment().phase[phase].rate
        loss = 6.0 - step / 150 + (0.4 if phase > '0.1' else 0)
        run.metrics.write(
            'pretrain',
            step,
            kind='train',
            phase=phase,
            loss=loss,
            accuracy=step / 1000,
            learning_rate=1e-4 * (1 - step / 400),
            gradient_norm=1.0,
            tokens=step * 4096,
            tokens_per_second=9000.0,
            realised_rate=rate + 0.002 * (step % 3 - 1),
            flops=step * 1e12,
            seconds=step * 0.9,
            joules=step * 360.0,
            fill=0.92,
            nsp_accuracy=0.5 + step / 1000,
        )
    for step in range(0, last + 1, 50):
        phase = PHASES[(step - 1) // 100] if step else 'initial'
        losses = {name: 6.1 - step / 140 + number / 20 for number, name in enumerate(PHASES)}
        run.metrics.write(
            'pretrain',
            step,
            kind='evaluation',
            phase=phase,
            tokens=step * 4096,
            frozen_loss=6.2 - step / 140,
            frozen_accuracy=0.1 + step / 1000,
            losses=losses,
            phase_end=step % 100 == 0,
            **{'entities/ncbi-disease': 0.3 + step / 5000},
        )
    tokens = [{'token': f'shared{i}', 'kind': 'copied', 'norm': 1.1 + i / 900} for i in range(90)]
    for i in range(60):
        tokens.append(
            {
                'token': f'immunoassay{i}',
                'kind': 'synthesised',
                'spelling': ['im', '##muno', '##assay', *['##s', '##t', '##ri', '##ng'] * (i % 2)],
                'contexts': (0, 7, 20)[i % 3],
                'norm': 4 + i / 40,
                'cosine': 0.7,
                'neighbours': [f'shared{i}', '##assay', *(f'immunohistochemistry{n}' for n in range(8))],
                'fallback': '' if i % 3 else 'no context',
            }
        )
    tokens = [{'token': t.pop('token'), 'id': i, **t} for i, t in enumerate(tokens)]
    write_jsonl(run.workdir / 'surgery' / 'tokens.jsonl', tokens)
    write_json(
        run.workdir / 'corpus' / 'manifest.json',
        manifest(
            'corpus',
            {
                'read': 1000,
                'left_out': {'duplicate_text': 4, 'benchmark': 3},
                'kinds': {'retracted': 2},
                'train': 983,
                'heldout': 10,
                'words': {'train': 98_300, 'heldout': 1000},
            },
        ),
    )
    leak = {'dataset': 'ncbi-disease', 'split': 'test', 'text': 'A <leaked> sentence .'}
    other = {'dataset': 'drugs', 'split': 'devel', 'text': 'Another one .'}
    write_jsonl(
        run.workdir / 'corpus' / 'audit.jsonl',
        [
            {'document': 'a1', 'source': 'x.jsonl', 'sentences': [leak, other]},
            {'document': 'a2', 'source': 'x.jsonl', 'sentences': [leak]},
            {'document': 'a3', 'source': 'x.jsonl', 'sentences': [{**leak, 'text': 'A third .'}]},
        ],
    )
    if finished:
        finish(run)
    return run


def finish(run):
    cells = [
        ner_cell(model, dataset, seed, number)
        for number, model in enumerate(('initial', *PHASES))
        for dataset in ('ncbi-disease', 'drugs')
        for seed in (0, 1, 2)
    ]
    write_jsonl(run.workdir / 'finetune' / 'results.jsonl', plain(cells))
    write_scores(run.workdir / 'finetune', ('initial', *PHASES), ('ncbi-disease', 'drugs'), own=PHASES)
    cloze = [
        {
            'model': model,
            'mask': 'm',
            'words': 1000,
            'pieces': 1200,
            'characters': 5000,
            'nats_per_word': 6 - number,
            'nats_per_word_error': 0.05,
            'bits_per_character': 1.5 - number / 9,
            'word_accuracy': 0.1 * number,
            'nats_per_piece': 5 - number,
            'one_piece': {'words': 880, 'nats_per_word': 4 - number / 2, 'word_accuracy': 0.5},
        }
        for number, model in enumerate(('initial', *PHASES))
    ]
    write_json(run.workdir / 'analyze' / 'cloze.json', cloze)
    write_json(run.workdir / 'difficulty.json', measured_difficulty())
    rows = {
        'all': {
            'count': 150,
            'norm_mean': 1.4,
            'norm_sd': 0.2,
            'cosine': 0.31,
            'cosine_error': 0.01,
            'cosine_centred': 0.01,
            'cosine_centred_error': 0.01,
            'top_component_share': 0.12,
            'norm_quantiles': {},
        }
    }
    write_vocabulary(run)
    models = ('initial', '0.1', '0.4')
    write_json(
        run.workdir / 'analyze' / 'geometry.json',
        [{'model': m, 'rows': rows, 'words': measured_words(shift)} for shift, m in enumerate(models)],
    )
    plane = {kind: np.random.default_rng(0).normal(size=(20, 2)).tolist() for kind in VECTOR_KINDS}
    points = {
        'words': ['w'] * 20,
        'high': [False, True] * 10,
        'models': [{'model': m, **plane} for m in models],
    }
    write_json(run.workdir / 'analyze' / 'points.json', points)
    for stage in ('vocab', 'contexts', 'surgery', 'rows', 'pretrain', 'export', 'finetune', 'analyze'):
        train = {'tokens': 4000, 'words': 3000, 'rows': 10}
        counts = {'train': train} if stage == 'rows' else {'tokens': 12345}
        inputs = {'vocab': 'x', 'contexts': 'x'} if stage == 'surgery' else {}
        write_json(run.workdir / stage / 'manifest.json', manifest(stage, counts) | {'inputs': inputs})


def measured_difficulty():
    """Two models under the four settings, as `bioptimus difficulty` writes them."""

    def found(mean):
        samples = [mean - 1, mean, mean + 1]
        return {'mean': mean, 'interval': [mean - 2.5, mean + 2.5], 'samples': samples}

    def setting(mean, whole):
        kinds = {'perplexity': found(mean), 'masked': found(mean + 1)}
        kinds |= dict.fromkeys(('replaced', 'kept'), None if whole else found(mean - 3))
        return kinds | {'positions': {'perplexity': 900.0, 'masked': 720.0, 'replaced': 90.0, 'kept': 90.0}}

    phases = {
        name: {'masking': p.masking, 'rate': p.rate, 'corruption': list(p.corruption)}
        for name, p in Experiment().phase.items()
    }
    models = [
        {
            'model': model,
            'folder': model,
            'computed_by': 'jax',
            'rows': 300,
            'pieces': 9000,
            'settings': {name: setting(40 + shift + 5 * i, name == '0.4') for i, name in enumerate(PHASES)},
        }
        for shift, model in enumerate(('initial', '0.4'))
    ]
    facts = {'texts': ['news.csv'], 'documents': 256, 'samples': 3, 'measure': 'masked', 'phases': phases}
    return {**facts, 'models': models, 'seconds': 9.0}


def measured_words(shift):
    """The geometry of forty words around a common direction: the larger `shift`, the smaller it is."""
    high = np.arange(40) % 2 == 1
    cloud = np.random.default_rng(0).normal(size=(40, 6)) + (3 - shift) * np.eye(6)[0]
    vectors = {kind: plain(of_words(cloud, high, seed=0)) for kind in VECTOR_KINDS}
    classes = {
        'low': {'median_count': 12.0, 'new': 0.9},
        'high': {'median_count': 3456.0, 'new': 0.25},
    }
    return {
        'digest': 'd',
        'count': 40,
        'split': 'train',
        'contexts': 10,
        'one_piece': 1.0,
        **classes,
        **vectors,
    }


CLASSES = ('100 or more', '10 to 100', '1 to 10', 'below 1')


def write_vocabulary(run):
    """The words of two corpora by class, and pieces of corpus and entities, as vocab and analyze write them."""
    classes = {
        name: {'different': 10**i, 'share': (0.7, 0.2, 0.08, 0.02)[i]} for i, name in enumerate(CLASSES)
    }
    corpora = {
        name: {'words': 10**7, 'different': 1111, 'classes': classes} for name in ('domain', 'general')
    }
    every = (*CLASSES, 'absent')
    cross = {g: {d: 10 * i + j for j, d in enumerate(every)} for i, g in enumerate(every)}
    del cross['absent']['absent']
    examples = [{'word': 'kinase', 'count': 1234}]
    frequency = {'per_million': [100, 10, 1], **corpora, 'cross': cross, 'examples': examples}
    write_json(run.workdir / 'vocab' / 'frequency.json', frequency)
    owners = {
        owner: {'words': 900, 'pieces_per_word': rate, 'unknown_words': 0.0, 'one_piece_words': 1 / rate}
        for owner, rate in (('vocabulary', 1.25), ('source', 2.0))
    }
    comparison = {
        'size': 30522,
        'documents_measured': 9,
        **owners,
        'kept': 12000,
        'new': 18522,
        'lost': 18000,
    }
    write_json(run.workdir / 'vocab' / 'comparison.json', comparison)
    mentions = {'mentions': 500, 'different': 400, 'one_piece_mentions': 0.3}
    sets = {name: {owner: owners[owner] | mentions for owner in owners} for name in ('drugs', 'ncbi-disease')}
    examples = [{'entity': 'lymphoma', 'count': 77, 'source': ['l', '##ym', '##ph', '##oma']}]
    write_json(
        run.workdir / 'analyze' / 'entities.json', {'split': 'train', 'datasets': sets, 'examples': examples}
    )


def manifest(stage, counts):
    return {
        'stage': stage,
        'config': {},
        'inputs': {},
        'content': 'x',
        'counts': counts,
        'files': {},
        'seconds': 65.0,
    }


def ner_cell(model, dataset, seed, number):
    def scores(f1):
        return {'precision': f1, 'recall': f1, 'f1': f1, 'gold': 480}

    base = 0.6 + number / 20 + seed / 100
    modes = {'default': scores(base), 'strict': scores(base - 0.02), 'relaxed': scores(base + 0.04)}
    record = {
        'model': model,
        'dataset': dataset,
        'setting': 'standard',
        'seed': seed,
        'devel': modes,
        'test': modes,
        'gold_in_file': 960,
        'gold_scored': 960,
        'sentences': {'train': 500, 'devel': 100, 'test': 340},
        'seconds': 30.0,
        'test_by_type': {'X': scores(base), 'Y': scores(base + 0.1)},
        'history': [{'epoch': e, 'loss': 1 / e, 'devel_f1': base * e / 3} for e in (1, 2, 3)],
        'best_epoch': 3,
    }
    return FineTuning.read(record, 'scores')


SENTENCES = 200
WORDS = 512_000
STEPS = 10  # of 256 rows of 200 words


TOKENS, WORDS_15, WORDS_20, MASKED = PAPER_PHASES.values()


def experiment(phases, **changes):
    loaded = config.defaults()
    loaded.phases = tuple(f'p{n}' for n in range(len(phases)))
    loaded.corpora = {'notes': {'run': '/notes'}}  # a path, which no manifest has
    for name, phase in zip(loaded.phases, phases, strict=True):
        loaded.phase[name] = config.phase(
            masking=phase.masking,
            rate=phase.rate,
            corruption=phase.corruption,
            duration=float(WORDS),
            duration_unit='words',
            schedule='restart',
        )
    loaded.surgery.update({**PAPER_ROWS, 'scale': 'rescaled'})
    loaded.evaluation.settings = tuple(PAPER_PHASES)
    for dotted, value in changes.items():
        config.override(loaded, dotted.replace('__', '.'), str(value))
    return Experiment.from_config(loaded)


def fine_tuned(folder, model, dataset, setting, seed, right, devel=None):
    """A cell of SENTENCES mentions of which `right` are found and nothing else: F1 = 2 right / (SENTENCES + right)."""
    found = set(np.random.default_rng(seed).permutation(SENTENCES)[:right].tolist())
    gold = [['O', 'B-X', 'O']] * SENTENCES
    tagged = [['O', 'B-X' if n in found else 'O', 'O'] for n in range(SENTENCES)]
    words = [['a', f'{dataset}{n}', 'b'] for n in range(SENTENCES)]
    cell = folder / 'finetune' / model / dataset / setting / f'seed-{seed}'
    write_predictions(
        cell / 'predictions.tsv', [Predicted(w, g, t, 0) for w, g, t in zip(words, gold, tagged, strict=True)]
    )
    test = score(gold, tagged)
    other = {'default': {'f1': devel if devel is not None else test['default']['f1']}}
    sizes = {'train': 50, 'devel': 20, 'test': SENTENCES}
    record = {
        'model': model,
        'dataset': dataset,
        'setting': setting,
        'seed': seed,
        'devel': other,
        'test': test,
        'gold_in_file': SENTENCES,
        'sentences': sizes,
    }
    return FineTuning.read(record, 'scores')


def f1(right):
    return 200 * right / (SENTENCES + right)


def make(
    folder,
    phases,
    right,
    seed=0,
    losses=None,
    corpus='c',
    steps=(),
    fine_tunings=(),
    weights='source',
    **changes,
):
    """A run folder; `right`: model -> dataset -> mentions found, models by number (0: first phase's end) or name.

    With the mentions, of all fine-tunings or of each, there may be the devel F1; `steps`: where the phases end;
    `fine_tunings`: their seeds.
    """
    e = experiment(phases, seed=seed, finetune__seeds=seed, **changes)
    run = Run(folder, e, quiet=True)
    of_source = {'0:config.json': 'x', '1:model.safetensors': weights}
    train = {'rows': 1000, 'words': 200_000, 'tokens': 260_000}
    described = {
        'corpus': {'content': corpus * 16},
        'vocab': {'content': ('v' if e.vocab.kind == 'train' else 's') * 16},
        'contexts': {'content': 'x'},
        'surgery': {'content': 'w', 'inputs': of_source},
        'rows': {'content': 'r', 'counts': {'train': train}},
        'pretrain': {'content': 'p'},
        'finetune': {'content': 'n'},
    }
    for stage, described_so in described.items():
        keys = result_keys(e, STAGES[stage].sections)
        manifest = {'stage': stage, 'config': keys, 'inputs': {}, 'counts': {}, 'seconds': 1.0}
        write_json(folder / stage / 'manifest.json', json.loads(json.dumps(manifest | described_so)))
    steps = steps or range(STEPS, STEPS * len(phases) + 1, STEPS)
    ends = zip(('initial', *e.phases), (0, *steps), strict=True)
    for n, (name, step) in enumerate(ends):
        values = {phase: (losses or 5.0) - 0.1 * n for phase in PAPER_PHASES}
        run.metrics.write(
            'pretrain',
            step,
            kind='evaluation',
            phase=name,
            phase_end=True,
            frozen_loss=6.0 - n,
            losses=values,
            tokens=step,
        )
    records = []
    for model, scores in right.items():
        name = e.phases[model] if isinstance(model, int) else model
        for number, tuning in enumerate(fine_tunings or (seed,)):
            records += [
                fine_tuned(folder, name, d, 'standard', tuning, *found_by(n, number))
                for d, n in scores.items()
            ]
    write_jsonl(folder / 'finetune' / 'results.jsonl', plain(records))
    return folder


def found_by(given, number):
    """Mentions found by that fine-tuning, and perhaps the devel F1, of one number for all or one for each."""
    mentions, *devel = given if isinstance(given, tuple) else (given,)
    return [mentions[number] if isinstance(mentions, tuple) else mentions, *devel]


def alike(value):
    """Every measure of words, each of this value."""
    return dict.fromkeys(WORD_MEASURES, dict.fromkeys(('value', 'low', 'high'), value))


def write_geometry(folder, cosine, model='p1'):
    record = {'digest': 'same', **{kind: alike(cosine) for kind in VECTOR_KINDS}}
    write_json(folder / 'analyze' / 'geometry.json', [{'model': model, 'rows': {}, 'words': record}])
    write_json(folder / 'analyze' / 'manifest.json', {'config': {}, 'content': 'a', 'inputs': {}})


def spent(folder):
    """The training records of a run, and the sentences that its contexts read."""
    (folder / 'surgery' / 'model').mkdir()
    sizes = {'hidden_size': 4, 'num_hidden_layers': 1, 'num_attention_heads': 1, 'intermediate_size': 8}
    shape = {'model_type': 'bert', 'vocab_size': 9, 'max_position_embeddings': 8, **sizes}
    write_json(folder / 'surgery' / 'model' / 'config.json', shape)
    run = Run(folder, Experiment(), quiet=True)
    for name, pieces in (('new', 1000), ('shared', 700)):
        run.metrics.write('surgery', 0, kind='encoded', name=name, pieces=pieces, attended=20.5)
    for step in (5, 8, 10):
        numbers = {'loss': 1.0, 'learning_rate': 1e-4, 'tokens_per_second': 9.0, 'tokens': 130 * step}
        numbers |= {'flops': 7e5 * step, 'seconds': 30.3 * step, 'joules': 5e4 * step}
        run.metrics.write('pretrain', step, kind='train', phase='p0', **numbers)


ENDS = {'initial': 0, '100': 100, '300': 300}


def measured(folder, nats, mask='m', steps=ENDS):
    """A run whose models have these nats per word, in order of ENDS."""
    loaded = config.defaults()
    loaded.phases = tuple(name for name in steps if name != 'initial')
    for name in loaded.phases:
        loaded.phase[name] = config.phase()
    run = Run(folder, Experiment.from_config(loaded), quiet=True)
    records = [
        {
            'model': name,
            'mask': mask,
            'words': 10,
            'pieces': 12,
            'nats_per_word': value,
            'word_accuracy': 1 / value,
        }
        for name, value in zip(steps, nats, strict=False)
    ]
    write_json(folder / 'analyze' / 'cloze.json', records)
    for name, step in steps.items():
        run.metrics.write('pretrain', step, kind='evaluation', phase=name, phase_end=True, frozen_loss=1.0)
    return read_measures(run)


def geometry_of(folder, cosine, digest='d'):
    """A run whose words have this cosine after the last phase, and twice as much of everything before it."""
    m = measured(folder, (3, 2, 1))
    last = {kind: alike(cosine) for kind in VECTOR_KINDS}
    before = {kind: alike(2 * cosine) for kind in VECTOR_KINDS}
    shapes = {'100': before, '300': last}
    records = [{'model': x, 'rows': {}, 'words': {'digest': digest, **shape}} for x, shape in shapes.items()]
    write_json(folder / 'analyze' / 'geometry.json', records)
    return read_measures(m.run)


def row_of(table, first):
    """Column -> cell of the row that begins with a text."""
    return {
        c: cell for r in table.rows if r[0].text == first for c, cell in zip(table.columns, r, strict=True)
    }

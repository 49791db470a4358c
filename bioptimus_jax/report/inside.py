"""What is inside a run: hidden words, stages."""

from bioptimus_jax.progress import clock
from bioptimus_jax.report.layout import Cell, Table, count, fixed, missing, percent, words
from bioptimus_jax.report.measures import Measures, flat


def cloze(m: Measures) -> Table:
    """The word-level measure that compares across vocabularies, a row for each model."""
    columns = [
        'model',
        'words',
        'nats / word',
        '± se',
        'bits / character',
        'words right',
        'nats / one-piece word',
    ]
    columns += ['one-piece words right', 'nats / piece', 'pieces / word']
    rows = []
    for r in m.cloze:
        if r.get('skipped'):
            rows.append([words(m.label(r['model'])), *[missing()] * (len(columns) - 1)])
            continue
        nats, *others = cloze_cells(m, r['model'])
        rows.append(
            [
                words(m.label(r['model'])),
                count(r['words']),
                nats,
                fixed(r.get('nats_per_word_error')),
                *others,
                fixed(r['nats_per_piece']),
                fixed(r['pieces'] / r['words'], 2),
            ]
        )
    better = {c: 'low' for c in columns if c.startswith(('nats / w', 'nats / o', 'bits'))}
    better |= {c: 'high' for c in columns if c.endswith('right')}
    note = (
        'The same held-out words are hidden whole for every model, whatever its vocabulary. One-piece words'
        ' are one piece in both vocabularies. Nats per piece compares only models with the same vocabulary.'
    )
    skipped = [f'{r["model"]}: {r["skipped"]}' for r in m.cloze if r.get('skipped')]
    note = ' '.join([note, *skipped])
    return Table('Hidden words', columns, rows, better, note=note, absent='stage analyze has not been run.')


def summary(m: Measures) -> Table:
    """Every stage: done or not, seconds, and the counts of its manifest."""
    rows = []
    for stage in m.run.config.stages:
        manifest = m.manifests.get(stage)
        if manifest is None:
            state = 'being written' if stage == 'report' else 'not finished'
            rows.append([words(stage), words(state), missing(), words('')])
            continue
        counted = '; '.join(
            f'{k.replace("_", " ")} {_short(v)}' for k, v in flat(manifest.get('counts', {})).items()
        )
        seconds = float(manifest.get('seconds', 0))
        state = 'taken from ' + manifest['folder'] if manifest.get('folder') else 'done'
        rows.append([words(stage), words(state), Cell(clock(seconds), seconds), words(counted)])
    return Table('Stages', ['stage', 'state', 'time', 'counts'], rows)


def cloze_cells(m: Measures, model: str) -> list[Cell]:
    """What the word-level measure says of one model: nats a word, bits a character, words right."""
    r = m.cloze_of(model)
    one_piece = r.get('one_piece', {})
    return [
        fixed(r.get('nats_per_word')),
        fixed(r.get('bits_per_character')),
        percent(r.get('word_accuracy')),
        fixed(one_piece.get('nats_per_word')),
        percent(one_piece.get('word_accuracy')),
    ]


def _short(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f'{value:,}' if isinstance(value, int) else f'{value:,.4g}'

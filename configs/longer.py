"""Context extension: a model that was trained on short documents goes on with long ones, its vocabulary kept.

Paper:    Warner et al. (2024), ModernBERT (arXiv 2412.13663); Weller et al. (2025), Ettin (arXiv 2507.11412): a last
          part of the training on documents of up to 8,192 pieces, with another base of the rotary positions of the
          layers that see all pieces. For learned positions Beltagy et al. (2020), Longformer (arXiv
          2004.05150): the table is copied again and again.
Data:     BIOPTIMUS_DATA names the folder with articles/ (full texts of PMC as .nxml or archives): abstracts are no long
          documents.
Source:   Any model of a family here; a run's own export continues an adaptation. A source with learned positions ends
          at 512 and gets rows that it has never seen: give it more text, or start from a family with rotary positions.
Command:  bioptimus run --config=longer --workdir=DIR --config.source.path=RUN/export/PHASE
Options:  longer         documents of up to 8,192 pieces
          longer:N       documents of up to N pieces
          longer:staged  short documents first, in the same run: a phase of 1,024 pieces, whose batches grow over the
                         first billion tokens; then those of 8,192 with a base of 160,000, for a source of 10,000
Plan:     `bioptimus plan --config=longer --words=1e9`, an estimate. Not run by us at this size.

Stated in the papers: 8,192 pieces; a base of 160,000 where 10,000 was before (ModernBERT; local layers keep theirs); a
lower learning rate (3e-4, of 8e-4 for base), constant; then a decay as 1 - sqrt; 30 % masked.
Chosen by us: without stages the base stays that of the source, since a model that has 160,000 or more already needs no
other (`config.surgery.longer.rope_theta` sets one); a tenth of the whole decays; rows as wide as the longest document;
the sizes of the growing batches.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import defaults, environment, phase

POSITIONS, STAGED = 8192, 'staged'
ARGUMENTS = ('', '4096', STAGED)
PHASES = {
    'long': dict(rate=0.30, duration=1.0, fall='constant'),
    'decay': dict(rate=0.15, duration=0.1, fall='sqrt'),
}
SHORT = dict(
    rate=0.30,
    duration=1.0,
    fall='constant',
    row_pieces=1024,
    max_document_pieces=1024,
    batch_rows=512,
    warmup_batch_rows=(128, 256),
    warmup_tokens=1e9,
)


def get_config(argument: str = '') -> ConfigDict:
    """The extension to so many pieces as the argument says, or in stages."""
    if argument not in ('', STAGED) and not (argument.isdecimal() and int(argument) >= 64):
        raise ValueError(
            f'{argument!r} is neither {STAGED} nor a number of pieces of 64 or more, as in longer:4096'
        )
    pieces = int(argument) if argument.isdecimal() else POSITIONS
    phases = {'short': SHORT, **PHASES} if argument == STAGED else PHASES
    config = defaults()
    config.source.path = 'runs/modernbert/export/decay'
    config.corpus.inputs = (f'{environment("BIOPTIMUS_DATA")}/articles/*',)
    config.vocab.update(kind='source', tokenizer='bytelevel', lowercase=False)
    config.surgery.update(strategy='copy', longer={'positions': pieces})
    # The shape of the source, for a plan without it; the dropout rates are the run's in any case.
    config.model.update(family='modernbert', layers=22, intermediate=1152, max_positions=pieces)
    config.model.update(dropout=0.0, attention_dropout=0.0)
    config.rows.update(row_pieces=pieces, max_document_pieces=pieces)
    config.pretrain.update(batch_rows=64, micro_batches=8, learning_rate=3e-4, warmup_fraction=0.0)
    config.pretrain.update(beta2=0.98, weight_decay=1e-5)
    config.phases = tuple(phases)
    for name, settings in phases.items():
        config.phase[name] = phase(schedule='restart', **settings)
        if argument == STAGED and name != 'short':
            config.phase[name].rope_theta = 160_000.0
    config.evaluation.update(settings=tuple(phases))
    config.runtime.update(checkpoint_every_steps=1000, log_every_steps=50)
    return config

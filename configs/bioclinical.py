"""BioClinical ModernBERT: ModernBERT trained further on biomedical and clinical texts, then decayed on clinical ones.

Paper:    Sounack et al. (2025), BioClinical ModernBERT (arXiv 2506.10896); Warner et al. (2024), ModernBERT (arXiv
          2412.13663), for the optimiser.
Data:     BIOPTIMUS_DATA names the folder with pubmed/, pmc/ and ner/, and clinical/: a run folder with rows of clinical
          notes, with the same vocabulary and width. Make it first, from notes that you have the licence for:
          bioptimus run --config=bioclinical:notes --workdir=$BIOPTIMUS_DATA/clinical
Source:   ModernBERT-base, in its last stable checkpoint if you have one: see configs/modernbert.py.
Command:  bioptimus run --config=bioclinical --workdir=DIR --config.source.path=ID@REVISION
Options:  bioclinical        the model
          bioclinical:notes  corpus, vocabulary and rows of mimic/NOTEEVENTS.csv.gz, for `clinical`
Plan:     `bioptimus plan --config=bioclinical --words=5e10`, an estimate: 348,713 steps, 168 billion pieces, 221 EFLOP.
Time:     177 device-hours on an H200 at 35 % of peak. Not run by us at this size.
Memory:   7.2 GiB on each of eight devices, one row of 8,192 at once.

Line by line:
  continues from the last stable checkpoint               stated; config.source.path
  constant 3e-4 without warm-up, then 1 - sqrt            stated; falls `constant` and `sqrt`, warmup_fraction 0
  30 % masked, then 15 %                                  stated; rate
  160 billion tokens, three times all texts               stated; duration of `stable`
  then 8.2 billion, three times the clinical ones         stated; duration and corpora of `decay`
  StableAdamW, 0.9 and 0.98, decay of 1e-5, none of       stated (Warner et al.); optimizer, beta1, beta2,
    norms and biases                                      weight_decay, and decay as by default
  the vocabulary of ModernBERT                            stated; vocab.kind=source
  clinical texts are 5.1 % in `stable`                    from the two numbers: 8.2 of 160
Chosen by us, since we do not know them: where 1 - sqrt ends (0); half a million pieces a step; rows and documents of
8,192 pieces, several documents per row, which do not see one another; single pieces masked, under 80-10-10. Its
clinical texts are from twenty sources; of these only MIMIC-III has a reader here. Gradients are not clipped:
StableAdamW clips the updates of each tensor.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import PAPER_FINETUNING, check_argument, defaults, environment, phase

ARGUMENTS = ('', 'notes')
PIECES, ROWS = 8192, 64
PHASES = {
    'stable': dict(rate=0.30, duration=160e9, fall='constant', corpora=('own=0.949', 'clinical=0.051')),
    'decay': dict(rate=0.15, duration=8.2e9, fall='sqrt', corpora=('clinical=1',)),
}


def get_config(argument: str = '') -> ConfigDict:
    """The recipe, or with `notes` the rows of its clinical corpus."""
    check_argument(argument, ARGUMENTS)
    data = environment('BIOPTIMUS_DATA')
    config = defaults()
    config.finetune.update(PAPER_FINETUNING)
    config.source.path = 'answerdotai/ModernBERT-base'
    config.corpus.inputs = (f'{data}/pubmed/*/*.xml.gz', f'{data}/pmc/*.tar.gz')
    config.corpus.audit.update(folder=f'{data}/ner', splits=('devel', 'test'))
    config.vocab.update(kind='source', tokenizer='bytelevel', lowercase=False, size=50_368)
    config.surgery.strategy = 'copy'
    # The shape of the source, for a plan without it; the dropout rates are the run's in any case.
    config.model.update(family='modernbert', layers=22, intermediate=1152, max_positions=8192)
    config.model.update(dropout=0.0, attention_dropout=0.0)
    config.rows.update(row_pieces=PIECES, max_document_pieces=PIECES)
    if argument == 'notes':
        config.corpus.inputs = (f'{data}/mimic/NOTEEVENTS.csv.gz',)
        config.stages = ('corpus', 'vocab', 'rows')
        return config
    config.stages = tuple(stage for stage in config.stages if stage != 'contexts')  # no new rows
    config.pretrain.update(
        optimizer='stable_adamw',
        batch_rows=ROWS,
        micro_batches=8,
        learning_rate=3e-4,
        warmup_fraction=0.0,
        beta2=0.98,
        weight_decay=1e-5,
        clip_norm=0.0,
    )
    config.corpora['clinical'] = ConfigDict({'run': f'{data}/clinical'})
    config.phases = tuple(PHASES)
    for name, settings in PHASES.items():
        config.phase[name] = phase(schedule='restart', duration_unit='tokens', **settings)
    config.evaluation.update(settings=tuple(PHASES))
    config.runtime.update(checkpoint_every_steps=2000, log_every_steps=50)
    config.finetune.update(folder=f'{data}/ner', models=('source', *PHASES), seeds=(0, 1, 2, 3, 4))
    return config

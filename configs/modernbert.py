"""A stable ModernBERT checkpoint adapted to PubMed abstracts, with its vocabulary kept, extended or replaced.

Paper:    Warner et al. (2024), ModernBERT (arXiv 2412.13663); Sounack et al. (2025), BioClinical ModernBERT (arXiv
          2506.10896), for the two phases: first as the source left off, without warm-up, then a decay.
Data:     BIOPTIMUS_DATA names the folder with pubmed/ and ner/, as for configs/bioptimus.py.
Source:   A checkpoint from before the decay: after the learning rate has fallen to nothing, a model has to be warmed up
          again, and loses some of what it knows. Ettin publishes its checkpoints as revisions: `step*` (stable, 1,024
          pieces), `ext*` (documents of 8,192 pieces), `decay*` (too late). Take the last `ext*`. The main revision of
          ModernBERT and BioClinical ModernBERT is from after the decay: set config.pretrain.warmup_fraction=0.06 with
          these.
Command:  bioptimus run --config=modernbert --workdir=DIR --config.source.path=ID@REVISION
Options:  modernbert          the source's vocabulary, and what a new one of the domain adds to it (append)
          modernbert:replace  a vocabulary of the domain, as large as the source's; shared rows are copied
          modernbert:keep     the source's vocabulary and rows, as in the papers
Plan:     `bioptimus plan --config=modernbert:replace --words=4e9`, an estimate: 35,814 steps, 17 billion pieces, 14
          EFLOP, 11 device-hours on an H200 at 35 % of peak. Not run by us at this size.
Memory:   7.6 GiB on each of eight devices, 8 rows of 1,024 at once.

Stated in the papers: 3e-4 and no warm-up; 30 % masked, in the decay 15 %; 1 - sqrt in the decay; betas of 0.9 and
0.98, weight decay 1e-5 and none on norms; no dropout; three passes over the corpus before the decay. Their optimiser is
StableAdamW: config.pretrain.optimizer=stable_adamw, as configs/bioclinical.py sets it.
Chosen by us: AdamW with gradients clipped at 1; only PubMed abstracts, and the same ones in the decay; rows and
documents of 1,024 pieces, which no abstract fills (for full texts 8,192: longer ones are cut at sentence ends); half a
million pieces a step; a decay of a tenth of the whole; single pieces masked, under 80-10-10.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import PAPER_FINETUNING, check_argument, defaults, environment, phase

VOCABULARIES = {'': 'append', 'replace': 'train', 'keep': 'source'}
ARGUMENTS = tuple(VOCABULARIES)
PHASES = {
    'stable': dict(rate=0.30, duration=3.0, fall='constant'),
    'decay': dict(rate=0.15, duration=0.33, fall='sqrt'),
}


def get_config(argument: str = '') -> ConfigDict:
    """The adaptation, with the vocabulary that the argument names."""
    check_argument(argument, ARGUMENTS)
    data = environment('BIOPTIMUS_DATA')
    config = defaults()
    config.finetune.update(PAPER_FINETUNING)
    config.source.path = 'jhu-clsp/ettin-encoder-150m'
    config.corpus.inputs = (f'{data}/pubmed/*/*.xml.gz',)
    config.corpus.audit.update(folder=f'{data}/ner', splits=('devel', 'test'))
    config.vocab.update(kind=VOCABULARIES[argument], tokenizer='bytelevel', lowercase=False, size=50_368)
    if argument == 'keep':
        config.surgery.strategy = 'copy'
    # The shape of the source, for a plan without it; the dropout rates are the run's in any case.
    config.model.update(family='modernbert', layers=22, intermediate=1152, max_positions=8192)
    config.model.update(dropout=0.0, attention_dropout=0.0)
    config.rows.update(row_pieces=1024, max_document_pieces=1024)
    config.pretrain.update(batch_rows=512, micro_batches=8, learning_rate=3e-4, warmup_fraction=0.0)
    config.pretrain.update(beta2=0.98, weight_decay=1e-5)
    config.phases = tuple(PHASES)
    for name, settings in PHASES.items():
        config.phase[name] = phase(schedule='restart', **settings)
    config.evaluation.update(settings=tuple(PHASES))
    config.runtime.update(checkpoint_every_steps=2000, log_every_steps=50)
    config.finetune.update(folder=f'{data}/ner', models=('source', 'initial', *PHASES), seeds=(0, 1, 2, 3, 4))
    return config

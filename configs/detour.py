"""A causal detour: ModernBERT continues with causal language modelling, then returns to masked language modelling.

Paper:    Touchent and de la Clergerie (2026), A Causal Language Modeling Detour Improves Encoder Continued Pretraining
          (arXiv 2605.12438); no code was released. We know it from its abstract and an excerpt.
Data:     BIOPTIMUS_DATA names the folder with pubmed/ and ner/, as for configs/bioptimus.py.
Source:   ModernBERT-base, in its last stable checkpoint if you have one: see configs/modernbert.py.
Command:  bioptimus run --config=detour --workdir=DIR --config.source.path=ID@REVISION
Options:  detour         causal, then masked
          detour:masked  the control: the same steps, masked throughout, at the rates of the second phase
Plan:     `bioptimus plan --config=detour --words=4e9`, an estimate. Not run by us at this size.

Stated in the paper, line by line:
  causal language modelling, then a short masked decay    phases `causal` and `decay`
  50 billion tokens, then 5 billion, of the same data     durations in steps: 50e9 and 5e9 / 3,145,728
  all pieces are predicted, then 15 % are masked          objective causal; rate 0.15
  peak learning rate 2e-4                                 learning_rate
  1 - sqrt, to 10 % of the peak                           fall sqrt, end_fraction 0.1, of `decay`
  AdamW with betas of 0.9 and 0.98                        beta1, beta2
  3.1 million tokens a batch                              3,072 rows of 1,024 pieces: 3,145,728
  the vocabulary of ModernBERT is kept                    vocab.kind source
Chosen by us, since we do not know them: a constant rate in the causal phase after a warm-up of 2 % of its steps, and no
warm-up in the decay; weight decay 1e-5 and gradients clipped at 1; no dropout; rows and documents of 1,024 pieces;
single pieces masked, under 80-10-10; PubMed abstracts, which have fewer than 50 billion pieces and so are read several
times. A causal piece costs more than a masked one: compare with the control by FLOPs, which are on record.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import PAPER_FINETUNING, check_argument, defaults, environment, phase

ARGUMENTS = ('', 'masked')
ROWS, PIECES = 3072, 1024
TOKENS = {'causal': 50e9, 'decay': 5e9}


def get_config(argument: str = '') -> ConfigDict:
    """The detour, or with `masked` its control."""
    check_argument(argument, ARGUMENTS)
    data = environment('BIOPTIMUS_DATA')
    config = defaults()
    config.finetune.update(PAPER_FINETUNING)
    config.source.path = 'answerdotai/ModernBERT-base'
    config.corpus.inputs = (f'{data}/pubmed/*/*.xml.gz',)
    config.corpus.audit.update(folder=f'{data}/ner', splits=('devel', 'test'))
    config.vocab.update(kind='source', tokenizer='bytelevel', lowercase=False, size=50_368)
    config.surgery.strategy = 'copy'
    # The shape of the source, for a plan without it; the dropout rates are the run's in any case.
    config.model.update(family='modernbert', layers=22, intermediate=1152, max_positions=8192)
    config.model.update(dropout=0.0, attention_dropout=0.0)
    config.rows.update(row_pieces=PIECES, max_document_pieces=PIECES)
    config.pretrain.update(batch_rows=ROWS, micro_batches=48, learning_rate=2e-4, warmup_fraction=0.0)
    config.pretrain.update(beta1=0.9, beta2=0.98, weight_decay=1e-5)
    config.phases = tuple(TOKENS)
    own = {
        'causal': dict(fall='constant', warmup_fraction=0.02, objective='mlm' if argument else 'causal'),
        'decay': dict(fall='sqrt', end_fraction=0.1),
    }
    for name, tokens in TOKENS.items():
        steps = float(round(tokens / (ROWS * PIECES)))
        shared = dict(schedule='restart', rate=0.15, duration=steps, duration_unit='steps')
        config.phase[name] = phase(**shared, **own[name])
    config.runtime.update(checkpoint_every_steps=500, log_every_steps=20)
    config.finetune.update(folder=f'{data}/ner', models=('source', *TOKENS), seeds=(0, 1, 2, 3, 4))
    return config

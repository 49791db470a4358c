"""What our own measurements recommend for a source, not what a paper did: `bioptimus init` builds on it.

Paper:    none: docs/results.md has the tables that these settings follow.
Command:  bioptimus init --source=FOLDER --texts='texts/*.jsonl.gz' --hours=10
          writes your own config on top of this one. Without it: bioptimus run --config=recommended --workdir=DIR
          with config.source.path, corpus.inputs, phase.words.duration and finetune.folder.
Options:  recommended:FAMILY         a source of base size or larger: bert (the default), roberta, electra, modernbert
          recommended:FAMILY-laptop  one with a hidden size of at most 256, on CPU cores
          An ELECTRA is a discriminator: set config.objective.rtd.generator to the generator that was trained with it.
Expect:   a gain over the source: with one of 2 layers x 128 50.87 to 53.19 on BLURB without questions and similarity,
          whose few test items decide the whole score (36.80 to 50.57); one seed.

Measured by us (docs/results.md; small models, three seeds):
  rows of new tokens  the defaults of config.surgery. Without spelling they are 2.41 F1 ahead of the paper's and level
                      with random ones. From MiniLM with a fitted head, which knows its tokens, random rows score 4.42
                      F1 below averaging the pieces' rows (p = 0.0013), and the defaults reach that average's loss
                      57 ± 20 steps sooner (of 214); surgery.strategy=spelled 46 ± 17, and it reads no contexts, whose
                      cost is more than twice that training's. No lead in F1 is shown for either.
  vocabulary          from a weak source a new one of the domain is 2.2 F1 ahead of the source's own after 350,000
                      words; from MiniLM with a fitted head the source's own is 1.97 ahead after 150,000 (p = 0.13),
                      2.18 after 600,000 (p < 0.0001, with seeds that agree by chance), and 0.25 after 1,800,000 (p =
                      0.64), where the new one needs 17 % fewer FLOPs. `bioptimus advise` says what a new one would
                      bring you.
  masking             whole words 20 % throughout: 0.80 F1 ahead of easy to hard (p = 0.22), and one phase is simpler.
                      [MASK] alone from the start loses 1.56 (p = 0.008). From a ModernBERT none of eleven others is
                      shown to be ahead; 90-0-10 loses 2.51 (p = 0.0014).
From the papers, not measured by us: learning rates, batch, decay and corruption of models of base size (BIOptimus,
section 8.2; ModernBERT; ELECTRA). No attention dropout: fused kernels have none.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import check_argument, defaults, phase
from bioptimus_jax.model.config import FAMILIES

LAPTOP = '-laptop'
ARGUMENTS = ('', *FAMILIES, *(f'{family}{LAPTOP}' for family in FAMILIES))


def get_config(argument: str = '') -> ConfigDict:
    """The settings for a source of that kind; the user gives paths and lengths."""
    check_argument(argument, ARGUMENTS)
    config, family = defaults(), argument.removesuffix(LAPTOP) or 'bert'
    config.model.update(family=family, attention_dropout=0.0)
    config.phases = ('words',)
    config.phase['words'] = phase(masking='words', rate=0.20)
    config.pretrain.update(batch_rows=256, learning_rate=1e-4)
    config.runtime.checkpoint_every_steps = 1000
    config.finetune.update(models=('source', 'initial', 'words'), seeds=(0, 1, 2))
    if family == 'modernbert':
        config.model.update(layers=22, intermediate=1152, max_positions=8192, dropout=0.0)
        config.vocab.update(tokenizer='bytelevel', lowercase=False, size=50_368)
        config.rows.update(row_pieces=1024, max_document_pieces=1024)
        config.pretrain.update(learning_rate=3e-4, beta2=0.98, weight_decay=1e-5)
    if family in ('albert', 'eurobert', 'ultrabert'):  # trained without
        config.model.dropout = 0.0
    if family in ('roberta', 'longformer'):
        config.vocab.update(tokenizer='bytelevel', lowercase=False, size=50_265)
    if family == 'electra':
        config.pretrain.objective = 'rtd'
        config.phase['words'].corruption = (0.85, 0.0, 0.15)
    if argument.endswith(LAPTOP):
        config.model.dropout = 0.0
        config.rows.update(row_pieces=256, max_document_pieces=128)
        config.pretrain.update(batch_rows=16, micro_batches=4, learning_rate=2e-3, beta2=0.98)
        config.evaluation.rows = 256
        config.runtime.checkpoint_every_steps = 250
        config.finetune.update(seeds=(0,))
    return config

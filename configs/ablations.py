"""Table 2 in small: each initialisation with the same corpus, vocabulary, contexts, rows and budget.

Paper:    BIOptimus (arXiv 2308.08625), Table 2 (four initialisations); `random_rows` is our control, `mean_resizing`
          and `similarity` are what others do. New rows are rescaled to the source's mean norm; `_literal` arms write
          the last layer's states as they are, as the paper does.
Command:  bioptimus run --config=ablations:averaged_input --workdir=runs/averaged_input
          --config.source.path=runs/small-source/export/0.1 --config.runtime.base_run=runs/small
          The argument is a strategy of config.surgery, or one with `_literal`. Stages that match the base run's
          are taken from there.
Time:     see LOG.md: some minutes an arm on two cores; an eighth of small's pre-training, NER with three seeds.
Expect:   unknown at this size, so written down as unknown. Per-token losses compare all arms but `copy`,
          which keeps the source's vocabulary; the cloze measures of `analyze` and F1 compare all of them.
"""

from ml_collections import ConfigDict

from bioptimus_jax.config import load
from bioptimus_jax.schema import STRATEGIES

LITERAL = '_literal'
ARGUMENTS = (*STRATEGIES, f'averaged_last{LITERAL}', f'contextualized{LITERAL}')
BUDGET = 0.125


def get_config(argument: str = '') -> ConfigDict:
    """`small` with another initialisation and an eighth of its pre-training."""
    if argument not in ARGUMENTS:
        raise ValueError(f'needs an initialisation, got {argument!r}; there are {", ".join(ARGUMENTS)}')
    config = load('small')
    config.surgery.strategy = argument.removesuffix(LITERAL)
    if argument.endswith(LITERAL):
        config.surgery.scale = 'literal'
    if argument == 'copy':
        config.vocab.kind = 'source'
    for name in config.phases:
        config.phase[name].duration *= BUDGET
    config.ner.update(models=('0.4',), seeds=(0, 1, 2))
    return config

"""What the paper compares, in small: arms that differ in one thing and share all else (`bioptimus sweep`).

Paper:    BIOptimus (arXiv 2308.08625), Table 2.
Command:  bioptimus sweep --config=ablations:table2 --workdir=runs/table2 --config.source.path=FOLDER --jobs=2
          table2   each initialisation with an eighth of small's pre-training, and NER. `random_rows` is our control,
                   `mean_resizing` and `similarity` are what others do; `_literal` arms write the last layer's states as
                   they are, as the paper does, the others are rescaled to the source's mean norm.
          curves   the first steps of each initialisation, the paper's and its variants, with three seeds: phases 100,
                   300 and 600 are one phase of as many steps of 2,000 pieces, cut to look at the weights.
Time:     see LOG.md: some minutes an arm on two cores.
Expect:   table2: unknown at this size. curves: contextualized < averaged_* < random_rows in nats per hidden word,
          and a variant better than the literal one.
          Per-token losses compare all arms but `copy`, which keeps the source's vocabulary; the measures of hidden
          words of `analyze` and F1 compare all of them.
"""

from ml_collections import ConfigDict

from bioptimus_jax.config import load, phase
from bioptimus_jax.schema import STRATEGIES

LITERAL = '_literal'
INITIALISATIONS = (*STRATEGIES, f'averaged_last{LITERAL}', f'contextualized{LITERAL}')
VARIANTS: dict[str, dict] = {
    'averaged_input_centred': {'strategy': 'averaged_input', 'scale': 'centred'},
    'centred': {'scale': 'centred'},
    'middle_centred': {'layers': (), 'scale': 'centred'},
    'mapped_centred': {'layers': (), 'map': 'respelled', 'shrinkage': 1.0, 'scale': 'centred'},
}
SEEDS = (0, 1, 2)
BUDGET = 0.125
WORDS_PER_STEP = 1500
STEPS = (100, 300, 600)
ARMS = {
    'table2': INITIALISATIONS,
    'curves': tuple(
        f'{name}.seed-{seed}'
        for seed in SEEDS
        for name in (*STRATEGIES, f'contextualized{LITERAL}', *VARIANTS)
    ),
}
ARGUMENTS = tuple(f'{ablation}/{arm}' for ablation, arms in ARMS.items() for arm in arms)


def get_arms(argument: str = '') -> tuple[str, ...]:
    """The arms of an ablation, the one that others share most with first."""
    if argument not in ARMS:
        raise ValueError(f'no ablation {argument!r}; there are {", ".join(ARMS)}')
    return ARMS[argument]


def get_config(argument: str = '') -> ConfigDict:
    """One arm, named as in `table2/averaged_input`."""
    ablation, _, arm = argument.partition('/')
    if arm not in get_arms(ablation):
        raise ValueError(f'no arm {arm!r} in {ablation}; there are {", ".join(get_arms(ablation))}')
    name, _, seed = arm.partition('.seed-')
    config = load('small')
    _initialise(config, name)
    if ablation == 'curves':
        config.seed = int(seed)
        _first_steps(config)
        return config
    for name in config.phases:
        config.phase[name].duration *= BUDGET
    config.ner.update(models=('0.4',), seeds=SEEDS)
    return config


def _initialise(config: ConfigDict, name: str) -> None:
    if name in VARIANTS:
        config.surgery.update(VARIANTS[name])
        return
    config.surgery.strategy = name.removesuffix(LITERAL)
    if name.endswith(LITERAL):
        config.surgery.scale = 'literal'
    if name == 'copy':
        config.vocab.kind = 'source'


def _first_steps(config: ConfigDict) -> None:
    """Equal words for every arm: `copy` needs more steps for them, since its words have more pieces."""
    config.stages = ('corpus', 'vocab', 'contexts', 'rows', 'surgery', 'pretrain', 'export', 'analyze')
    config.ner.models = ()
    config.phases = tuple(map(str, STEPS))
    for steps, before in zip(STEPS, (0, *STEPS), strict=False):
        words = float(WORDS_PER_STEP * (steps - before))
        config.phase[str(steps)] = phase(duration=words, duration_unit='words')
    config.pretrain.update(batch_rows=8, micro_batches=2)
    config.evaluation.update(rows=64, per_phase=1)
    config.analysis.geometry_points = 0
    config.runtime.checkpoint_every_steps = 600

"""What the papers on objectives compare, in small: arms that differ in the objective and share all else.

Paper:    Tinn et al. (2023), Table 2; Touchent and de la Clergerie (2026); Lewis et al. (2020), Table 6.
Data:     As for configs/small.py.
Command:  bioptimus sweep --config=objectives:nsp --workdir=runs/nsp --control=single --jobs=2
          BIOPTIMUS_SOURCE=runs/small-source/export/0.1 \
              bioptimus sweep --config=objectives:detour --workdir=runs/detour --control=masked --jobs=2
          bioptimus run --config=objectives:teacher --workdir=runs/teacher \
              --config.runtime.base_run=runs/nsp/single.seed-0
          BIOPTIMUS_TEACHER=runs/teacher/export/0.2 BIOPTIMUS_SOURCE=runs/nsp/single.seed-0/export/0.2 \
              bioptimus sweep --config=objectives:distil --workdir=runs/distil --control=longer --jobs=2
Options:  behind the name, after commas: objectives:nsp,seeds=5,steps=4000
          seeds   runs of every arm, of which each has rows, data order and fine-tuning of its own (3)
          steps   of 8 rows of 256 pieces (nsp 1,500; detour 440; distil 300)

          nsp      from random weights, abstracts of 128 words and more: `nsp` pairs with next sentence prediction,
                   `no_nsp` the same two segments without it, `single` documents
          detour   the general source goes on with abstracts: `detour` ten parts causal and one part masked, `masked`
                   the same steps masked throughout, `masked_flops` masked for as many FLOPs as the detour
          teacher  not a sweep: a model twice as wide, as `single` trains it
          distil   that model teaches one of `single`: `longer` the same steps without a teacher, `distil` masked LM and
                   the divergence, `align` also the cosine. The student before is their source, scored beside them.
"""

from ml_collections import ConfigDict

from bioptimus_jax.config import environment, load, objective, phase

STEPS = {'nsp': 1500, 'detour': 440, 'distil': 300}
ARMS = {
    'nsp': ('nsp', 'no_nsp', 'single'),
    'detour': ('detour', 'masked', 'masked_flops'),
    'distil': ('longer', 'distil', 'align'),
}
TEACHER = 'teacher'
ARGUMENTS = (TEACHER, *(f'{name}/{arm}.seed-0' for name, arms in ARMS.items() for arm in arms))
SEEDS = 3
TEACHER_STEPS = 2000
CAUSAL = 10 / 11
"""Share of a detour's steps."""
FLOPS_OF_A_DETOUR = 2.24
"""By those of as many masked steps: a causal step tells every piece, a masked one 15 % of them."""
VOCABULARY = 8000
TERMS = {'distil': (5.0, 2.0, 0.0), 'align': (5.0, 2.0, 1.0)}
WIDE = (2, 256, 4, 1024)
"""Layers, hidden size, heads and feed-forward size of the teacher."""


def get_arms(argument: str = '') -> tuple[str, ...]:
    """The arms of a comparison, seed after seed, so that a sweep that is cut off has whole ones."""
    name, options = _options(argument)
    return tuple(f'{arm}.seed-{seed}' for seed in range(options['seeds']) for arm in ARMS[name])


def get_config(argument: str = '') -> ConfigDict:
    """One arm, named as in `nsp/single.seed-0`, or the teacher."""
    if argument == TEACHER:
        config = _from_scratch('single', TEACHER_STEPS)
        _, config.model.hidden, config.model.heads, config.model.intermediate = WIDE
        return config
    named, _, arm = argument.rpartition('/')
    comparison, options = _options(named or arm)
    if arm not in get_arms(named or arm):
        raise ValueError(f'no arm {arm!r} in {comparison}; there are {", ".join(get_arms(named or arm))}')
    name, _, seed = arm.partition('.seed-')
    config = {'nsp': _from_scratch, 'detour': _detour, 'distil': _distil}[comparison](name, options['steps'])
    config.seed = int(seed)
    config.stages = tuple(stage for stage in config.stages if stage != 'report')
    config.finetune.seeds = (int(seed),)
    return config


def _options(argument: str) -> tuple[str, dict[str, int]]:
    """The comparison that is named, and its options. Raises ValueError."""
    name, *given = argument.split(',')
    if name not in ARMS:
        raise ValueError(f'no comparison {name!r}; there are {", ".join(ARMS)}, and {TEACHER}')
    options = {'seeds': SEEDS, 'steps': STEPS[name]}
    for option in given:
        key, _, value = option.partition('=')
        if key not in options or not value.isdecimal() or not int(value):
            raise ValueError(f'{option}: seeds=N or steps=N is needed, with N above 0')
        options[key] = int(value)
    return name, options


def _from_scratch(arm: str, steps: int) -> ConfigDict:
    config = _sized(load(f'small:{arm}'))
    config.phase['0.2'].duration = float(steps)
    config.finetune.models = ('0.2',)
    return config


def _detour(arm: str, steps: int) -> ConfigDict:
    """The rows of new entries are averages of input rows, which need no contexts."""
    config = _sized(load('small:detour'))
    config.vocab.size = VOCABULARY
    config.surgery.strategy = 'averaged_input'
    config.stages = tuple(stage for stage in config.stages if stage != 'contexts')
    if arm == 'masked_flops':
        steps = round(steps * FLOPS_OF_A_DETOUR)
    if arm != 'detour':
        config.phases = ('constant', 'decay')
        config.phase['constant'] = phase(**config.phase['causal'].to_dict() | {'objective': 'mlm'})
    first = round(steps * CAUSAL)
    for name, of_phase in zip(config.phases, (first, steps - first), strict=True):
        config.phase[name].update(duration=float(of_phase), duration_unit='steps')
    config.finetune.models = ('source', *config.phases)
    return config


def _distil(arm: str, steps: int) -> ConfigDict:
    config = _from_scratch('single', steps)
    config.source.path = environment('BIOPTIMUS_SOURCE')
    config.vocab.kind, config.surgery.strategy = 'source', 'copy'
    if arm in TERMS:
        config.pretrain.objective = 'distil'
        config.objective['distil'] = objective(
            'distil',
            teacher=environment('BIOPTIMUS_TEACHER'),
            weights=TERMS[arm],
            kl_positions='all',
            shape=WIDE,
        )
    config.finetune.models = ('source', '0.2')
    return config


def _sized(config: ConfigDict) -> ConfigDict:
    """Steps, evaluation and fine-tuning that two cores finish."""
    config.stages = tuple(dict.fromkeys((*(s for s in config.stages if s != 'report'), 'analyze')))
    config.pretrain.update(batch_rows=8, micro_batches=2)
    config.evaluation.update(rows=128, per_phase=4)
    config.analysis.update(cloze_documents=100, geometry_points=0, geometry_words=0)
    config.finetune.epochs = 3
    config.runtime.checkpoint_every_steps = 500
    return config

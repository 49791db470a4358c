"""The comparisons of the papers on objectives, at small scale: arms that differ only in the objective.

Paper:    Tinn et al. (2023), Table 2; Touchent and de la Clergerie (2026); Lewis et al. (2020), Table 6.
Data:     As for configs/small.py. BIOPTIMUS_SOURCE names the model that all arms start from, BIOPTIMUS_TEACHER the
          teacher of `distil`; both are Hugging Face folders.
Command:  export BIOPTIMUS_SOURCE=runs/small-source/export/0.1
          bioptimus sweep --config=objectives:nsp --workdir=runs/nsp --control=single --jobs=2
          bioptimus sweep --config=objectives:detour --workdir=runs/detour --control=masked --jobs=2
          export BIOPTIMUS_SOURCE=runs/small/export/0.4 BIOPTIMUS_TEACHER=runs/small-modernbert/export/0.4
          bioptimus sweep --config=objectives:distil --workdir=runs/distil --control=longer --jobs=2
Options:  after the name, separated by commas: objectives:nsp,seeds=5,steps=4000
          seeds   runs of every arm, each with its own rows, data order and fine-tuning (3)
          steps   steps of 8 rows of 256 pieces (nsp 1,000; detour 440; distil 400)

          nsp      `nsp` pairs with next sentence prediction, `no_nsp` the same two segments without it, `single`
                   documents; abstracts of 128 words and more. Not from random weights, unlike the paper: in so few
                   steps those only learn how frequent pieces are.
          detour   `detour` ten parts causal and one part masked, `masked` the same steps masked throughout,
                   `masked_flops` masked for as many FLOPs as the detour
          distil   `longer` the same steps without a teacher, `distil` masked LM and the divergence at masked pieces,
                   `align` also the cosine. Their source is the student before; the teacher is scored next to them.
"""

import dataclasses

from ml_collections import ConfigDict

from bioptimus_jax.ext import environment, load, objective, phase, read_options

STEPS = {'nsp': 1000, 'detour': 440, 'distil': 400}
ARMS = {
    'nsp': ('single', 'no_nsp', 'nsp'),
    'detour': ('masked', 'masked_flops', 'detour'),
    'distil': ('longer', 'distil', 'align'),
}
"""The others are compared with the first, which also scores the models from before."""
ARGUMENTS = tuple(f'{name}/{arm}.seed-0' for name, arms in ARMS.items() for arm in arms)
CAUSAL = 10 / 11
"""Share of a detour's steps."""
FLOPS_OF_A_DETOUR = 2.82
"""Operations of a detour over those of as many masked steps: a causal step predicts every piece, a masked one 15 %,
and computes most of its last layer for these alone."""
VOCABULARY = 8000
"""Entries for thirteen million words. Their rows are averages of input rows, which need no contexts."""
WEIGHTS = {'distil': (5.0, 2.0, 0.0), 'align': (5.0, 2.0, 1.0)}


@dataclasses.dataclass(frozen=True)
class Options:
    """The options after the name of a comparison."""

    steps: int
    seeds: int = 3


def get_arms(argument: str = '') -> tuple[str, ...]:
    """The arms of a comparison, seed after seed, so that an interrupted sweep has complete seeds."""
    name, options = _options(argument)
    return tuple(f'{arm}.seed-{seed}' for seed in range(options.seeds) for arm in ARMS[name])


def get_config(argument: str = '') -> ConfigDict:
    """One arm, named as in `nsp/single.seed-0`."""
    named, _, arm = argument.rpartition('/')
    comparison, options = _options(named or arm)
    if not named:
        raise ValueError(
            f'{comparison} has several arms: make them with `bioptimus sweep`, or one as '
            f'{comparison}/{get_arms(arm)[0]}'
        )
    if arm not in get_arms(named):
        raise ValueError(f'no arm {arm!r} in {comparison}; there are {", ".join(get_arms(named))}')
    name, _, seed = arm.partition('.seed-')
    config = {'nsp': _pairs, 'detour': _detour, 'distil': _distil}[comparison](name, options.steps)
    config.seed = int(seed)
    config.source.path = environment('BIOPTIMUS_SOURCE')
    config.stages = tuple('corpus vocab rows surgery pretrain export finetune analyze'.split())
    config.pretrain.update(batch_rows=8, micro_batches=2)
    config.evaluation.update(rows=128, per_phase=4)
    config.analysis.update(cloze_documents=100, geometry_points=0, geometry_words=0)
    before = ('source', *config.finetune.models) if name == ARMS[comparison][0] else ()
    config.finetune.update(seeds=(int(seed),), epochs=3, models=(*before, config.phases[-1]))
    config.runtime.checkpoint_every_steps = 500
    return config


def _options(argument: str) -> tuple[str, Options]:
    """The named comparison, and its options. Raises ValueError."""
    name, *given = argument.split(',')
    if name not in ARMS:
        raise ValueError(f'no comparison {name!r}; there are {", ".join(ARMS)}')
    return name, read_options(given, Options(steps=STEPS[name]))


def _pairs(arm: str, steps: int) -> ConfigDict:
    config = load(f'small:{arm}')
    config.surgery.strategy = 'averaged_input'
    _one_phase(config, steps)
    return config


def _detour(arm: str, steps: int) -> ConfigDict:
    config = load('small:detour')
    config.vocab.size = VOCABULARY
    config.surgery.strategy = 'averaged_input'
    if arm == 'masked_flops':
        steps = round(steps * FLOPS_OF_A_DETOUR)
    if arm != 'detour':
        config.phases = ('constant', 'decay')
        config.phase['constant'] = phase(**config.phase['causal'].to_dict() | {'objective': 'mlm'})
    first = round(steps * CAUSAL)
    for name, of_phase in zip(config.phases, (first, steps - first), strict=True):
        config.phase[name].update(duration=float(of_phase), duration_unit='steps')
    config.finetune.models = ()
    return config


def _distil(arm: str, steps: int) -> ConfigDict:
    config = load('small')
    config.vocab.kind, config.surgery.strategy = 'source', 'copy'
    config.pretrain.learning_rate = 1e-3
    _one_phase(config, steps)
    teacher = environment('BIOPTIMUS_TEACHER')
    if arm in WEIGHTS:
        config.pretrain.objective = 'distil'
        config.objective['distil'] = objective(
            'distil', teacher=teacher, weights=WEIGHTS[arm], kl_positions='masked'
        )
    config.finetune.models = (f'teacher={teacher}',)
    return config


def _one_phase(config: ConfigDict, steps: int) -> None:
    config.pretrain.warmup_fraction = 0.1
    config.phases = ('0.2',)
    config.phase['0.2'].update(duration=float(steps), duration_unit='steps')
    config.finetune.models = ()

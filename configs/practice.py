"""What is worth its hours for somebody with 200 sentences of a task: MiniLM adapted, or fine-tuned in another way.

Paper:    Gururangan et al. (2020), on the texts of the task itself (arXiv 2004.10964); the other questions are ours.
Data:     As for configs/flagship.py.
Command:  bioptimus sweep --config=practice --workdir=runs/practice --control=fine-tuned
          The same command goes on where it was stopped, arm after arm. --arms='words.*' takes some of them.
Options:  after the name, separated by commas: practice:terms=terms.txt,seeds=3
          terms   a file of medical terms, one per line; the arm `terms_880k` needs it
          seeds   pre-trainings of every arm, each with its own order and masks (1)

          fine-tuned   MiniLM without further pre-training: as by default, for twice the epochs (`longer`), and with an
                       adapter in place of all weights (`lora`)
          words_220k, words_880k   so many words of abstracts, drawn at random
          task_880k    as many words of the train splits of the sets, read again and again
          terms_880k   as many words of the abstracts with the most terms
Time:     on two cores of an AMD EPYC 12 minutes of fine-tuning for every arm but `fine-tuned`, and up to 17 minutes of
          pre-training; `fine-tuned` took 20 minutes on one set, on a slower machine.
Expect:   on the mean of NCBI-disease and BC5-chem, written before an arm was run: twice the epochs within 0.5 F1 of the
          default; an adapter 5 behind; 220 thousand words 0.5 behind no adaptation, 880 thousand level with it; the
          task's own texts 1 ahead of as many other words; terms within 0.5 of random texts; a vote of three seeds of
          MiniLM ahead of every single model.
Found:    docs/lab/practice.md: the tasks' own texts are ahead on one set; `terms_880k` is not run.
"""

import dataclasses

from ml_collections import ConfigDict

from bioptimus_jax.ext import load, read_options

FINE_TUNED, FEW, TERMS = 'fine-tuned', 'words_220k', 'terms_880k'
WORDS = {FEW: 220_000, 'words_880k': 880_000, 'task_880k': 880_000, TERMS: 880_000}
"""Arm -> words that it reads."""
ARMS = (FINE_TUNED, *WORDS)
ARGUMENTS = tuple(f'{arm}.seed-0' for arm in ARMS if arm != TERMS)
SETS = ('ncbi-disease', 'bc5-chem')
EPOCHS = 48
"""Twice those that 200 sentences get by default."""
RANK = 16
FEW_HEAD_STEPS = 60
"""Steps that fit the head where so few words are read: less than half of all."""


@dataclasses.dataclass(frozen=True)
class Options:
    """The options after the name of the config."""

    terms: str = ''
    seeds: int = 1


def get_arms(argument: str = '') -> tuple[str, ...]:
    """The arms, seed after seed."""
    options = _options(argument)
    arms = [arm for arm in ARMS if arm != TERMS or options.terms]
    return tuple(f'{arm}.seed-{seed}' for seed in range(options.seeds) for arm in arms)


def get_config(argument: str = '') -> ConfigDict:
    """One arm, named as in `task_880k.seed-0`, or `terms=terms.txt/terms_880k.seed-0`."""
    named, _, arm = argument.rpartition('/')
    if not arm:
        raise ValueError(
            f'there are several arms: make them with `bioptimus sweep`, or one as {get_arms()[0]}'
        )
    if arm not in get_arms(named):
        raise ValueError(f'no arm {arm!r}; there are {", ".join(get_arms(named))}')
    name, _, seed = arm.partition('.seed-')
    config = load('flagship:laptop')
    config.seed = int(seed)
    config.finetune.update(datasets=SETS, models=('words',))
    if name == FINE_TUNED:
        config.stages = ('finetune',)
        config.finetune.models = ('source',)
        config.finetune.settings = ('standard', 'longer', 'lora')
        config.finetune.setting.update(longer={'epochs': EPOCHS}, lora={'lora_rank': RANK})
        return config
    config.stages = tuple('corpus vocab contexts surgery rows pretrain export finetune'.split())
    config.phase['words'].update(duration=float(WORDS[name]), duration_unit='words')
    if name == FEW:
        config.pretrain.head_steps = FEW_HEAD_STEPS
        config.phase['head'].duration = float(FEW_HEAD_STEPS)
    if name == 'task_880k':
        config.corpus.inputs = tuple(f'{config.corpus.audit.folder}/{one}' for one in SETS)
        config.corpus.audit.splits = ('devel', 'test')
    elif name == TERMS:
        config.corpus.max_words = round(WORDS[name] / (1 - config.corpus.heldout_fraction))
        config.corpus.content.update(prefer='terms', terms=_options(named).terms)
    return config


def _options(argument: str) -> Options:
    return read_options(filter(None, argument.split(',')), Options())

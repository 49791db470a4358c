r"""The whole of BLURB: its thirteen sets, search ranges and seeds; nothing is pre-trained.

Paper:    Gu et al. (2021), Domain-specific language model pretraining for biomedical NLP, sections 4 and 5; Tinn et al.
          (2023), Fine-tuning large neural language models for biomedical NLP, Tables 3 to 6 and 8.
Data:     BIOPTIMUS_DATA/blurb/SET/{train,devel,test}.tsv, or --config.finetune.folder; docs/howto/own-texts.md names
          the sets. Missing sets are not scored; the BLURB score needs all of them.
Command:  bioptimus finetune --config=blurb --workdir=runs/blurb --config.finetune.models=/models/a,/models/b
Options:  blurb          the search: six settings per set, chosen on devel for every model and set
          blurb:one      one setting and one seed per set, few epochs, parts of the large sets: for a laptop
          blurb:stability, blurb:low, blurb:low_devel, blurb:removed
                         Tinn et al.: techniques on BIOSSES and questions (Tables 3, 4, 6); few texts of ChemProt and
                         DDI (Table 5), also with a small devel; layers removed, on all sets (Table 8)
Time:     BERT-base on an A100: eight days per model, estimated. blurb:one with six narrow layers on two cores: an
          hour or two, estimated.
Expect:   biomedical encoders of BERT-base size: a BLURB score of 77 to 82.

Line by line:
  learning rate 1e-5, 3e-5, 5e-5; batch 16, 32      stated; all six with every model
  epochs 2 to 60                                    stated; here one training of 60, the epoch chosen on devel, so
                                                    the learning rate falls over 60 whichever epoch is chosen
  Adam, 10 % warm-up, linear to 0, dropout 0.1      stated; weight decay, clipping and bias correction are not
  five runs; ten for BIOSSES, BioASQ, PubMedQA      stated; here seeds 0 to 4 and 0 to 9
  GAD 128, ChemProt and DDI 256, questions 512      stated, in pieces; not for the others. Here HoC 512, the rest 128;
                                                    a longer sentence with entities gets several windows
  one choice for each set, tuned on a few models    --config.finetune.tuned_on=bert,biobert, names of scored
                                                    models. By default each model has its own choice
Not followed: the settings that the paper chose, which are not published.
Tinn et al.:
  up to 100 epochs, against 5; no bias correction   stated
  6 layers frozen, decay 0.8 and 0.9, up to 3 new   stated for base; for large models 12 and up to 6: set
                                                    setting.frozen.freeze_layers and the like. Each alone
  train and devel of BIOSSES; one segment id        stated for BIOSSES and for PubMedQA; the epochs are not: here 100
  100, 500, 1,000 texts                             stated; how they are drawn, and how much of devel, is not.
                                                    Here every label has its share, all models get the same texts,
                                                    and the 100 are among the 500
  2, 4, 6 layers removed                            stated; the rest is not. Here 60 epochs
  learning rate and batch                           searched there; here 3e-5 and 16
"""

from itertools import product

from ml_collections import ConfigDict

from bioptimus_jax.ext import PAPER_FINETUNING, check_argument, defaults, environment
from bioptimus_jax.finetuning.config import STANDARD

SEARCH = {
    f'lr{rate:.0e}-b{batch}'.replace('e-0', 'e-'): {'learning_rate': rate, 'batch_sentences': batch}
    for rate, batch in product((1e-5, 3e-5, 5e-5), (16, 32))
}
FIVE, TEN = tuple(range(5)), tuple(range(10))
OF_SET: dict[str, dict] = {
    'gad': {'max_pieces': 128},
    'chemprot': {'max_pieces': 256},
    'ddi': {'max_pieces': 256},
    'biosses': {'seeds': TEN},
    'hoc': {'max_pieces': 512},
    'pubmedqa': {'max_pieces': 512, 'seeds': TEN},
    'bioasq': {'max_pieces': 512, 'seeds': TEN},
}
SMALL_SETS = {'biosses': 30, 'pubmedqa': 10, 'bioasq': 10, 'hoc': 10, 'gad': 5}
"""blurb:one: epochs of sets for which 3 would be too few updates."""
LARGE_SETS = {'bc2gm': 4000, 'jnlpba': 4000, 'ebmnlp': 4000, 'chemprot': 4000, 'ddi': 4000}
"""blurb:one: training sentences or texts, drawn by their content."""
TECHNIQUES: dict[str, dict] = {
    'frozen': {'freeze_layers': 6},
    'decay_0.8': {'layer_decay': 0.8},
    'decay_0.9': {'layer_decay': 0.9},
    **{f'reinit_{count}': {'reinit_layers': count} for count in (1, 2, 3)},
}
STABILITY: dict[str, dict] = {
    'short': {'epochs': 5},
    'no_correction': {'bias_correction': False},
    **TECHNIQUES,
}
OF_ONE_SET: dict[str, dict[str, dict]] = {
    'biosses': {'with_devel': {'learn_devel': True}},
    'pubmedqa': {'one_id': {'segment_ids': 'one'}},
}
ONE_EACH: dict[str, dict] = {
    'plain': {},
    **{name: TECHNIQUES[name] for name in ('frozen', 'decay_0.9', 'reinit_2')},
}
REMOVED: dict[str, dict] = {f'removed_{count}': {'remove_layers': count} for count in (2, 4, 6)}


def _low(keys: tuple[str, ...]) -> dict[str, dict]:
    return {
        f'{name}_{count}': {**technique, **dict.fromkeys(keys, count)}
        for count, (name, technique) in product((100, 500, 1000), ONE_EACH.items())
    }


TINN: dict[str, tuple[dict[str, dict], tuple[str, ...], int]] = {
    'stability': (STABILITY, ('biosses', 'pubmedqa', 'bioasq'), 100),
    'low': (_low(('train_sentences',)), ('chemprot', 'ddi'), 100),
    'low_devel': (_low(('train_sentences', 'devel_sentences')), ('chemprot', 'ddi'), 100),
    'removed': (REMOVED, (), 60),
}
"""Settings, sets, epochs."""
ARGUMENTS = ('', 'one', *TINN)


def get_config(argument: str = '') -> ConfigDict:
    """The search of the paper, one fine-tuning for each set, or the techniques of Tinn et al."""
    check_argument(argument, ARGUMENTS)
    config = defaults()
    config.finetune.update(PAPER_FINETUNING)
    config.stages = ('finetune', 'report')
    config.finetune.update(folder=f'{environment("BIOPTIMUS_DATA")}/blurb', seeds=FIVE, epochs=60)
    config.finetune.models = (environment('BIOPTIMUS_SOURCE'),)  # in practice given on the command line
    of_set = {name: dict(keys) for name, keys in OF_SET.items()}
    if argument in TINN:
        settings, sets, epochs = TINN[argument]
        config.finetune.update(learning_rate=3e-5, epochs=epochs, train_choice='stratified', datasets=sets)
        names = (*((STANDARD,) if not argument.startswith('low') else ()), *settings)
        for name, more in OF_ONE_SET.items() if argument == 'stability' else ():
            settings = {**settings, **more}
            of_set[name]['settings'] = (*names, *more)
        config.finetune.setting.update(settings)
        config.finetune.settings = names
    elif argument:
        config.finetune.update(learning_rate=5e-5, seeds=(0,), epochs=3)
        for key, of_sets in (('epochs', SMALL_SETS), ('train_sentences', LARGE_SETS)):
            for name, value in of_sets.items():
                of_set.setdefault(name, {})[key] = value
        for keys in of_set.values():
            keys.pop('seeds', None)
    else:
        config.finetune.setting.update(SEARCH)
        config.finetune.settings = tuple(SEARCH)
    config.finetune.of_set.update(of_set)
    return config

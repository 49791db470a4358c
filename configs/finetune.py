r"""Entity F1 of any Hugging Face encoders on the BLURB sets, or on your own; nothing is pre-trained.

Paper:    BIOptimus (arXiv 2308.08625), Table 9; `stability`: Tinn et al. (2023), sections 3 and 4, each technique
          alone; `heads`: PubMedBERT's Tables 10 and 11.
Command:  bioptimus finetune --config=finetune --workdir=runs/finetune --config.finetune.models=/models/a,/models/b
          bioptimus finetune --config=finetune:stability --workdir=runs/low --config.finetune.models=/models/a \
              --config.finetune.train_sentences=500
          BIOPTIMUS_DATA/ner holds SET/{train,devel,test}.tsv; `bioptimus download --what=ner` fetches the five sets.
Time:     BERT-base, five sets, five seeds: an estimated three hours on an A100.
Expect:   biomedical encoders of BERT-base size: 93-94 on BC5-chem, 84-86 on BC5-disease, 87-89 on NCBI-disease, 83-85
          on BC2GM, 78-80 on JNLPBA. The setting is chosen on devel for every model and set. All of BLURB: blurb.py.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import check_argument, defaults, environment

STABILITY = {
    'longer': {'epochs': 20},
    'no_correction': {'bias_correction': False},
    'frozen': {'freeze_layers': 6},
    'decay_electra': {'layer_decay': 0.9},
    'decay_zhang': {'layer_decay': 0.9, 'layer_decay_rule': 'zhang'},
    'reinit': {'reinit_layers': 2},
    'removed': {'remove_layers': 2},
}
HEADS = {
    'crf': {'head': 'crf', 'head_learning_rate': 1e-3},
    'span': {'head': 'span', 'head_learning_rate': 1e-3},
    'bilstm': {'head': 'bilstm', 'head_learning_rate': 1e-3},
    'bilstm_crf': {'head': 'bilstm_crf', 'head_learning_rate': 1e-3},
    'io': {'scheme': 'io'},
    'bioul': {'scheme': 'bioul'},
    'all_pieces': {'label_pieces': 'all'},
}
GRIDS: dict[str, dict] = {'': {}, 'stability': STABILITY, 'heads': HEADS}
ARGUMENTS = tuple(GRIDS)


def get_config(argument: str = '') -> ConfigDict:
    """Fine-tuning only: epochs, batch and rate by model and set, or a grid of settings."""
    check_argument(argument, GRIDS)
    config = defaults()
    config.stages = ('finetune', 'report')
    config.finetune.update(folder=f'{environment("BIOPTIMUS_DATA")}/ner', seeds=(0, 1, 2, 3, 4))
    config.finetune.models = (environment('BIOPTIMUS_SOURCE'),)  # in practice given on the command line
    config.finetune.setting.update(GRIDS[argument])
    config.finetune.settings = ('standard', *GRIDS[argument])
    return config

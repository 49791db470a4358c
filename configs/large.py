"""PubMedBERT-LARGE: a BERT of 24 layers for biomedical text, otherwise as in configs/pubmedbert.py.

Paper:    Tinn et al. (2023), Fine-tuning large neural language models for biomedical natural language processing,
          Methods and Tables 6, 7, 9, 10; Gu et al. (2021), PubMedBERT, section 6.1.
Data:     BIOPTIMUS_DATA names the folder with pubmed/ and ner/.
Command:  bioptimus run --config=large --workdir=DIR
Options:  large        the peak of PubMedBERT
          large:lower  a peak of 4e-4, where 6e-4 diverges
          electra:ft_large is the paper's ELECTRA of this size.
Plan:     `bioptimus plan --config=large`, an estimate: 62,500 steps, 241 billion pieces, 469 EFLOP.
Time:     1,193 device-hours on A100 at 35 % of peak, so 149 hours on eight. Not run by us at this size.
Memory:   12.9 GiB on each of eight devices, 16 rows of 512 with plain attention.
Expect:   Table 10, F1 on test: 93.23 on BC5-chem, 85.77 on BC5-disease, 88.25 on NCBI-disease, 84.72 on BC2GM, 79.44 on
          JNLPBA; BLURB (Table 9) 82.02, with the best fine-tuning for each task 82.91. The base model has 81.16.

Line by line:
  24 layers of 1,024 with 16 heads, 336 million            stated (Tinn et al.); feed-forward 4,096 as in BERT-large
  "the same setting" as PubMedBERT                         stated: so its abstracts of 128 words and more, vocabulary,
                                                           pairs with next sentences, whole words at 15 %, 62,500 steps
                                                           of 8,192, up to 6e-4 over 10 %, linear to 0
  a learning rate for this size                            not stated; 6e-4 is that of the base model
  `lower`: 4e-4                                            chosen: what Lewis et al. (2020) state for a large model at
                                                           this batch
Chosen by us: what configs/pubmedbert.py chooses; micro-batches of 128 rows.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import check_argument, load

PEAKS = {'': 6e-4, 'lower': 4e-4}
ARGUMENTS = tuple(PEAKS)


def get_config(argument: str = '') -> ConfigDict:
    """The large model, with the peak of the base model or a lower one."""
    check_argument(argument, ARGUMENTS)
    config = load('pubmedbert')
    config.model.update(layers=24, hidden=1024, heads=16, intermediate=4096)
    config.pretrain.update(learning_rate=PEAKS[argument], micro_batches=64)
    return config

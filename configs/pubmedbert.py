"""PubMedBERT: a BERT-base for biomedical text from random weights, with its own vocabulary and next sentences.

Paper:    Gu et al. (2021), Domain-specific language model pretraining for biomedical NLP, sections 2.3 and 6.1, Tables
          5 to 8; Devlin et al. (2019) for the shape and the pairs.
Data:     BIOPTIMUS_DATA names the folder with pubmed/ and ner/, for `pmc` also pmc/, and for `general` also
          vocab/bert-base-uncased.
Command:  bioptimus run --config=pubmedbert --workdir=DIR
Options:  pubmedbert, pubmedbert:abstracts   abstracts of 128 words and more, 62,500 steps
          pubmedbert:pmc                     also full texts of PMC (Table 8)
          pubmedbert:pmc_long                the same, 100,000 steps
          pubmedbert:general                 with the vocabulary of bert-base-uncased (Table 7)
          pubmedbert:pieces                  with single pieces masked, not words
          pubmedbert:general_pieces          both
          pubmedbert:adversarial             with noise on the embeddings (Table 9), without next sentences
Plan:     `bioptimus plan --config=pubmedbert`, an estimate: 62,500 steps, 241 billion pieces, 135 EFLOP; for
          `adversarial` 367.
Time:     344 device-hours on A100 at 35 % of peak, so 43 hours on eight. Not run by us at this size.
Memory:   17.6 GiB on each of eight devices, 32 rows of 512 with plain attention.
Expect:   F1 on test (Table 6): 93.33 on BC5-chem, 85.62 on BC5-disease, 87.82 on NCBI-disease, 84.52 on BC2GM; for
          `pmc` 93.36, 85.62, 88.34, 84.39; for `pmc_long` 93.34, 85.76, 88.04, 84.37; for `general` 93.31, 85.28,
          88.53, 83.93; for `pieces` 92.96, 84.72, 87.26, 83.19; for `general_pieces` 93.20, 85.00, 88.39, 83.65; for
          `adversarial` 93.17, 85.48, 87.99, 84.07.

Stated in the paper, line by line:
  "fewer than 128 words" are left out: corpus.min_words=128, counted between white space (the paper does not say how)
  14 million abstracts, 3.2 billion words, 21 GB, uncased: vocab.lowercase
  WordPiece from this corpus; the size of "standard BERT", 30,522, of which the released file fills 28,895
  BERT-base, random weights: model.* as by default, surgery.strategy=scratch
  whole-word masking, constant 15 %, 80-10-10: phase 0.2. The ramp of PubMedBERT, section 2.3, is not in its models
  next sentence prediction is kept: pretrain.objective=nsp, rows.layout=pairs
  batch 8,192, 62,500 steps (`pmc_long`: 100,000), peak 6e-4, up over 10 % of the steps (6,250), then linear to 0
Not stated; taken from NVIDIA's BERT, which the paper says it follows: Adam with 0.9 and 0.999, epsilon 1e-6, decay of
0.01 but not of LayerNorm and biases, gradients clipped at norm 1, dropout 0.1, a tenth of the documents with pairs of a
random length. That code does not correct Adam's bias; ours does, which matters only in the first steps of a warm-up.
For `adversarial` the paper names ALUM and states no settings. Taken from the code of ALUM: alpha 10, noise of 1e-5
moved once by 1e-3 times its gradient, then stretched (the defaults of config.objective.adversarial; there to continue
from a model, here from random weights). Its rows are those of the others; next sentences are not predicted.
Chosen by us: 512 pieces throughout (no phase of 128); rows of 512 that hold pairs by best fit, where padding leaves
45 % empty, so a batch of 8,192 rows has more text than one of 8,192 sequences; pairs drawn once, masks in every step
(not five copies with fixed masks); abstracts from before March 2020; a warm-up of 10 % for `pmc_long` too.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import PAPER_FINETUNING, check_argument, defaults, environment

STEPS = {'pmc_long': 100_000.0}
ARGUMENTS = ('', 'abstracts', 'pmc', 'pmc_long', 'general', 'pieces', 'general_pieces', 'adversarial')


def get_config(argument: str = '') -> ConfigDict:
    """The model of the paper, or of one of its ablations."""
    check_argument(argument, ARGUMENTS)
    data, config = environment('BIOPTIMUS_DATA'), defaults()
    config.finetune.update(PAPER_FINETUNING)
    full_texts = (f'{data}/pmc/*.tar.gz',) if argument.startswith('pmc') else ()
    config.corpus.update(
        inputs=(f'{data}/pubmed/*/*.xml.gz', *full_texts), min_words=128, published_before='2020-03-01'
    )
    if argument.startswith('general'):
        config.vocab.update(kind='file', file=f'{data}/vocab/bert-base-uncased/vocab.txt')
    config.stages = tuple(stage for stage in config.stages if stage != 'contexts')  # all rows are random
    config.surgery.strategy = 'scratch'
    config.rows.layout = 'pairs'
    config.pretrain.update(
        objective='nsp', batch_rows=8192, micro_batches=32, learning_rate=6e-4, warmup_fraction=0.1
    )
    if argument == 'adversarial':
        config.pretrain.update(objective='adversarial', micro_batches=64)  # two passes are kept in memory
    phase = '0.1' if argument.endswith('pieces') else '0.2'
    config.phases = (phase,)
    config.phase[phase].update(duration=STEPS.get(argument, 62_500.0), duration_unit='steps')
    config.runtime.update(checkpoint_every_steps=500, log_every_steps=50)
    config.finetune.update(folder=f'{data}/ner', max_pieces=512, seeds=(0, 1, 2, 3, 4))
    return config

"""ELECTRA from scratch on PubMed abstracts: replaced-token detection, as Tinn et al. trained it or as first published.

Paper:    Tinn et al. (2023), Fine-tuning large neural language models for biomedical natural language processing,
          Methods and Table 2; Clark et al. (2020), ELECTRA (arXiv 2003.10555), section 3 and Table 6; Gu et al. (2021),
          PubMedBERT, section 6.1.
Data:     BIOPTIMUS_DATA names the folder with pubmed/ and ner/, as for configs/bioptimus.py.
Command:  bioptimus run --config=electra:ft --workdir=DIR
Options:  electra:ft, electra:ft_large (Tinn et al.); electra:original, electra:original_small, electra:original_large
Plan:     `bioptimus plan --config=electra:ft`, an estimate: 62,500 steps, 241 billion pieces, 160 EFLOP, of which the
          generator needs a seventh; 129 device-hours on an H200 at 35 % of peak. Not run by us at these sizes.
Memory:   22.7 GiB on each of eight devices, 32 rows of 512 with plain attention.
Expect:   Table 2 of Tinn et al., base: F1 on test 93.0 on BC5-chem, 84.8 on BC5-disease, 87.2 on NCBI-disease, 84.0
          on BC2GM, 78.6 on JNLPBA; BLURB 79.6, where masked language modelling has 81.4.

Stated by Tinn et al.: a generator a third as wide as the discriminator, a fourth for the large one; "the same
    setting as PubMedBERT". They state no learning rate, masking rate, steps or lambda of their own.
Taken from PubMedBERT for `ft`: an uncased PubMed vocabulary of 30,522; 62,500 steps of 8,192 rows of 512 pieces;
    peak 6e-4 after a tenth of the steps; 15 % masked.
Stated by Clark et al.: layers, widths and heads; generators of a fourth, a third and a fourth; 15 % masked, 25 % for
    large; batches of 128, 256 and 2,048; 1 M, 766 k and 400 k steps; peak 5e-4, 2e-4, 2e-4 after 10,000 steps, linear
    to 0; Adam with 0.9, 0.999, epsilon 1e-6, decay 0.01; dropout 0.1; lambda 50.
As in their code, not in their paper: 85 % of the slots are [MASK] and 15 % stay; the embeddings' LayerNorm is shared
    too; [CLS] and [SEP] are judged; gradients are clipped at 1.
Different from their code: places are drawn without replacement (there some are drawn twice, so 15 % becomes 14 %);
    documents are packed and see only themselves, with one token type (there: two segments of one document); the rate
    is a share of the pieces that may be masked; Adam's bias is corrected; the peak is reached (there the fall begins
    at step 0 and multiplies the rise, so the peak is lr x (1 - warm-up / steps)). Embeddings are as wide as the model
    in small too, since a model without a source has no key for their width.
Chosen by us: the abstracts; micro-batches; 128 pieces per row in small.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import PAPER_FINETUNING, check_argument, defaults, environment, override
from bioptimus_jax.pretrain.objectives.rtd import PUBLISHED

SMALL = dict(layers=12, hidden=256, heads=4, intermediate=1024)
LARGE = dict(layers=24, hidden=1024, heads=16, intermediate=4096)
ARGUMENTS = tuple(PUBLISHED)
SHAPES = {'small': SMALL, 'large': LARGE}
ROWS_AT_ONCE = {'small': 128, 'large': 128}


def get_config(argument: str = 'ft') -> ConfigDict:
    """The published setting of that name."""
    check_argument(argument, ARGUMENTS)
    data, size = environment('BIOPTIMUS_DATA'), argument.rpartition('_')[2]
    published = PUBLISHED[argument]
    config = defaults()
    config.finetune.update(PAPER_FINETUNING)
    config.corpus.inputs = (f'{data}/pubmed/*/*.xml.gz',)
    config.corpus.audit.update(folder=f'{data}/ner', splits=('devel', 'test'))
    config.model.update(family='electra', **SHAPES.get(size, {}))
    config.surgery.strategy = 'scratch'
    pieces = published.row_pieces
    config.rows.update(row_pieces=pieces, max_document_pieces=pieces)
    config.pretrain.update(
        objective='rtd',
        batch_rows=published.batch_rows,
        micro_batches=max(1, published.batch_rows // ROWS_AT_ONCE.get(size, 256)),
        learning_rate=published.learning_rate,
        warmup_fraction=published.warmup_steps / published.steps,
    )
    for name in ('share', 'strength'):
        override(config, f'objective.rtd.{name}', repr(getattr(published, name)))
    config.phases = ('0.1',)
    config.phase['0.1'].update(
        rate=published.rate,
        corruption=published.corruption,
        duration=float(published.steps),
        duration_unit='steps',
    )
    config.runtime.update(checkpoint_every_steps=1000, log_every_steps=50)
    config.finetune.update(folder=f'{data}/ner', max_pieces=pieces, seeds=(0, 1, 2, 3, 4))
    return config

"""The paper's run: BERT-base-uncased adapted to PubMed abstracts, phases 0.1 to 0.4.

Paper:    BIOptimus (arXiv 2308.08625), sections 3 and 8, Tables 1 (initialisation), 5 (phases), 8 (pre-training)
          and 9 (fine-tuning).
Data:     BIOPTIMUS_DATA names the folder with pubmed/ (bioptimus download --to=$BIOPTIMUS_DATA/pubmed) and ner/.
Command:  bioptimus run --config=bioptimus --workdir=DIR       (launch/ has scripts)
Plan:     `bioptimus plan --config=bioptimus`, an estimate: 658,202 steps, 79 billion pieces, 45 EFLOP.
Time:     8 x A100 in the paper; hours are not stated. At 35 % of peak, device-hours: A100 114.2, H100 and H200 36.0,
          TPU v4 129.5, v5e 180.8, v5p 77.6; so 14.3 hours on 8 x A100. Not run by us at this size.
          With attention dropout, as here, a GPU has no attention kernel: expect about 18 % and twice these hours.
Memory:   17.5 GiB on each of 8 devices, 32 rows of 512 with plain attention: 44 % of an A100-40, 22 % of an A100-80
          or H100, 13 % of an H200, 55 % of a TPU v4, 19 % of a v5p; a v5e needs two micro-batches.
Disk:     35 GB, of which checkpoints 9, documents 7, rows 6, and 10 of scratch while `corpus` runs; 38 of scratch
          if the 1.8 billion words are chosen from all of PubMed (--input-words=6.8e9).
Expect:   Table 5, F1 of phase 0.4 on test: BC5-chem 94.10, BC5-disease 84.98, NCBI-disease 89.54, BC2GM 85.25,
          JNLPBA 79.46.

Stated in the paper: vocabulary size, 20 contexts, masking of the phases, batch 256, Adam with weight
decay 0.01, warm-up 0.06, linear decay, 7 to 34 epochs, first learning rate 1e-4, lower at each restart.
Chosen by us, since the paper leaves it open: 512 pieces; 7 epochs and then three times 9, 34 in all; each
restart at 0.7 of the peak before; the optimiser state is carried over; batch 256 is global; dropout 0.1; betas of
0.9 and 0.999, epsilon 1e-6, gradients clipped at 1; from Table 9's ranges 10 epochs, batches of 16, 2e-5.
Attention dropout is 0.1 as in BERT, which needs plain attention.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import PAPER_FINETUNING, check_argument, defaults, environment
from bioptimus_jax.surgery.config import PAPER_ROWS

ARGUMENTS = ('',)
EPOCHS = {'0.1': 7, '0.2': 9, '0.3': 9, '0.4': 9}
RESTART_FACTOR = 0.7


def get_config(argument: str = '') -> ConfigDict:
    """The paper's settings, with what it leaves open named above."""
    check_argument(argument, ARGUMENTS)
    data = environment('BIOPTIMUS_DATA')
    config = defaults()
    config.finetune.update(PAPER_FINETUNING)
    config.source.path = 'bert-base-uncased@86b5e0934494bd15c9632b12f734a8a67f723594'
    config.corpus.update(
        inputs=(f'{data}/pubmed/*/*.xml.gz',),  # baseline, then updatefiles
        published_before='2023-01-01',
        max_words=1_800_000_000,
    )
    config.corpus.audit.update(folder=f'{data}/ner', splits=('devel', 'test'))
    config.surgery.update(PAPER_ROWS)
    config.pretrain.update(batch_rows=256, learning_rate=1e-4)
    for number, (name, epochs) in enumerate(EPOCHS.items()):
        config.phase[name].update(
            duration=float(epochs),
            schedule='restart',
            learning_rate=1e-4 * RESTART_FACTOR**number,
        )
    config.runtime.update(checkpoint_every_steps=2000, log_every_steps=50)
    config.finetune.update(
        folder=f'{data}/ner', epochs=10, learning_rate=2e-5, seeds=(0, 1, 2, 3, 4), max_pieces=512
    )
    return config

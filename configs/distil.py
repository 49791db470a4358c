"""Bio-LM's distilled base model: a pre-trained student learns the predictions of a large teacher with its vocabulary.

Paper:    Lewis et al. (2020), Pretrained language models for biomedical and clinical tasks, section 7 and Table 6; Sanh
          et al. (2019), DistilBERT, for the other weights.
Data:     As for configs/biolm.py. BIOPTIMUS_SOURCE names the student and BIOPTIMUS_TEACHER the teacher: Hugging Face
          folders with the same vocabulary, as configs/biolm.py exports them.
Command:  bioptimus run --config=distil:align --workdir=DIR
Options:  distil:distil             masked language modelling and the divergence (Table 6, "distil")
          distil:align              also the cosine, through a map of widths ("distil + align")
          distil:distil_distilbert, distil:align_distilbert
                                    the same with DistilBERT's weights
          distil:cosine             masked language modelling and the cosine, to see the map alone; not in the paper
          distil:longer             the same steps without a teacher ("train longer")
Plan:     `bioptimus plan --config=distil:align`, an estimate: 50,000 steps, 193 billion pieces, 281 EFLOP with a
          teacher of RoBERTa-large's shape; distil:longer 108.
Time:     715 device-hours on A100 at 35 % of peak, so 89 hours on eight.
Memory:   16.2 GiB on each of eight devices, 16 rows of 512 with plain attention.
Expect:   Table 6, mean of all tasks: student before 84.7, longer 84.8, distil 84.9, distil + align 85.0, teacher 85.8.
          Not run by us at this size.

Line by line:
  "teacher ours-large, student ours-base (+PM+M3+Voc)"    BIOPTIMUS_TEACHER, BIOPTIMUS_SOURCE; vocabulary kept
  50,000 steps, batch 8,192, 5e-4, warm-up of 5 %         stated (Lewis et al., section 7.1)
  decay to 0, Adam with 0.9 and 0.98, 1e-6, 0.01          as for pre-training; not repeated for distillation
  15 %, 80-10-10, 512 pieces, dropout 0.1, no clipping    as for pre-training, and in fairseq
  L = 5 MLM + 2 KL + 1 (1 - cosine), temperature 2        printed, "largely following" DistilBERT, whose command has KL
                                                          5 and MLM 2: probably a slip, so both are here
  a linear map from 768 to 1,024                          stated; its bias (here: yes, from 0) and its start values
                                                          (here: normal, 0.02) are not
  KL over every piece, times T^2                          as in DistilBERT's code; the paper does not say
  the corpus                                              not stated; here that of pre-training
Not followed: DistilBERT masks rare tokens more often; Bio-LM does not say that it does so.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import PAPER_FINETUNING, check_argument, defaults, environment, objective

TERMS = {'distil': (1, 1, 0), 'align': (1, 1, 1), 'cosine': (1, 0, 1)}
WEIGHTS = {'': (5.0, 2.0, 1.0), 'distilbert': (2.0, 5.0, 1.0)}
ARGUMENTS = (
    'distil',
    'align',
    'distil_distilbert',
    'align_distilbert',
    'cosine',
    'longer',
)
LARGE = (24, 1024, 16, 4096)  # layers, hidden size, heads, feed-forward size


def get_config(argument: str = '') -> ConfigDict:
    """The arm that the argument names."""
    check_argument(argument, ARGUMENTS)
    data = environment('BIOPTIMUS_DATA')
    config = defaults()
    config.finetune.update(PAPER_FINETUNING)
    config.source.path = environment('BIOPTIMUS_SOURCE')
    config.corpus.update(inputs=(f'{data}/pubmed/*/*.xml.gz',), published_before='2020-04-01')
    config.vocab.kind = 'source'
    config.surgery.strategy = 'copy'
    # The shape of the student, for a plan without it; 514: positions begin after the padding id.
    config.model.update(family='roberta', max_positions=514)
    config.pretrain.update(
        batch_rows=8192,
        micro_batches=64,
        learning_rate=5e-4,
        warmup_fraction=0.05,
        decay='all',
        beta2=0.98,
        clip_norm=0.0,
    )
    config.phases = ('0.1',)
    config.phase['0.1'].update(duration=50_000.0, duration_unit='steps')
    terms, _, of = argument.partition('_')
    if terms in TERMS:
        weights = tuple(weight * counts for weight, counts in zip(WEIGHTS[of], TERMS[terms]))
        config.pretrain.objective = 'distil'
        config.objective['distil'] = objective(
            'distil',
            teacher=environment('BIOPTIMUS_TEACHER'),
            weights=weights,
            temperature=2.0,
            kl_positions='all',
            shape=LARGE,
        )
    config.runtime.update(checkpoint_every_steps=500, log_every_steps=50)
    config.finetune.update(
        folder=f'{data}/ner', models=('source', '0.1'), max_pieces=512, seeds=(0, 1, 2, 3, 4)
    )
    return config

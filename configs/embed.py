r"""Vectors of texts from an adapted encoder: titles find their abstracts among those of the batch.

Papers:   Title and abstract are the pairs that published PubMed embedding models were made from; InfoNCE with negatives
          of the batch: Karpukhin et al. (2020), Henderson et al. (2017); two dropouts: SimCSE (Gao et al. 2021).
Data:     BIOPTIMUS_DATA names the folder with pubmed/ and retrieval/, the latter with sets in BEIR's layout. Keep the
          documents of these sets out of the corpus.
Source:   BIOPTIMUS_SOURCE names the encoder: any export of an adaptation, or a hub id. Its vocabulary is kept.
Command:  bioptimus run --config=embed --workdir=DIR
Options:  embed             title and abstract, each found from the other
          embed:one_way     the abstract from the title alone
          embed:neighbours  sentences that follow one another
          embed:twice       documents and themselves, which dropout tells apart
          Pairs of your own: --config.corpus.inputs=pairs.jsonl --config.corpus.text_fields=question,answer
Plan:     `bioptimus plan --config=embed`, an estimate: 10,000 steps, 4.8 billion pieces, 3.6 EFLOP with a source of
          BERT-base's shape, a quarter of them in the first pass that micro-batches need.
Time:     9 device-hours on A100 at 35 % of peak.
Expect:   not run by us at this size; in small: docs/howto/embed.md.

Chosen by us: 1,024 rows of 512 pieces, some 1,500 pairs, all of them negatives of one another whatever the number of
devices and micro-batches; temperature 0.05; the mean of all states; beginnings of 256 and 128 numbers that serve for
the whole; 2e-5 with a warm-up of 6 %, dropout 0.1.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import check_argument, defaults, environment, objective, phase

ARGUMENTS = ('', 'one_way', 'neighbours', 'twice')


def get_config(argument: str = '') -> ConfigDict:
    """Pairs of title and abstract, or those that the argument names."""
    check_argument(argument, ARGUMENTS)
    data = environment('BIOPTIMUS_DATA')
    config = defaults()
    config.stages = tuple('corpus vocab surgery rows pretrain export finetune report'.split())
    config.source.path = environment('BIOPTIMUS_SOURCE')
    config.corpus.inputs = (f'{data}/pubmed/*/*.xml.gz',)
    config.vocab.kind = 'source'
    config.surgery.strategy = 'copy'
    config.rows.layout = {'': 'first_line', 'one_way': 'first_line'}.get(argument, argument)
    config.pretrain.update(objective='contrastive', batch_rows=1024, micro_batches=16, learning_rate=2e-5)
    config.objective['contrastive'] = objective(
        'contrastive', direction='one_way' if argument == 'one_way' else 'both', dimensions=(256, 128)
    )
    config.phases = ('embed',)
    config.phase['embed'] = phase(duration=10_000.0, duration_unit='steps')
    config.runtime.update(checkpoint_every_steps=500, log_every_steps=50)
    config.finetune.update(folder=f'{data}/retrieval', models=('source', 'embed'), max_pieces=512)
    return config

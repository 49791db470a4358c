"""A real run that a laptop finishes: a small source on general English, adapted to real PubMed abstracts.

Paper:    BIOptimus (arXiv 2308.08625), sections 3 and 8, at 2 layers x 128, 128 pieces, one epoch, rescaled rows.
Data:     BIOPTIMUS_DATA names the folder with general/, pubmed/, ner/ and vocab/; every path can be given on
          the command line instead. ag_news is left out: the difficulty probe uses it as its domain.
Command:  bioptimus run --config=small:source --workdir=runs/small-source
          bioptimus run --config=small --workdir=runs/small --config.source.path=runs/small-source/export/0.1
          small:roberta-source and small:roberta, small:modernbert-source and small:modernbert are the same with other
          families of about as many parameters: a RoBERTa with byte-level vocabularies, and a ModernBERT with BERT's.
          small:electra-source and small:electra train replaced-token detection, with a generator as wide as the model
          and lambda 5 (a narrow one with lambda 50 learns only frequencies); the latter continues with both models:
          set BIOPTIMUS_SOURCE=runs/small-electra-source/export/0.1.
          small:nsp, small:no_nsp and small:single are PubMedBERT's recipe at small scale, from random weights on
          abstracts of 128 words and more (Tinn et al., Table 2): pairs with next sentence prediction, two segments
          without it (the second always follows the first), and single documents. With
          --config.rows.layout=pairs `no_nsp` has random second texts too.
          small:detour adapts the same source as in configs/detour.py: causal, then masked, in as many steps.
          small:wide-source is a source of 4 layers x 256 that reads the same texts 24 times, for a GPU.
          small:fitted-source continues a model that has read more, such as all-MiniLM-L6-v2, on the texts of the source
          (BIOPTIMUS_SOURCE is its folder). Where it has no masked-LM head, one is fitted while the body is trained on.
Time:     an hour on two cores, both commands together; half of that with --config.phase.NAME.duration=0.0625 for each
          phase, a quarter of an epoch in all.
Expect:   for that quarter: held-out loss 6.23, 5.69, 5.34, 5.23 at the ends of the phases; F1 of 69 on NCBI-disease and
          75 on BC5-chem (ModernBERT: 4.76, 73 and 79), far below the paper's (88-94 with BERT-base). Records:
          docs/results/families.jsonl. All three splits of the NER sets are kept out of the corpus.
"""

from ml_collections import ConfigDict

from bioptimus_jax.ext import PAPER_FINETUNING, check_argument, defaults, environment, override, phase
from bioptimus_jax.surgery.config import PAPER_ROWS

SHAPES: dict[str, dict] = {
    'bert': {'intermediate': 512, 'max_positions': 512},
    # RoBERTa counts its positions from 2.
    'roberta': {'intermediate': 512, 'max_positions': 514},
    'electra': {'intermediate': 512, 'max_positions': 512},
    # The three matrices of a gated block have as many weights as two of the others.
    'modernbert': {'intermediate': 344, 'max_positions': 512},
}
OBJECTIVES = {'electra': 'rtd'}
VOCABULARIES = {'roberta': {'tokenizer': 'bytelevel', 'lowercase': False}}
ARMS: dict[str, dict] = {
    'nsp': {'layout': 'pairs', 'objective': 'nsp'},
    'no_nsp': {'layout': 'two_segments', 'objective': 'mlm'},
    'single': {'layout': 'documents', 'objective': 'mlm'},
}
ARGUMENTS: dict[str, str] = {  # and the model family of each
    **dict.fromkeys(('', 'source', 'wide-source', 'fitted-source', 'detour', *ARMS), 'bert'),
    'roberta': 'roberta',
    'roberta-source': 'roberta',
    'electra': 'electra',
    'electra-source': 'electra',
    'modernbert': 'modernbert',
    'modernbert-source': 'modernbert',
}


def get_config(argument: str = '') -> ConfigDict:
    """The adaptation of the source, or with `source` the source itself."""
    check_argument(argument, ARGUMENTS)
    family = ARGUMENTS[argument]
    data = environment('BIOPTIMUS_DATA')
    config = defaults()
    config.finetune.update(PAPER_FINETUNING)
    config.model.update(family=family, layers=2, hidden=128, heads=2, **SHAPES[family])
    config.vocab.update(VOCABULARIES.get(family, {}))
    if family in OBJECTIVES:
        config.pretrain.objective = OBJECTIVES[family]
        override(config, 'objective.rtd.share', '1')
        override(config, 'objective.rtd.strength', '5')
        for name in ('0.1', '0.2', '0.3'):  # in place of 80-10-10; 0.4 has only [MASK]
            config.phase[name].corruption = (0.85, 0.0, 0.15)
    # No dropout: no text is seen twice. Initial weights: 1 / sqrt(hidden); 0.02 is meant for a hidden size of 768.
    config.model.update(dropout=0.0, attention_dropout=0.0, initializer_range=0.08)
    # Rows that are wider than documents fill better and waste fewer prediction slots.
    config.rows.update(row_pieces=256, max_document_pieces=128)
    # Micro-batches: parts fit a CPU's cache. Beta 2: a thousand steps are too few for an average over a thousand.
    config.pretrain.update(batch_rows=16, micro_batches=4, learning_rate=2e-3, beta2=0.98)
    config.evaluation.rows = 256
    config.runtime.checkpoint_every_steps = 250
    general = (
        f'{data}/general/wikitext-2/*.txt',
        f'{data}/general/wiki-split/*.tsv',  # column 0; the other column has the same in two sentences
        f'{data}/general/gutenberg/*.txt',
    )
    if argument in ARMS:
        config.stages = tuple('corpus vocab surgery rows pretrain export finetune report'.split())
        config.corpus.update(inputs=(f'{data}/pubmed/*.jsonl.gz',), min_words=128)
        config.corpus.audit.update(folder=f'{data}/ner', splits=('train', 'devel', 'test'))
        config.surgery.strategy = 'scratch'
        config.vocab.size = 8000  # for thirteen million words
        config.rows.layout = ARMS[argument]['layout']
        config.pretrain.update(objective=ARMS[argument]['objective'], warmup_fraction=0.1)
        config.phases = ('0.2',)
        config.phase['0.2'].update(duration=2000.0, duration_unit='steps')
        config.finetune.update(
            folder=f'{data}/ner', datasets=('ncbi-disease', 'bc5-chem'), learning_rate=5e-4
        )
        return config
    if argument == 'fitted-source':
        config.stages = ('corpus', 'vocab', 'surgery', 'rows', 'pretrain', 'export')
        config.source.path = environment('BIOPTIMUS_SOURCE')
        config.vocab.kind = 'source'
        config.surgery.strategy = 'copy'
        config.corpus.inputs = general
        config.pretrain.update(batch_rows=8, micro_batches=2, learning_rate=5e-4)
        config.phases = ('0.1',)
        config.phase['0.1'].duration = 0.5
        return config
    if argument.endswith('source'):
        config.stages = ('corpus', 'vocab', 'surgery', 'rows', 'pretrain', 'export')
        config.surgery.strategy = 'scratch'
        config.corpus.inputs = general
        # With short documents and small batches training leaves the unigram plateau sooner.
        config.corpus.words_per_document = 40
        config.rows.max_document_pieces = 64
        config.pretrain.update(batch_rows=8, micro_batches=2, learning_rate=3e-3)
        if family not in VOCABULARIES:
            config.vocab.update(kind='file', file=f'{data}/vocab/bert-base-uncased/vocab.txt')
        config.phases = ('0.1',)
        config.phase['0.1'].duration = 2.0
        if argument == 'wide-source':
            # Texts are seen many times, so something is dropped; a fused kernel needs all attention probabilities.
            config.model.update(layers=4, hidden=256, heads=4, intermediate=1024, dropout=0.1)
            config.pretrain.update(batch_rows=64, micro_batches=1, learning_rate=1e-3)
            config.phase['0.1'].duration = 24.0
        return config
    config.source.path = environment('BIOPTIMUS_SOURCE')  # in practice given on the command line
    if family in OBJECTIVES:
        config.objective.rtd.generator = f'{config.source.path}-generator'
    # The paper's rows except for their length: last-layer states are many times as long as this source's input rows.
    config.surgery.update({**PAPER_ROWS, 'scale': 'rescaled'})
    config.corpus.inputs = (f'{data}/pubmed/*.jsonl.gz',)
    config.corpus.audit.update(folder=f'{data}/ner', splits=('train', 'devel', 'test'))
    config.vocab.general = general
    for name in config.phases:
        config.phase[name].duration = 0.25
    if argument == 'detour':  # as configs/detour.py, with the shares of its phases
        config.phases = ('causal', 'decay')
        shared = dict(schedule='restart', rate=0.15)
        config.phase['causal'] = phase(
            **shared, objective='causal', duration=10 / 11, fall='constant', warmup_fraction=0.06
        )
        config.phase['decay'] = phase(
            **shared, duration=1 / 11, fall='sqrt', end_fraction=0.1, warmup_fraction=0.0
        )
    config.finetune.update(
        folder=f'{data}/ner',
        datasets=('ncbi-disease', 'bc5-chem'),
        models=('source', 'initial', *config.phases),
        learning_rate=5e-4,
    )
    return config

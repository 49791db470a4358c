"""The schema of an experiment: frozen records whose fields carry type, default, bounds and meaning.

Keys under `runtime`, and keys that hold paths, never change a result; every other key is a *result* key and enters the
fingerprint of the stages that read its section.
"""

import dataclasses
import itertools
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

from ml_collections import ConfigDict

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.fields import MOST, NOT_EMPTY, field_of, key, meant, named, record_from, section, walk
from bioptimus_jax.finetune.texts.features import FEATURES, PREDICTORS
from bioptimus_jax.plugins import Plugins
from bioptimus_jax.pretrain.decay import DECAYS
from bioptimus_jax.pretrain.layouts import LAYOUTS, PAIRED
from bioptimus_jax.pretrain.optimizers import OPTIMIZERS
from bioptimus_jax.pretrain.rates import FALLS
from bioptimus_jax.pretrain.shares import OWN, quotas
from bioptimus_jax.pretrain.units import MASKINGS
from bioptimus_jax.surgery.initialisations import (
    INITIALISATIONS,
    MAPS,
    OF_FIT,
    Initialisation,
    Map,
    concerned,
)

# Large variations: each is a file of the package, and its name the value of a key.
TOKENIZERS = Plugins('bioptimus_jax.vocab.kinds', 'KIND')
FAMILIES = Plugins('bioptimus_jax.model.families', 'FAMILY')
OBJECTIVES = Plugins('bioptimus_jax.pretrain.objectives', 'OBJECTIVE')
TRACKERS = Plugins('bioptimus_jax.trackers', 'TRACKER')
OBJECTIVE_OR_NONE = Plugins(OBJECTIVES.package, OBJECTIVES.holds, optional=True)
LARGEST_SEED = 2**31 - 1  # jax keeps 32 bits of a seed and drops the rest in silence
MOST_STEPS = 2**31 - 1  # a step's number has 32 bits, too
LARGEST_SIZE, MOST_LAYERS = 2**24, 2**10  # far above any BERT: more would only fill the memory
MOST_ROWS = 2**20  # 16 times the largest published batch (LAMB, 65,536)
WIDEST_ROW = 2**16 - 1  # rows are stored with lengths and positions of 16 bits
MOST_SHARDS = 10_000  # each is a file: 27 times those of the whole of PubMed
MOST_CONTEXTS = 10_000  # of a token: all of them are held at once (paper: 20)
LARGEST_BETA = 0.999999  # with 1, as float32 rounds what is nearer, Adam divides by 0
MOST_WORKERS = 4096  # processes or threads of one machine
LONGEST = types.MappingProxyType({'steps': MOST_STEPS, 'epochs': 10**6, 'words': MOST, 'tokens': MOST})
STANDARD = 'standard'
# Of MIMIC-III, where some end in a space.
NOTE_CATEGORIES = tuple(
    'Case Management, Consult, Discharge summary, ECG, Echo, General, Nursing, Nursing/other, Nutrition, Pharmacy, '
    'Physician, Radiology, Rehab Services, Respiratory, Social Work'.split(', ')
)

# Kinds of article that are no ordinary ones, and how readers are told of them.
KINDS = {
    'retracted': 'retracted articles',
    'retraction': 'notices of a retraction',
    'concern': 'notices of a concern',
    'correction': 'notices of a correction',
}


@dataclasses.dataclass(frozen=True)
class Source:
    """The encoder that is adapted. An empty path means: none, every weight starts at random."""

    path: str = key('', 'local Hugging Face folder, or a hub id', path=True)
    revision: str = key('', 'commit or tag of the hub id (required with a hub id)')


@dataclasses.dataclass(frozen=True)
class Audit:
    """Benchmark texts, found by text and left out before anything else is made from the corpus."""

    folder: str = key('', 'folder of NER sets, in any form of finetune.folder; empty: no audit', path=True)
    datasets: tuple[str, ...] = key((), 'sets of that folder; empty: all of them')
    splits: tuple[str, ...] = key(('devel', 'test'), 'splits whose sentences are looked for')
    min_letters: int = key(40, 'sentences with fewer letters and digits are too common to tell', low=1)


@dataclasses.dataclass(frozen=True)
class Near:
    """Near duplicates, by MinHash: of two documents that share most of their word n-grams the first stays."""

    threshold: float = key(
        0.8, 'estimated Jaccard similarity that is too high; 0: none are left out', low=0, high=1
    )
    words: int = key(5, 'words of an n-gram', low=1)


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Documents: what is read, what is left out, what is held out."""

    inputs: tuple[str, ...] = key(
        (),
        'files or globs: .xml, .nxml, .tar, .nbib, .jsonl, .json, .txt, .tsv, .csv (or .gz), .parquet, .arrow; or '
        'hf://datasets/...; files of a pattern by the numbers in their names; updates of PubMed, PMC last',
        path=True,
    )
    text_fields: tuple[str, ...] = key(
        ('title', 'abstract'), '.jsonl, .json, .parquet, .arrow, tables with names: joined by line breaks'
    )
    id_field: str = key('id', 'of these: field with the document id; empty: ids are made from the texts')
    section_labels: bool = key(
        False,
        'PubMed: keep BACKGROUND, METHODS ... before their parts of an abstract; PMC: titles of sections',
    )
    script_brackets: str = key(
        'numbers',
        'PubMed, PMC: superscripts and subscripts in brackets: none (CO2, 10-3), those that would make another number '
        "(CO2, 10(-3)), as PubMed's abstracts have it, or all (CO(2), 10(-3))",
        one_of=('none', 'numbers', 'all'),
        before='none',
    )
    published_before: str = key(
        '',
        'PubMed, PMC: YYYY-MM-DD; what is not surely from before is left out: later, undated, or dated too vaguely '
        '(paper: 2023-01-01)',
    )
    leave_out: tuple[str, ...] = key(
        (),
        'PubMed, PMC: retracted articles, notices of a retraction, a concern, a correction; counted if kept, too',
        one_of=tuple(KINDS),
    )
    article_parts: tuple[str, ...] = key(
        ('title', 'abstract', 'paragraphs'),
        'PMC: what is read of an article; the paragraphs are those of its body',
        one_of=('title', 'abstract', 'paragraphs', 'captions'),
    )
    note_categories: tuple[str, ...] = key(
        (),
        "MIMIC's NOTEEVENTS: notes of other categories are left out; empty: none are",
        one_of=NOTE_CATEGORIES,
    )
    on_bad_record: str = key(
        'skip',
        'an unreadable record, article or note is left out and listed in bad_records.jsonl, or ends the stage',
        one_of=('skip', 'fail'),
    )
    on_broken_file: str = key(
        'fail',
        'a file that is cut off or damaged ends the stage, or is listed and its good part read; unlike its .md5: none',
        one_of=('fail', 'skip'),
    )
    tsv_column: int = key(
        0,
        'column of .tsv and .csv files that holds the text, from 0; 0 where columns have names: by name or length',
        low=0,
    )
    words_per_document: int = key(
        200, '.txt, .tsv, .csv without names: paragraphs are joined up to this many words', low=1
    )
    encoding: str = key('utf-8', 'of text files', one_of=('utf-8', 'latin-1'))
    min_words: int = key(
        5, 'shorter documents are left out; of scripts without blanks each letter is a word', low=1
    )
    max_document_words: int = key(0, 'longer documents are left out; 0: none are', low=0)
    languages: tuple[str, ...] = key((), 'codes as en, de: documents in others are left out; empty: none')
    near: Near = section(Near)
    max_words: int = key(0, 'a random choice of documents with this many words (paper: 1.8e9); 0: all', low=0)
    choice_seed: int = key(0, 'of that choice', low=0, high=LARGEST_SEED)
    heldout_fraction: float = key(0.01, 'share of documents held out, by hash of the id', low=0, high=0.5)
    shards: int = key(
        0,
        'ArrayRecord shards of the training split; 0: four, or one for 100,000 documents',
        low=0,
        high=MOST_SHARDS,
    )
    audit: Audit = section(Audit)


@dataclasses.dataclass(frozen=True)
class Vocab:
    """The tokenizer of the adapted model."""

    tokenizer: str = key(
        'wordpiece',
        'kind of tokenizer (where the source is kept, its own): a file in vocab/kinds/',
        one_of=TOKENIZERS,
    )
    kind: str = key(
        'train',
        "train one, take `file`, keep the source's, or append to the source's what a new one adds",
        one_of=('train', 'file', 'source', 'append'),
    )
    file: str = key(
        '',
        'the vocabulary for kind=file: a vocab.txt of WordPiece, a tokenizer.json or vocab.json of byte-level pairs',
        path=True,
    )
    size: int = key(
        30522, 'entries of a vocabulary that is trained, special tokens included', low=100, high=LARGEST_SIZE
    )
    lowercase: bool = key(True, 'uncased (must agree with the source)')
    min_frequency: int = key(2, 'pairs seen less often are not merged', low=1)
    limit_alphabet: int = key(1000, 'distinct characters kept', low=30, high=LARGEST_SIZE)
    sample_words: int = key(
        200_000_000, 'about this many words are counted, documents chosen by hash of the id; 0: all', low=0
    )
    sample_seed: int = key(0, 'of that choice', low=0, high=LARGEST_SEED)
    general: tuple[str, ...] = key(
        (),
        'a general corpus for comparing word frequencies: files or globs as corpus.inputs; empty: none',
        path=True,
    )


@dataclasses.dataclass(frozen=True)
class Contexts:
    """Sentences of the corpus for every token that the source does not have (paper, section 3)."""

    per_token: int = key(20, 'distinct sentences per token, uniform over places', low=1, high=MOST_CONTEXTS)
    max_characters: int = key(1000, 'longer sentences are cut around the token', low=50)


@dataclasses.dataclass(frozen=True)
class Model:
    """Shape of a model without a source. With a source, only the dropout rates are read."""

    family: str = key('bert', 'as model_type in config.json: a file of model/families', one_of=FAMILIES)
    layers: int = key(12, 'encoder layers', low=1, high=MOST_LAYERS)
    hidden: int = key(768, 'hidden size', low=8, high=LARGEST_SIZE)
    heads: int = key(12, 'attention heads', low=1, high=LARGEST_SIZE)
    intermediate: int = key(3072, 'feed-forward size', low=8, high=LARGEST_SIZE)
    max_positions: int = key(512, 'rows of the position table', low=8, high=LARGEST_SIZE)
    dropout: float = key(0.1, 'of embeddings and layer outputs', low=0, high=0.9)
    attention_dropout: float = key(0.1, 'of attention probabilities', low=0, high=0.9)
    initializer_range: float = key(0.02, 'standard deviation of random weights', low=0, high=1)


@dataclasses.dataclass(frozen=True)
class Surgery:
    """How the embedding rows of new tokens are made (paper, section 3, Table 1)."""

    strategy: str = key(
        'contextualized',
        'a new row is ' + '; '.join(f'{name}: {one.meaning}' for name, one in INITIALISATIONS.items()),
        one_of=INITIALISATIONS,
    )
    contexts: str = key('all', 'all, or m ~ U{1..found} as the paper may be read', one_of=('all', 'uniform'))
    max_contexts: int = key(0, 'contexts of a token used at most, drawn from those found; 0: no bound', low=0)
    layers: tuple[int, ...] = key(
        (),
        f'{concerned("layers")}: layers of the source to read states from, their mean where there are '
        'several; 0: the embeddings, -1: the last, (): the two in the middle, of averaged_last the last',
        low=-1,
    )
    pooling: str = key(
        'mean',
        'of the pieces that spell a token: the mean, or the first or last one',
        one_of=('mean', 'first', 'last'),
    )
    shrinkage: float = key(
        1.0,
        f'{concerned("shrinkage")}: k; n contexts count n / (n + k) and the context-free value the rest; 1: equation 2 '
        'with that value as one more context',
        low=0,
    )
    map: str = key(
        'spelled',
        f'{concerned("map")}: states as they are, or mapped linearly to input rows. Fitted on tokens of the source: '
        + '; '.join(f'{name}, {one.meaning}' for name, one in MAPS.items() if one.anchors)
        + '. Mapped rows are short: see scale',
        one_of=MAPS,
    )
    fit_steps: int = key(
        0,
        f'{concerned("fit_steps")}: steps of gradient descent on the new rows alone, until one piece does what the '
        'pieces of the source do (token distillation); 0: none. Reads contexts with every strategy',
        low=0,
    )
    fit_layer: int = key(
        -1,
        'of fit_steps: the layer with the states that one piece and several are to agree in; -1: the last, else 1 to '
        'the depth. Lower ones take less time: the layers above are not computed',
        low=-1,
    )
    fit_cross_entropy: float = key(
        0.0,
        "of fit_steps: weight of a second term, in which the source's masked-LM head has to name the new token, hidden "
        'in its context, among its own tokens and all new ones. Without it the fit sees the rows as input alone, but '
        'they are output rows too. 1: as large as the first term at every step; 0: none',
        low=0,
    )
    fit_again: float = key(
        0.0,
        'of fit_steps: share of the new tokens, those that are then furthest from the source, that get as many steps '
        'again on their own contexts; 0: none',
        low=0,
        high=1,
    )
    fit_only: str = key(
        '',
        'of fit_steps: a file with the new tokens to fit, one a line, such as analyze/bad_tokens.txt of an earlier '
        'run; the others keep their rows. Empty: all new tokens',
        path=True,
    )
    donor: str = key(
        '',
        f'{concerned("donor")}, and the probe: another model, which knows tokens that the source lacks, a folder or a '
        "hub id; empty: word vectors trained on this run's corpus (needs the extra donor)",
        path=True,
    )
    donor_revision: str = key('', 'commit or tag of the hub id (required with a hub id)')
    anchors: int = key(
        64,
        f'{concerned("anchors")}: tokens of the source that a row is the sum of; below the dimensions of the donor '
        '(300 of word vectors)',
        low=1,
        high=4096,
    )
    scale: str = key(
        'centred',
        "literal; rescaled to the mean norm of the source's rows; or centred: moved and stretched as a whole until "
        "mean and mean distance from it are the source's (drawn rows stay as drawn)",
        one_of=('literal', 'rescaled', 'centred'),
    )
    dealt: bool = key(
        False,
        'a control: the finished rows are dealt at random to other new tokens; the effect that remains is not due '
        'to what they say about their token',
    )
    bias: str = key(
        'zero',
        'MLM bias of new tokens: zero, mean over the source pieces, or a log(count in the corpus) + c as fitted on '
        'shared tokens',
        one_of=('zero', 'mean', 'log_count'),
    )
    batch_pieces: int = key(
        0, 'source pieces encoded at once; 0: 2,048 on CPUs, else 65,536 a device', low=0, high=LARGEST_SIZE
    )

    @property
    def initialisation(self) -> Initialisation:
        """The record of this strategy."""
        return INITIALISATIONS[self.strategy]

    @property
    def fitted_map(self) -> Map:
        """The record of `map`, where this strategy has one; else that of none."""
        return MAPS[self.map if 'map' in self.initialisation.keys else 'none']

    @property
    def reads_spelling(self) -> bool:
        """Whether rows are predicted from characters, for the rows themselves or for their map."""
        return self.initialisation.spelling or self.fitted_map.spelling

    @property
    def reads_contexts(self) -> bool:
        """Whether rows are made from contexts, or fitted on them."""
        return self.initialisation.contexts or self.fit_steps > 0

    @property
    def reads_corpus(self) -> bool:
        """Whether word vectors are trained on the corpus."""
        return self.initialisation.donor and not self.donor

    def different(self, usual: 'Surgery') -> dict[str, Any]:
        """The keys that this strategy is concerned with and that are other than in `usual`; not the strategy."""
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        concerned = self.initialisation.keys + (('contexts', 'max_contexts') if self.reads_contexts else ())
        return {n: v for n, v in own.items() if n in concerned and v != getattr(usual, n)}


PAPER_ROWS: Mapping[str, Any] = {'layers': (-1,), 'map': 'none', 'shrinkage': 0.0, 'scale': 'literal'}
"""Of `config.surgery`, what makes the paper's rows; the defaults are what rebuilt hidden tokens best."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """Tokenised documents, packed into rows of fixed width."""

    row_pieces: int = key(512, 'pieces a row', low=8, high=WIDEST_ROW)
    max_document_pieces: int = key(512, 'longer ones are cut; counts special tokens', low=8, high=WIDEST_ROW)
    block_documents: int = key(4096, 'documents packed together', low=1, high=MOST_ROWS)
    shard_rows: int = key(65536, 'rows a file', low=1, high=LARGEST_SIZE)
    layout: str = key(
        'documents',
        'what is packed; ' + '; '.join(f'{name}: {one.meaning}' for name, one in LAYOUTS.items()),
        one_of=LAYOUTS,
    )
    short_pairs: float = key(
        0.1,
        'share of documents with pairs of a random length, not of max_document_pieces (BERT: 0.1)',
        low=0,
        high=1,
        only_with=('rows.layout', PAIRED),
    )
    pair_seed: int = key(
        0, 'of all that is drawn', low=0, high=LARGEST_SEED, only_with=('rows.layout', PAIRED)
    )


@dataclasses.dataclass(frozen=True)
class Corpora:
    """Rows of another corpus, for phases that read several: those of another run with the same vocabulary."""

    run: str = key('', 'run folder with stages vocab and rows', path=True)


@dataclasses.dataclass(frozen=True)
class Phase:
    """One masking setting of the curriculum (paper, Table 4 and section 8)."""

    masking: str = key('tokens', 'what is drawn', one_of=MASKINGS)
    rate: float = key(0.15, 'share of pieces that are predicted', low=0.01, high=0.9)
    corruption: tuple[float, ...] = key((0.8, 0.1, 0.1), 'shares of the mask token, random token, unchanged')
    corruption_unit: str = key('piece', 'drawn per piece (BERT) or word (fairseq)', one_of=('piece', 'word'))
    duration: float = key(1.0, 'length of the phase, in its unit', low=0)
    duration_unit: str = key('epochs', 'unit of the duration', one_of=('steps', 'words', 'tokens', 'epochs'))
    learning_rate: float = key(0.0, 'peak of this phase; 0: pretrain.learning_rate', low=0, high=1)
    schedule: str = key(
        'continue', 'the learning rate continues, or warms up again', one_of=('continue', 'restart')
    )
    fall: str = key(
        'linear',
        'after its warm-up the learning rate falls '
        + '; '.join(f'{name}: {fall.meaning}' for name, fall in FALLS.items())
        + '. Phases that continue fall as the one that they continue',
        one_of=FALLS,
    )
    optimizer: str = key('carry', 'optimiser state at the start of the phase', one_of=('carry', 'reset'))
    corpora: tuple[str, ...] = key(
        (),
        'where rows come from, with weights, as own=0.7,notes=0.3: names of `corpora`; empty: the corpus of this run',
    )
    warmup_fraction: float = key(
        -1.0, 'as pretrain.warmup_fraction, of the path that begins here; -1: as that', low=-1, high=1
    )
    end_fraction: float = key(
        -1.0, 'as pretrain.end_fraction, of the path that begins here; -1: as that', low=-1, high=1
    )
    rate_end: float = key(
        0.0, 'the rate moves to this one within the phase, in a straight line; 0: it stays', low=0, high=0.9
    )
    rate_parts: int = key(
        0,
        'the moving rate is constant in each of this many equal parts of the phase; 0: none',
        low=0,
        high=1000,
    )
    objective: str = key(
        '', 'what is minimised in this phase; empty: pretrain.objective', one_of=OBJECTIVE_OR_NONE
    )

    @property
    def rates(self) -> tuple[float, float]:
        """The masking rate at the first step and at the last one."""
        return self.rate, self.rate_end or self.rate


PAPER_PHASES = types.MappingProxyType(
    {
        '0.1': Phase('tokens', 0.15),
        '0.2': Phase('words', 0.15),
        '0.3': Phase('words', 0.20),
        '0.4': Phase('words', 0.20, (1.0, 0.0, 0.0)),
    }
)


SELF_PACED = 'self_paced'
ORDERS = ('given', 'easy_to_hard', 'hard_to_easy', 'shuffled', SELF_PACED)
BY_DIFFICULTY = ('easy_to_hard', 'hard_to_easy')
ENTITIES = 'entities'
PACES = ('heldout', ENTITIES)
"""What self-pacing goes by (`pretrain.curriculum.PACE_VALUES`)."""
MEASURES = {'masked': 'masked', 'all': 'perplexity'}
"""curriculum.measure -> the name of what it goes by in difficulty.json."""
INITIAL, SOURCE = 'initial', 'source'  # models that are no phases
SNAPSHOT = '@'  # between a phase and the share of it that was done: 0.1@25


@dataclasses.dataclass(frozen=True)
class Curriculum:
    """Order of the phases, the difficulty that it is computed from, and phases that end early (paper, section 8)."""

    order: str = key(
        'given',
        'of `phases`: as given; by perplexity under each (Figure 4), easy or hard first; shuffled by `seed`; '
        'self_paced: as given, and a phase ends once what `pace` names is flat',
        one_of=ORDERS,
    )
    probe: str = key(
        'initial',
        "by difficulty: whose perplexity; initial: this run's step 0, else a folder or hub id",
        path=True,
    )
    probe_revision: str = key('', 'commit or tag of the hub id (required with a hub id)')
    texts: tuple[str, ...] = key(
        (),
        'by difficulty: files or globs as in corpus.inputs, of a domain that the probe was not trained on; '
        "empty: this run's held-out documents",
        path=True,
    )
    measure: str = key(
        'masked',
        'by difficulty: perplexity at [MASK]ed positions, or over all selected ones, a tenth of which are kept under '
        '80-10-10 and nearly free',
        one_of=tuple(MEASURES),
        before='all',
        only_with=('curriculum.order', BY_DIFFICULTY),
    )
    samples: int = key(
        10, 'by difficulty: samples, each with its perplexity (paper: ten)', low=1, high=10_000
    )
    documents: int = key(2560, 'by difficulty: documents of all samples, chosen by hash of the id', low=1)
    pace: str = key(
        'heldout',
        'self_paced: heldout: the held-out loss; entities: 1 - F1 from frozen states, mean of evaluation.entities',
        one_of=PACES,
        only_with=('curriculum.order', (SELF_PACED,)),
    )
    patience: int = key(2, 'self_paced: evaluations that must bring too little to end a phase', low=1)
    min_improvement: float = key(0.005, 'self_paced: enough, as a share of what `pace` names', low=0, high=1)


@dataclasses.dataclass(frozen=True)
class Pretrain:
    """Pre-training: objective, batch, optimiser, word rule."""

    objective: str = key(
        'mlm',
        'what is minimised, except in phases that name another: a file of pretrain/objectives/. Held-out documents are '
        'scored by it in all phases, and it decides what is exported',
        one_of=OBJECTIVES,
    )
    batch_rows: int = key(256, 'rows in the global batch', low=1, high=MOST_ROWS)
    micro_batches: int = key(1, 'gradient accumulation: parts a batch is cut into', low=1, high=MOST_ROWS)
    word: str = key(
        'wordpiece',
        'what a word is: what the tokenizer takes for one (of WordPiece, punctuation is apart), or white space',
        one_of=('wordpiece', 'whitespace'),
    )
    max_word_pieces: int = key(16, 'longer words are masked in units of this many pieces', low=1, high=512)
    optimizer: str = key(
        'adamw', '; '.join(f'{name}: {one.meaning}' for name, one in OPTIMIZERS.items()), one_of=OPTIMIZERS
    )
    ema: float = key(
        0.0,
        'decay of an exponential moving average of the weights by step, from those at step 0, which is scored and '
        'exported in their place; 0: none',
        low=0,
        high=LARGEST_BETA,
    )
    learning_rate: float = key(1e-4, 'peak (paper, section 8.2; Table 8 says 5e-4)', low=0, high=1)
    warmup_fraction: float = key(0.06, 'share of the steps with a rising learning rate', low=0, high=1)
    end_fraction: float = key(0.0, 'learning rate at the end, as a share of the peak', low=0, high=1)
    weight_decay: float = key(0.01, 'how much; on what: see decay', low=0, high=10)
    decay: str = key(
        'bert', '; '.join(f'{name}: on {one.meaning}' for name, one in DECAYS.items()), one_of=DECAYS
    )
    beta1: float = key(0.9, 'Adam', low=0, high=LARGEST_BETA)
    beta2: float = key(0.999, 'Adam', low=0, high=LARGEST_BETA)
    epsilon: float = key(1e-6, 'Adam', low=0, high=1)
    clip_norm: float = key(1.0, 'global gradient norm; 0: no clipping', low=0)
    not_finite: str = key(
        'stop',
        'a loss or gradient that is not finite stops the run, or is skipped and counted',
        one_of=('stop', 'skip'),
    )
    dtype: str = key('auto', 'auto: bfloat16 on GPU and TPU', one_of=('auto', 'float32', 'bfloat16'))


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Frozen-mask evaluation on the held-out documents."""

    seed: int = key(1729, 'of the frozen masks: the same in every run', low=0, high=LARGEST_SEED)
    rows: int = key(512, 'held-out rows scored', low=1, high=MOST_ROWS)
    rate: float = key(0.15, 'rate of the frozen mask (tokens, all [MASK])', low=0.01, high=0.9)
    settings: tuple[str, ...] = key((), 'names of `phase` to score phase ends under; empty: those trained')
    per_phase: int = key(4, 'evaluations within each phase', low=1, high=10_000)
    entities: tuple[str, ...] = key(
        (),
        'sets of entities in finetune.folder: each evaluation scores them from frozen states, without fine-tuning',
    )
    entity_sentences: int = key(
        5000,
        'training sentences of each of them, chosen by hash; devel and test are never read',
        low=2,
        high=LARGEST_SIZE,
        only_with=('evaluation.entities', NOT_EMPTY),
    )
    snapshots_per_phase: int = key(
        1, 'checkpoints of a phase kept and exported; 1: its end; 4: also PHASE@25, @50, @75', low=1, high=100
    )


TASKS = Plugins('bioptimus_jax.finetune.tasks', 'TASK')
"""Kinds of fine-tuning (`finetune.task.Task`): what config.finetune.task may be."""
ENTITY_HEADS = ('linear', 'crf', 'span', 'bilstm', 'bilstm_crf', 'bilstm_span')
HEADS = tuple(dict.fromkeys((*ENTITY_HEADS, *PREDICTORS)))
NOT_OF_A_SET = tuple('folder datasets task models setting of_set keep crossed halving tuned_on'.split())
NOT_OF_A_SETTING = (*NOT_OF_A_SET, 'seeds', 'settings', 'word_column', 'tag_column')
LATER = ('segment_ids', 'learn_devel', 'train_choice', 'devel_sentences')
"""Keys that came after cells had been finished: at their default a cell's fingerprint leaves them out."""


@dataclasses.dataclass(frozen=True)
class Finetune:
    """Fine-tuning for entities, classes and similarity (paper, Table 9; Gu et al. 2021; Tinn et al., sections 3-4)."""

    folder: str = key(
        '', 'sets: NAME/{train,devel,test}.tsv; of entities in any scheme, BRAT or PubTator', path=True
    )
    datasets: tuple[str, ...] = key(
        (),
        'sets of that folder; NAME-typed, NAME-merged: its types apart, as one (JNLPBA: as one unless typed, as in '
        'BLURB); empty: all of them',
    )
    task: str = key(
        'entities', 'the task of sets without a record in sets/: a file of finetune/tasks', one_of=TASKS
    )
    word_column: str = key(
        '',
        'of files with a word and its tag in each line: the column of the word, by its number (1; -1 is the last) or '
        'its name in a header; empty: found from what columns hold',
    )
    tag_column: str = key('', 'the same for the column of the tag')
    models: tuple[str, ...] = key(
        (),
        'exports that are scored, as 0.4 or 0.1@25; initial, source, or Hugging Face folders, as /models/a or '
        'NAME=/models/a; empty: every phase',
    )
    seeds: tuple[int, ...] = key((0,), 'one fine-tuning each', low=0, high=LARGEST_SEED)
    settings: tuple[str, ...] = key(
        (STANDARD,), 'names of `setting`, tried with all models, sets, seeds; standard: the keys below'
    )
    setting: Mapping[str, Mapping[str, Any]] = named(
        lambda name: Finetune, {}, 'by name, the keys below that are different', without=NOT_OF_A_SETTING
    )
    of_set: Mapping[str, Mapping[str, Any]] = named(
        lambda name: Finetune,
        {},
        'by folder, or by the name of a public set: the keys that are different for it, also seeds and settings; a '
        'setting takes precedence',
        without=NOT_OF_A_SET,
    )
    halving: int = key(
        0,
        'successive halving: 1/halving of the settings of a set continue after 1/halving of the epochs; 0: all do',
        low=0,
        high=100,
    )
    tuned_on: tuple[str, ...] = key(
        (),
        'models that choose one setting for each set and all models (BLURB); empty: each model has its own',
    )
    epochs: int = key(
        5, 'passes over the training set (paper: 5-11; BLURB: 2-60; Tinn et al.: to 100)', low=1, high=10_000
    )
    batch_sentences: int = key(16, 'paper: 4, 8 or 16; BLURB: 16 or 32', low=1, high=WIDEST_ROW)
    learning_rate: float = key(2e-5, 'peak (paper: 1e-5 or 2e-5; BLURB: 1e-5, 3e-5 or 5e-5)', low=0, high=1)
    head_learning_rate: float = key(0.0, 'peak for the head, which starts at random; 0: same', low=0, high=1)
    warmup_fraction: float = key(0.1, 'of the slanted triangular schedule', low=0, high=1)
    weight_decay: float = key(0.01, 'on weights; none on biases and layer norms', low=0, high=10)
    bias_correction: bool = key(True, 'of Adam; the original BERT has none, which Tinn et al. find unstable')
    dropout: float = key(0.1, 'of hidden states, attention probabilities and the head', low=0, high=0.9)
    head: str = key(
        'linear',
        "on the last layer's states (PubMedBERT, section 5.2); of texts on their features: "
        + ', '.join(PREDICTORS),
        one_of=HEADS,
    )
    features: str = key(
        'family', '; '.join(f'{name}: {one.meaning}' for name, one in FEATURES.items()), one_of=FEATURES
    )
    segment_ids: str = key(
        'two',
        'of two texts: as the tokenizer says; one: 0 everywhere (Tinn et al., PubMedQA)',
        one_of=('two', 'one'),
    )
    lstm_hidden: int = key(0, 'bilstm: units a direction; 0: half of the hidden size', low=0, high=WIDEST_ROW)
    scheme: str = key('bio', 'tags that are learned, whatever the files have', one_of=('bio', 'io', 'bioul'))
    label_pieces: str = key('first', 'pieces of a word that carry its label', one_of=('first', 'all'))
    freeze_layers: int = key(
        0,
        'lowest encoder layers that are not trained, like the embeddings (Tinn et al.: half)',
        low=0,
        high=MOST_LAYERS,
    )
    layer_decay: float = key(1.0, "each layer's rate as a share of the next's; 1: none", low=0.1, high=1)
    layer_decay_rule: str = key(
        'electra',
        'the top layer has learning_rate x decay (zhang), or x decay^2 (electra, whose removed pooler counts)',
        one_of=('electra', 'zhang'),
    )
    reinit_layers: int = key(0, 'top layers that begin at random (Zhang et al.)', low=0, high=MOST_LAYERS)
    remove_layers: int = key(0, 'top layers left out (Tinn et al., Table 8)', low=0, high=MOST_LAYERS)
    train_sentences: int = key(0, 'a choice of training sentences, for low resources; 0: all', low=0)
    train_choice: str = key(
        'random',
        'how; stratified: the same share of every answer. A smaller choice is part of a larger one',
        one_of=('random', 'stratified'),
    )
    train_seed: int = key(0, 'of that choice', low=0, high=LARGEST_SEED)
    devel_sentences: int = key(0, 'the same for devel, which chooses the epoch; 0: all', low=0)
    learn_devel: bool = key(
        False,
        'train on devel too, once setting and epochs are chosen (Tinn et al., BIOSSES); then the last epoch is scored',
    )
    max_pieces: int = key(128, 'window; longer sentences get several, overlapping', low=16, high=WIDEST_ROW)
    overlap_pieces: int = key(32, 'context repeated on either side of a window border', low=0)
    dtype: str = key('auto', 'compute type; auto: bfloat16 on GPUs', one_of=('auto', 'float32', 'bfloat16'))
    keep: str = key(
        'none',
        'fine-tuned models with a linear head that are kept, for transformers, in seed-N/model: the seed that is '
        'best on devel, or all',
        one_of=('none', 'best', 'all'),
    )
    crossed: bool = key(
        False, 'models that are kept also predict the test of the other sets that share a type of entity'
    )

    def named(self, setting: str) -> 'Finetune':
        """The keys under one of `settings`: those of config.finetune, but for the ones that it changes."""
        return dataclasses.replace(self, settings=(setting,), setting={}, **self.setting.get(setting, {}))

    def on(self, dataset: str) -> 'Finetune':
        """The keys for a set: those of config.finetune, but for the ones that `of_set` changes."""
        return dataclasses.replace(self, of_set={}, **self.of_set.get(dataset, {}))


HALVES, UPPER = 'halves', 'upper'
"""Layers that frozen states are means of: both halves, each with its own mean, or the upper one alone."""


@dataclasses.dataclass(frozen=True)
class Analysis:
    """Measures that compare across vocabularies, and the geometry of the embeddings."""

    cloze_documents: int = key(400, 'held-out documents scored', low=1)
    cloze_fraction: float = key(0.15, 'words hidden, chosen by hash of (document, word)', low=0.01, high=0.9)
    reference_vocab: str = key('', "a second vocabulary, a file or a folder; empty: the source's", path=True)
    tokens: str = key(
        '',
        'a file with tokens, one a line: hidden words that are one of them are also scored alone, to follow them from '
        'run to run; empty: none',
        path=True,
    )
    pairs: int = key(20000, 'random pairs for the mean cosine', low=10, high=LARGEST_SIZE)
    geometry_words: int = key(
        2000, 'words whose geometry is measured, half of them rare; 0: none', low=0, high=LARGEST_SIZE
    )
    geometry_contexts: int = key(10, 'a word in context is the mean of this many occurrences', low=1)
    geometry_documents: int = key(20000, 'documents that are searched for them', low=1)
    geometry_points: int = key(500, 'of these words drawn as t-SNE; 0: none', low=0, high=20_000)
    frozen_sentences: int = key(
        0,
        'training sentences of each set of entities that frozen states are scored on, chosen by hash; 0: none; the '
        'more, the closer to F1 after fine-tuning: 5000',
        low=0,
        high=LARGEST_SIZE,
    )
    frozen_layers: str = key(
        HALVES,
        'states of a word: the means over the lower and the upper half of the layers, side by side; upper: one mean',
        one_of=(HALVES, UPPER),
        before=UPPER,
        only_with=('analysis.frozen_sentences', range(1, LARGEST_SIZE + 1)),
    )


@dataclasses.dataclass(frozen=True)
class Runtime:
    """How a run is carried out. Nothing here changes a result."""

    base_run: tuple[str, ...] = key(
        (), 'runs, or folders of runs, whose finished stages are used if they match', path=True
    )
    devices: int = key(0, 'accelerators used for training; 0: all', low=0)
    distributed: str = key(
        '', 'several processes: auto (SLURM, TPU, Open MPI 4, Kubernetes), or HOST:PORT,PROCESSES,INDEX'
    )
    lost_after_seconds: int = key(
        60, 'several processes: a host silent for this long is gone, and all others end', low=6, high=86_400
    )
    fsdp: int = key(1, 'devices that parameters and optimiser state are split over', low=1)
    tensor: int = key(1, 'devices that heads, feed-forward columns and vocabulary are split over', low=1)
    attention: str = key(
        'auto',
        'attention; auto: the fastest that passes a check, measured once in a run; xla where something is dropped',
        one_of=('auto', 'xla', 'pallas_gpu', 'cudnn', 'cudnn_packed', 'splash'),
    )
    remat: str = key(
        'auto',
        'what the backward pass computes again; auto: dots beyond 12 layers',
        one_of=('auto', 'none', 'dots', 'full'),
    )
    scan_layers: str = key('auto', 'a layer in a loop; auto: beyond 12 layers', one_of=('auto', 'yes', 'no'))
    profile_steps: tuple[int, ...] = key((), 'first and last step of a profiler trace; empty: none', low=0)
    workers: int = key(
        0,
        'processes of corpus, vocab, contexts, rows, and cores of fine-tuning; 0: all cores',
        low=0,
        high=MOST_WORKERS,
    )
    cluster: str = key(
        '',
        'HOST:PORT of a dask scheduler instead, for fine-tuning and arms of a sweep, too; workers see the same files',
    )
    torch_threads: int = key(
        1, 'threads of PyTorch in fine-tuning, at most one per core', low=1, high=MOST_WORKERS
    )
    deterministic: bool = key(
        False,
        'GPU: deterministic kernels, for bit-identical resuming; slower: no cuDNN attention, no autotuning',
    )
    log_every_steps: int = key(20, 'lines in metrics.jsonl', low=1)
    until: float = key(
        1.0,
        'pre-training saves and ends the command after this share of its steps, for `bioptimus forecast`; with a '
        'larger one the same command continues',
        low=0.0001,
        high=1,
    )
    checkpoint_every_steps: int = key(200, 'steps between checkpoints', low=1)
    keep_checkpoints: int = key(2, 'newest ones kept beside the phase ends', low=1)
    trackers: tuple[str, ...] = key(
        (), 'where else the numbers of metrics.jsonl go: files of trackers/', one_of=TRACKERS
    )
    tensorboard: bool = key(False, 'the same as trackers=tensorboard')
    staging: str = key(
        '',
        "local folder that mirrors a --workdir and inputs in a bucket; empty: bioptimus in the user's cache",
        path=True,
    )
    push_seconds: float = key(
        60.0,
        'a --workdir in a bucket: unfinished work is put there no more often, and in no more than 5 % of the time; 0: '
        'whenever there is something new',
        low=0,
    )

    @property
    def tracked(self) -> tuple[str, ...]:
        """Names of all trackers."""
        return tuple(dict.fromkeys((*self.trackers, *('tensorboard',) * self.tensorboard)))


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A whole experiment; `configs/*.py` change its defaults."""

    seed: int = key(0, 'of everything but evaluation', low=0, high=LARGEST_SEED)
    stages: tuple[str, ...] = key(
        tuple('corpus vocab contexts surgery rows pretrain export finetune analyze report'.split()),
        'what `run` does, in this order',
    )
    phases: tuple[str, ...] = key(tuple(PAPER_PHASES), 'curriculum: names of `phase`, in order')
    phase: Mapping[str, Phase] = named(lambda name: Phase, PAPER_PHASES)
    corpora: Mapping[str, Corpora] = named(lambda name: Corpora, {})
    source: Source = section(Source)
    corpus: Corpus = section(Corpus)
    vocab: Vocab = section(Vocab)
    contexts: Contexts = section(Contexts)
    model: Model = section(Model)
    surgery: Surgery = section(Surgery)
    rows: Rows = section(Rows)
    curriculum: Curriculum = section(Curriculum)
    pretrain: Pretrain = section(Pretrain)
    objective: Mapping[str, Any] = named(
        OBJECTIVES.settings,
        {},
        "by name, an objective's own settings: a record in its file",
        names=OBJECTIVES,
    )
    evaluation: Evaluation = section(Evaluation)
    finetune: Finetune = section(Finetune)
    analysis: Analysis = section(Analysis)
    runtime: Runtime = section(Runtime)

    @property
    def trained_phases(self) -> tuple[Phase, ...]:
        """The records of `phases`."""
        return tuple(self.phase[name] for name in self.phases)

    @property
    def trained_objectives(self) -> tuple[str, ...]:
        """The objectives of `phases`, each once."""
        return tuple(dict.fromkeys(map(self.objective_in, self.phases)))

    @property
    def all_objectives(self) -> tuple[str, ...]:
        """The run's own objective, which scores and exports, and those of `phases`, each once."""
        return tuple(dict.fromkeys((self.pretrain.objective, *self.trained_objectives)))

    @property
    def resolved(self) -> 'Experiment':
        """The same with every setting of its objectives: what is not given, as their files have it now."""
        settings = {n: self.objective.get(n) or OBJECTIVES.settings(n)() for n in self.all_objectives}
        return dataclasses.replace(self, objective=settings)

    def objective_in(self, phase: str) -> str:
        """The objective of the phase of that name."""
        return self.phase[phase].objective or self.pretrain.objective

    def phases_under(self, name: str) -> tuple[str, ...]:
        """The names among `phases` of those with that objective."""
        return tuple(phase for phase in self.phases if self.objective_in(phase) == name)

    @classmethod
    def from_config(cls, config: ConfigDict, paths: bool = True) -> 'Experiment':
        """The frozen experiment of `config`. Raises ConfigError, naming the key, for anything unknown or wrong.

        Without `paths`, environment variables that paths name may be unset, but for those of `runtime`: nothing that
        they name is going to be read.
        """
        experiment = record_from(cls, config)
        for wrong in itertools.chain(
            _unset(experiment, '' if paths else 'runtime.'), inconsistencies(experiment)
        ):
            raise ConfigError(wrong)
        return experiment


def phase_of(model: str) -> str:
    """The phase of an exported model: '0.1' for its end, '0.1', and for a snapshot on the way, '0.1@25'."""
    return model.partition(SNAPSHOT)[0]


def own_models(experiment: Experiment) -> list[str]:
    """The models of config.finetune that this run makes: step 0, phases and snapshots; not the source, no folders."""
    wanted = experiment.finetune.models or experiment.phases
    return [name for name in wanted if name == INITIAL or phase_of(name) in experiment.phases]


def result_keys(experiment: Experiment, sections: tuple[str, ...]) -> dict[str, Any]:
    """Flat `key -> value` of those sections, without runtime keys and paths: what a fingerprint covers.

    An objective's own settings are all there, given or not: whoever changes a default in its file changes the result.
    """
    # An objective is imported only for who needs it: most of them import jax.
    keys = list(walk(experiment.resolved if 'objective' in sections else experiment))
    every = {name: value for name, value, _ in keys}
    flat = {}
    for name, value, metadata in keys:
        # A key that decides nothing under these settings must not make anybody build a stage again.
        other, values = metadata.get('only_with') or (name, (value,))
        if not metadata.get('path') and name.split('.')[0] in sections and every[other] in values:
            flat[name] = _as_json(value)
    return flat


def _as_json(value: Any) -> Any:
    """As it comes back from a manifest."""
    if isinstance(value, Mapping):
        return {name: _as_json(inner) for name, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value


def value_before(dotted: str) -> Any:
    """What was done before there was the key: its default, unless it says otherwise; None for a key not known.

    By its dotted name, as `result_keys` gives values.
    """
    found = field_of(Experiment, dotted)
    if found is None:
        return None
    field, _ = found
    factory = field.default_factory
    default = field.default if factory is dataclasses.MISSING else factory()
    value = field.metadata.get('before') or default
    return list(value) if isinstance(value, tuple) else value


def _unset(e: Experiment, beginning: str) -> Iterator[str]:
    """Environment variables that paths name and that are not set, of keys with that beginning; a message each."""
    for name, value, metadata in walk(e):
        is_path = metadata.get('path') and name.startswith(beginning)
        unset = re.search(r'\$(\w+)', str(value)) if is_path else None
        if unset:
            yield f'config.{name}: {unset[0]} is not set; set that environment variable, or give --config.{name}=...'


def inconsistencies(e: Experiment) -> Iterator[str]:
    """What is wrong with keys that have to go together, a message each.

    Only the first is sure: the later checks take for granted what the earlier ones have seen.
    """
    if len(set(e.stages)) != len(e.stages):
        yield f'config.stages: different ones are needed, got {", ".join(e.stages)}'
    for name in e.phases:
        yield from _wrong_phase(e, 'phases', name)
    for name in e.evaluation.settings:
        yield from _wrong_phase(e, 'evaluation.settings', name)
    for name in e.phases:
        yield from _wrong_corpora(e, name)
    for before, name in zip(e.phases, e.phases[1:]):
        yield from _wrong_continuation(e, before, name)
    yield from _wrong_curriculum(e)
    if e.rows.max_document_pieces > e.rows.row_pieces:
        yield (
            f'config.rows.max_document_pieces: {e.rows.max_document_pieces} does not fit into '
            f'config.rows.row_pieces={e.rows.row_pieces}'
        )
    if e.model.hidden % e.model.heads:
        yield f'config.model.heads: {e.model.heads} does not divide config.model.hidden={e.model.hidden}'
    if e.pretrain.batch_rows % e.pretrain.micro_batches:
        yield f'config.pretrain.micro_batches: does not divide batch_rows={e.pretrain.batch_rows}'
    two = e.runtime.profile_steps
    if len(two) > 2 or list(two) != sorted(two):
        yield f'config.runtime.profile_steps: the first and the last step are needed, got {two}'
    for name in e.objective.keys() - set(e.all_objectives):
        yield (
            f'config.objective.{name}: settings of an objective that is not trained; set '
            f'config.pretrain.objective={name} or that of a phase, or leave them out'
        )
    yield from _wrong_finetune(e.finetune)
    yield from _wrong_surgery(e.surgery)


def _wrong_finetune(settings: Finetune) -> Iterator[str]:
    if STANDARD in settings.setting:
        yield (
            f'config.finetune.setting: {STANDARD!r} stands for the keys of config.finetune itself; choose another name'
        )
    if settings.halving == 1:
        yield 'config.finetune.halving: 1 would stop nothing; set 2 or more, or 0 for no halving'
    if settings.crossed and settings.keep == 'none':
        yield "config.finetune.crossed: is for models that are kept; set config.finetune.keep to 'best' or 'all'"
    yield from _wrong_settings(settings, 'config.finetune.')
    for name in settings.of_set:
        yield from _wrong_settings(settings.on(name), f'config.finetune.of_set.{name}.')


def _wrong_settings(settings: Finetune, where: str) -> Iterator[str]:
    """Of all sets, or of one: `where` its keys are."""
    for name, values in (('seeds', settings.seeds), ('settings', settings.settings)):
        if not values or len(set(values)) != len(values):
            yield f'{where}{name}: one or more different ones are needed, got {values}'
    known = (STANDARD, *settings.setting)
    for name in settings.settings:
        if name not in known:
            yield (
                f'{where}settings: {name!r} has no config.finetune.setting entry; known: '
                f'{", ".join(known)}{meant(name, known)}'
            )
        yield from _wrong_setting(settings.named(name), name, where)


def _wrong_setting(setting: Finetune, name: str, where: str) -> Iterator[str]:
    """Of one of `settings`, by its name, with all of its keys."""
    kept = f'config.finetune.keep: {setting.keep!r}, but setting {name!r}'
    if setting.keep != 'none' and setting.head != 'linear':
        yield (
            f'{kept} has head={setting.head!r}; only models with a linear head can be kept, as transformers loads no '
            'other'
        )
    if setting.keep != 'none' and FEATURES[setting.features].of:
        yield (
            f'{kept} has features={setting.features!r}; only models with the head of their family can be kept, as '
            'transformers loads no other'
        )
    if setting.keep == 'best' and setting.learn_devel:
        yield f"{kept} learns devel, which then chooses none; set 'all'"
    if setting.head.endswith(('crf', 'span')) and setting.label_pieces != 'first':
        yield (
            f'{where}label_pieces: {setting.label_pieces!r}, but head={setting.head!r} reads the first pieces of '
            "words; set 'first'"
        )
    if setting.head.endswith('span') and setting.scheme != 'bio':
        yield f"{where}scheme: {setting.scheme!r}, but head={setting.head!r} finds mentions, not tags; set 'bio'"


def _wrong_surgery(s: Surgery) -> Iterator[str]:
    if len(set(s.layers)) != len(s.layers):
        yield f'config.surgery.layers: different layers are needed, got {s.layers}'
    # 'respelled' was the default of `map`: runs of that time record it for every strategy.
    unused = {
        'map': ('none', 'respelled'),
        'shrinkage': (0.0,),
        'fit_steps': (0,),
        'anchors': (64,),
        'dealt': (False,),
    }
    for name, values in unused.items():
        value = getattr(s, name)
        if value not in (*values, getattr(Surgery, name)) and name not in s.initialisation.keys:
            yield (
                f'config.surgery.{name}: {value} is for config.surgery.strategy={concerned(name, " or ")}, not '
                f'for {s.strategy}; set it to {values[0]}'
            )
    if not s.fit_layer:
        yield (
            'config.surgery.fit_layer: 0 are the embeddings, in which no other piece knows of the new one; give 1 to '
            'the depth of the source, or -1 for its last layer'
        )
    for name in OF_FIT[1:]:
        if getattr(s, name) != getattr(Surgery, name) and not s.fit_steps:
            yield (
                f'config.surgery.{name}: {getattr(s, name)} decides nothing without a fit; set '
                f'config.surgery.fit_steps, or leave {name} at {getattr(Surgery, name)}'
            )


def _wrong_phase(e: Experiment, where: str, name: str) -> Iterator[str]:
    """Of a phase that the key `where` names."""
    if name not in e.phase:
        yield f'config.{where}: {name!r} has no config.phase entry; known: {", ".join(e.phase)}{meant(name, e.phase)}'
    if name in (INITIAL, SOURCE):
        yield f'config.{where}: {name!r} is the name of another model; choose another name'
    phase, key = e.phase[name], f'config.phase.{name}'
    triple = phase.corruption
    if len(triple) != 3 or min(triple) < 0 or abs(sum(triple) - 1) > 1e-6:
        yield f'{key}.corruption: three probabilities that sum to 1, got {triple}'
    if phase.rate_parts == 1 or (phase.rate_parts and not phase.rate_end):
        yield (
            f'{key}.rate_parts: {phase.rate_parts}, but a rate moves in two parts or more, and needs {key}.rate_end'
        )
    if 0 < phase.rate_end < 0.01:
        yield f'{key}.rate_end: {phase.rate_end}, but must be 0, or at least 0.01'
    longest = LONGEST[phase.duration_unit]
    if not 0 < phase.duration <= longest:
        yield f'{key}.duration: must be above 0 and at most {longest:,} {phase.duration_unit}, got {phase.duration}'


def _wrong_corpora(e: Experiment, name: str) -> Iterator[str]:
    phase, where = e.phase[name], f'config.phase.{name}.corpora'
    try:
        asked = quotas(phase.corpora)
    except ValueError as error:
        yield f'{where}: {", ".join(phase.corpora)}: {error}; write own=0.7,NAME=0.3'
        return
    known = (OWN, *e.corpora)
    for unknown in asked.keys() - set(known):
        yield f'{where}: {unknown!r} has no config.corpora entry; known: {", ".join(known)}{meant(unknown, known)}'
    if len(asked) > 1 and phase.duration_unit == 'epochs':
        yield f'config.phase.{name}.duration_unit: several corpora have no epochs; set words, tokens or steps'
    if phase.corpora and e.curriculum.order == SELF_PACED:
        yield (
            f'{where}: phases that end early do not go with it, as rows are read ahead; choose another '
            'config.curriculum.order'
        )


def _wrong_continuation(e: Experiment, before: str, name: str) -> Iterator[str]:
    """Of a phase with the learning rate of the one before it."""
    phase, key = e.phase[name], f'config.phase.{name}'
    if phase.schedule != 'continue':
        return
    if phase.fall != e.phase[before].fall:
        yield (
            f'{key}.fall: {phase.fall!r}, but its learning rate continues that of {before}, '
            f'which falls {e.phase[before].fall!r}; set the same, or {key}.schedule=restart'
        )
    for where in ('warmup_fraction', 'end_fraction'):
        if (value := getattr(phase, where)) >= 0:
            yield (
                f'{key}.{where}: {value}, but its learning rate continues that of {before}; set it there, or '
                f'{key}.schedule=restart'
            )


def _wrong_curriculum(e: Experiment) -> Iterator[str]:
    asked, others = e.curriculum, sorted(set(e.phases) - set(e.phases_under(e.pretrain.objective)))
    if asked.order in (*BY_DIFFICULTY, SELF_PACED) and others:
        yield (
            f'config.curriculum.order: {asked.order} compares phases by config.pretrain.objective='
            f'{e.pretrain.objective}, but phase {others[0]} has another, {e.objective_in(others[0])}; set given'
        )
    if asked.order in BY_DIFFICULTY and asked.measure == 'masked':
        for name in e.phases:
            if not e.phase[name].corruption[0]:
                yield f'config.curriculum.measure: {asked.measure!r}, but phase {name} has no [MASK]; set all'
    if len(set(e.phases)) != len(e.phases) or not e.phases:
        yield f'config.phases: one or more different names are needed, got {e.phases}'
    if asked.pace == ENTITIES and not e.evaluation.entities:
        yield (
            f'config.curriculum.pace: {asked.pace!r}, but config.evaluation.entities names no set; name one of '
            'config.finetune.folder, as ncbi-disease'
        )
    named = e.evaluation.entities
    if len(set(named)) != len(named):
        yield f'config.evaluation.entities: different ones are needed, got {", ".join(named)}'
    least = asked.patience + 2  # one to compare with, `patience` that are flat, and the planned end
    if asked.order == SELF_PACED and e.evaluation.per_phase < least:
        yield (
            f'config.evaluation.per_phase: {e.evaluation.per_phase} evaluations cannot end a phase early with '
            f'config.curriculum.patience={asked.patience}; at least {least} are needed'
        )

"""The sections of pre-training: `phase`, `corpora`, `curriculum`, `pretrain`, `evaluation`."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Protocol

from bioptimus_jax.config.bounds import LARGEST_BETA, LARGEST_SEED, LARGEST_SIZE, MOST_ROWS, WIDEST_ROW
from bioptimus_jax.config.fields import MOST, NOT_EMPTY, common_key, key
from bioptimus_jax.config.plugins import LazyText, Plugins, meanings
from bioptimus_jax.model.lora import MOST_RANK, Lora, alpha_key, lora_of, targets_key
from bioptimus_jax.pretrain.decay import DECAYS
from bioptimus_jax.pretrain.optimizers import OPTIMIZERS
from bioptimus_jax.pretrain.rates import FALLS
from bioptimus_jax.pretrain.units import MASKINGS
from bioptimus_jax.sets.config import ChoosesSets
from bioptimus_jax.surgery.config import ROPES, HasSurgery

OBJECTIVES = Plugins('bioptimus_jax.pretrain.objectives', 'OBJECTIVE')
OBJECTIVE_OR_NONE = Plugins(OBJECTIVES.package, OBJECTIVES.holds, optional=True)
WITH_LORA = ('pretrain.lora_rank', NOT_EMPTY)
MOST_STEPS = 2**31 - 1  # a step's number has 32 bits, too
LONGEST = types.MappingProxyType({'steps': MOST_STEPS, 'epochs': 10**6, 'words': MOST, 'tokens': MOST})


@dataclasses.dataclass(frozen=True)
class Corpora:
    """Rows of another corpus, for phases that read several: those of another run with the same vocabulary."""

    run: str = key('', 'run folder with stages vocab and rows', path=True)


@dataclasses.dataclass(frozen=True)
class Phase:
    """One masking setting of the curriculum (paper, Table 4 and section 8)."""

    masking: str = common_key('tokens', 'what is drawn', one_of=MASKINGS)
    rate: float = common_key(0.15, 'share of pieces that are predicted', low=0.01, high=0.9)
    corruption: tuple[float, ...] = key((0.8, 0.1, 0.1), 'shares of the mask token, random token, unchanged')
    corruption_unit: str = key('piece', 'drawn per piece (BERT) or word (fairseq)', one_of=('piece', 'word'))
    duration: float = common_key(1.0, 'length of the phase, in its unit', low=0)
    duration_unit: str = common_key(
        'epochs', 'unit of the duration', one_of=('steps', 'words', 'tokens', 'epochs')
    )
    learning_rate: float = key(0.0, 'peak of this phase; 0: pretrain.learning_rate', low=0, high=1)
    schedule: str = key(
        'continue', 'the learning rate continues, or warms up again', one_of=('continue', 'restart')
    )
    fall: str = key(
        'linear',
        LazyText(
            lambda: (
                'after its warm-up the learning rate falls '
                + meanings(FALLS)
                + '. Phases that continue fall as the one that they continue'
            )
        ),
        one_of=FALLS,
    )
    optimizer: str = key('carry', 'optimiser state at the start of the phase', one_of=('carry', 'reset'))
    corpora: tuple[str, ...] = key(
        (),
        'sources of the rows, with weights, as own=0.7,notes=0.3: names of `corpora`; empty: the corpus of this run',
    )
    warmup_fraction: float = key(
        -1.0, 'warm-up of the path that begins here; -1: pretrain.warmup_fraction', low=-1, high=1
    )
    end_fraction: float = key(
        -1.0, 'end of the path that begins here; -1: pretrain.end_fraction', low=-1, high=1
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
    batch_rows: int = key(0, 'rows in a batch of this phase; 0: pretrain.batch_rows', low=0, high=MOST_ROWS)
    micro_batches: int = key(
        0, 'parts that its batches are cut into; 0: pretrain.micro_batches', low=0, high=MOST_ROWS
    )
    row_pieces: int = key(
        0, 'pieces in a row of this phase, which stage rows packs; 0: rows.row_pieces', low=0, high=WIDEST_ROW
    )
    max_document_pieces: int = key(
        0, 'longer documents are cut in this phase; 0: rows.max_document_pieces', low=0, high=WIDEST_ROW
    )
    rope_theta: float = key(
        0.0,
        "base of rotary positions from this phase's start to its end, in layers that see all pieces; 0: the model's",
        low=0,
        high=1e12,
    )
    rope_type: str = key(
        '',
        "how their angles are made in this phase: default, linear, yarn; empty: the model's",
        one_of=('', *ROPES),
    )
    rope_factor: float = key(0.0, 'linear, yarn: by how much the context has grown', low=0, high=1e6)
    warmup_tokens: float = key(
        0.0,
        'tokens of the steps at its start whose batches are smaller or documents shorter',
        low=0,
        high=MOST,
    )
    warmup_batch_rows: tuple[int, ...] = key(
        (), 'rows in their batches, one after the other, each in equally many steps', low=1, high=MOST_ROWS
    )
    warmup_document_pieces: tuple[int, ...] = key(
        (), 'lengths of their documents, likewise, in rows as wide as later', low=8, high=WIDEST_ROW
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
"""What self-pacing goes by (`pretrain.curriculum.EARLY_STOP_METRICS`)."""
DIFFICULTY_MEASURES = {'masked': 'masked', 'all': 'perplexity'}
"""curriculum.measure -> the name of what it goes by in difficulty.json."""


@dataclasses.dataclass(frozen=True)
class Curriculum:
    """Order of the phases, the difficulty that it is computed from, and phases that end early (paper, section 8)."""

    order: str = key(
        'given',
        'order of `phases`: as given; by perplexity under each (Figure 4), easy or hard first; shuffled by `seed`; '
        'self_paced: as given, and a phase ends once what `pace` names is flat',
        one_of=ORDERS,
    )
    probe: str = key(
        'initial',
        "order by difficulty: the model whose perplexity counts; initial: this run's step 0, else a folder or hub id",
        path=True,
    )
    texts: tuple[str, ...] = key(
        (),
        'order by difficulty: files or globs as in corpus.inputs, of a domain that the probe was not trained on; '
        "empty: this run's held-out documents",
        path=True,
    )
    measure: str = key(
        'masked',
        'order by difficulty: perplexity at [MASK]ed positions, or over all selected ones, a tenth of which are kept '
        'under 80-10-10 and nearly free',
        one_of=tuple(DIFFICULTY_MEASURES),
        active_if=('curriculum.order', BY_DIFFICULTY),
    )
    samples: int = key(
        10, 'order by difficulty: samples, each with its perplexity (paper: ten)', low=1, high=10_000
    )
    documents: int = key(
        2560, 'order by difficulty: documents of all samples, chosen by hash of the id', low=1
    )
    pace: str = key(
        'heldout',
        'self_paced: heldout: the held-out loss; entities: 1 - F1 from frozen states, mean of evaluation.entities',
        one_of=PACES,
        active_if=('curriculum.order', (SELF_PACED,)),
    )
    patience: int = key(2, 'self_paced: evaluations that must bring too little to end a phase', low=1)
    min_improvement: float = key(0.005, 'self_paced: enough, as a share of what `pace` names', low=0, high=1)


@dataclasses.dataclass(frozen=True)
class Pretrain:
    """Pre-training: objective, batch, optimiser, word rule."""

    objective: str = common_key(
        'mlm',
        'what is minimised, except in phases that name another: a file of pretrain/objectives/. Held-out documents are '
        'scored by it in all phases, and it decides what is exported',
        one_of=OBJECTIVES,
    )
    batch_rows: int = common_key(256, 'rows in the global batch', low=1, high=MOST_ROWS)
    micro_batches: int = common_key(
        1, 'gradient accumulation: parts a batch is cut into', low=1, high=MOST_ROWS
    )
    word: str = key(
        'wordpiece',
        'what a word is: what the tokenizer takes for one (of WordPiece, punctuation is apart), or white space',
        one_of=('wordpiece', 'whitespace'),
    )
    max_word_pieces: int = key(16, 'longer words are masked in units of this many pieces', low=1, high=512)
    optimizer: str = key(
        'adamw',
        LazyText(lambda: meanings(OPTIMIZERS)),
        one_of=OPTIMIZERS,
    )
    ema: float = key(
        0.0,
        'decay of an exponential moving average of the weights by step, from those at step 0, which is scored and '
        'exported in their place; 0: none',
        low=0,
        high=LARGEST_BETA,
    )
    learning_rate: float = common_key(1e-4, 'peak (paper, section 8.2; Table 8 says 5e-4)', low=0, high=1)
    warmup_fraction: float = key(0.06, 'share of the steps with a rising learning rate', low=0, high=1)
    end_fraction: float = key(0.0, 'learning rate at the end, as a share of the peak', low=0, high=1)
    head_steps: int = key(
        0,
        'first steps in which embeddings and encoder stay as they are, and only what is above them is trained: for a '
        'source without a masked-LM head. Their learning rate then rises to its own within as many steps',
        low=0,
        high=MOST_STEPS,
    )
    weight_decay: float = key(0.01, 'how much; on what: see decay', low=0, high=10)
    decay: str = key(
        'bert',
        LazyText(lambda: '; '.join(f'{name}: on {one.meaning}' for name, one in DECAYS.items())),
        one_of=DECAYS,
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
    lora_rank: int = common_key(
        0,
        'rank of an adapter (LoRA) that is trained in place of the weights, which stay as they are; exports have it '
        'merged, and beside them in the form of PEFT; 0: none, all weights are trained',
        low=0,
        high=MOST_RANK,
    )
    lora_alpha: float = alpha_key(WITH_LORA)
    lora_targets: tuple[str, ...] = targets_key(WITH_LORA)
    lora_layers: tuple[int, ...] = key(
        (), 'lora: numbers of the layers that get one, from 0; empty: all', low=0, active_if=WITH_LORA
    )
    lora_embeddings: str = key(
        'new',
        'lora: rows of tokens that are trained whole, and with them the output bias: new, those that surgery made; '
        'all; none. Heads and positions that surgery made are trained in any case',
        one_of=('new', 'all', 'none'),
        active_if=WITH_LORA,
    )
    dtype: str = key('auto', 'auto: bfloat16 on GPU and TPU', one_of=('auto', 'float32', 'bfloat16'))

    @property
    def lora(self) -> Lora | None:
        """The adapter that is trained, if any."""
        return lora_of(self.lora_rank, self.lora_alpha, self.lora_targets) if self.lora_rank else None

    @property
    def averages(self) -> bool:
        """Whether other weights are scored and exported than those that are trained: averages of these."""
        return bool(self.ema) or OPTIMIZERS[self.optimizer].evaluated is not None


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Frozen-mask evaluation on the held-out documents."""

    seed: int = key(1729, 'seed of the frozen masks: the same in every run', low=0, high=LARGEST_SEED)
    rows: int = key(512, 'held-out rows scored', low=1, high=MOST_ROWS)
    rate: float = key(0.15, 'rate of the frozen mask (tokens, all [MASK])', low=0.01, high=0.9)
    settings: tuple[str, ...] = key(
        (),
        'names of `phase` to score phase ends under, where the objective masks; empty: those trained that mask',
    )
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
        active_if=('evaluation.entities', NOT_EMPTY),
    )
    snapshots_per_phase: int = key(
        1, 'checkpoints of a phase kept and exported; 1: its end; 4: also PHASE@25, @50, @75', low=1, high=100
    )


class HasTraining(HasSurgery, Protocol):
    """What pre-training reads of a configuration."""

    @property
    def phase(self) -> Mapping[str, Phase]: ...

    @property
    def corpora(self) -> Mapping[str, Corpora]: ...

    @property
    def curriculum(self) -> Curriculum: ...

    @property
    def pretrain(self) -> Pretrain: ...

    @property
    def objective(self) -> Mapping[str, Any]: ...

    @property
    def evaluation(self) -> Evaluation: ...

    @property
    def finetune(self) -> ChoosesSets: ...

    @property
    def stages(self) -> tuple[str, ...]: ...

    @property
    def trained_phases(self) -> tuple[Phase, ...]: ...

    @property
    def trained_objectives(self) -> tuple[str, ...]: ...

    @property
    def all_objectives(self) -> tuple[str, ...]: ...

    def objective_in(self, phase: str) -> str:
        """The objective of the phase of that name."""
        ...

    def phases_under(self, name: str) -> tuple[str, ...]:
        """The names among `phases` of those with that objective."""
        ...

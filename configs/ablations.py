"""The paper's comparisons at small scale: arms that differ in one thing and share everything else (`bioptimus sweep`).

Paper:    BIOptimus (arXiv 2308.08625), Tables 2, 3, 5, 6 and 7, and the test of the curriculum that it lacks.
Command:  bioptimus sweep --config=ablations:orders --workdir=runs/orders --config.source.path=FOLDER --jobs=2
          bioptimus sweep --config=ablations:table7 --workdir=runs/table7 --config.source.path=FOLDER --jobs=2 \
              --config.runtime.base_run=runs/orders         (it has all of Table 7: nothing is computed twice)
          bioptimus report runs/table2 runs/orders runs/table7          (the paper's tables from these runs)
Options:  after the name, separated by commas: ablations:table2,seeds=5,words=1e6,snapshots=4,rates=3,batch=16
          seeds      runs of every arm, each with its own contexts, rows, data order and fine-tuning (3)
          words      of one phase (350,000); the same for every arm, counted in words
          batch      rows per step (8, of 256 pieces)
          rates      learning rates tried with every arm: 3 means half, once and twice the config's; devel chooses (1)
          snapshots  table2: parts of the phase that are fine-tuned, for curves of devel F1 as in Figure 3 (1: its end)
          NAME=PATH  table6: a rival, any Hugging Face folder, as BioBERT=/models/biobert; as many as you like
          tokens     refit: the list of tokens, analyze/bad_tokens.txt of an earlier run
          terms      content: a file of terms, one a line; an arm of it
          scores     content: what `bioptimus perplexity` wrote of all texts; an arm of it

          table2      each initialisation after phase 0.1. Three controls: `random_rows` (deviation 0.02), `gaussian`
                      (mean and covariance of the source's rows), `_dealt` (that arm's rows at the wrong tokens).
                      `mean_resizing` and `similarity` are methods of others; `_literal` arms write the last layer's
                      states unchanged, as the paper does; `mapped_centred` is our own, without spelling, and
                      `mapped_spelled` the default, with it; the others are rescaled to the source's mean norm.
          table3      contextualized, one phase under tokens 15 %, words 15 % and words 20 %
          table5      one run: its versions are the ends of phases 0.1 to 0.4
          table6      the same run and rivals, each with the same fine-tuning learning rates; devel chooses
          table7      the same run, and 0.1's setting for as many steps, each scored at the end of every phase
          orders      each setting alone from step 0, easy to hard (the paper's 0.1 to 0.4), hard to easy, shuffled:
                      the same words, and the n-th phase has the same learning rates whatever it masks
          corruption  words, static: 80-10-10 (words_*), all [MASK] (masked_*), 90-10-0 (replaced_*), 90-0-10 (kept_*),
                      each with 16 and with 20 % of the pieces shown as [MASK]: 80-10-10 at 20 % shows 16 % (paper's
                      0.3), all at 20 % shows 20 % (its 0.4). The geometry of rare and frequent words is measured.
          masking     rising (the paper's order), falling 30, 20, 10, 5 % in steps and from 30 to 5 % in a line, static
                      tokens 15 and words 15, 20 and 30 %, another shuffled order with each seed, a causal detour (three
                      of the four phases causal, then tokens 15 %), and five corruptions of words at 16 or 20 % [MASK].
                      One learning rate that rises and falls once, 60 evaluations each, ends scored under all settings.
          forecast    five orders under one learning rate that rises and falls once; 60 evaluations each, for `bioptimus
                      forecast`. With rates=5 its arms differ in the learning rate as well.
          pace        the paper's order under one learning rate that rises and falls once: phases as planned (`given`),
                      or ended once the held-out loss (`by_loss`) or F1 of entities from frozen states (`by_entities`)
                      is flat, so that the last phase takes what they leave. Name the sets in evaluation.entities, too.
          refit       rows from spelling, as they are (`spelled`), after 150 steps of the gradient fit on all new tokens
                      (`fitted`), and on those of the list alone (`fitted_bad`), with up to 10 contexts of each; then
                      phase 0.1, without fine-tuning. Make the list with another seed, and give another evaluation.seed
                      here, so that the tokens are not judged by the words that they were chosen by.
          adapters    the default rows, then phase 0.1 with all weights trained (`full`), or with LoRA in their place:
                      of rank 8 and 64 with the rows of new tokens (`lora_8`, `lora_64`), with all rows
                      (`lora_8_all`), and on attention alone (`lora_8_attention`). With rates=3 others are tried.
          content     the vocabulary kept, one phase over a corpus of as many words: documents drawn (`random`), those
                      with the most terms (`terms`), those that a model knows best (`perplexity`) and least (`strange`);
                      held-out documents are the same
          curves      the first steps of each initialisation, the paper's and its variants: phases 100, 300 and 600 are
                      one phase of 600 steps of 2,000 pieces, cut there to look at the weights.
Phases:   as in the paper the learning rate restarts with every phase, at 0.7 of the peak before, so each end is a
          finished model. Every end is scored under the paper's four settings, at [MASK]ed positions only.
Time:     estimated from measured stages, for an arm on one core: a phase of 350,000 words 80 to 100 s, a fine-tuning on
          NCBI-disease or BC5-chem 35 to 55 s, export, analysis and compilation 80 s, contexts and surgery two minutes
          per seed. With two sets, three seeds and --jobs=2 on two cores: orders 2 h, table2 70 min (50 without
          mean_resizing, similarity and averaged_last_literal), corruption 1 h 45 min in addition to orders.
Expect:   table2: averaged_input first, random_rows near it, contextualized within 0.3 nats a word of both, literal
          rows last of those with a source and their own vocabulary, scratch and copy behind; F1 within a point except
          for scratch and literal rows. For the arms added later, written before they were run: mapped_centred ahead of
          contextualized by a point or two; contextualized_dealt within half a point of contextualized, since this
          source knows little about its tokens; gaussian between contextualized and random_rows. From MiniLM with a
          fitted head (small:fitted-source) and 150,000 words: mapped_spelled and spelled first at step 0, by 0.3 nats a
          piece or more, and ahead of averaged_input by 0.05 at the end; contextualized between averaged_input and
          random_rows; F1 of mapped_spelled 2 above random_rows, level with copy and within 1 of averaged_input. After
          600,000 words (one seed) spelled within 0.5 nats a hidden word of copy, where it was 1.07 behind, and within 1
          F1, where it was 1.97 behind. After 1,800,000 words (one seed) copy still ahead in F1, by 2 where it was 2.96,
          and in words that are one piece in both vocabularies by 0.1 nats. With seeds 1 and 2 as well copy ahead by 0.5
          F1 there, and the interval contains 0; after 600,000 words by 1.5, without 0 in it. From the source of 4 x 256
          (small:wide-source), which knows more than the small one and less than MiniLM, the order is between theirs:
          mapped_spelled, averaged_input and random_rows within 1 F1 of one another, copy ahead of all three,
          mapped_spelled first at step 0 by 0.1 nats a piece.
          table5: F1 rises with the words seen, by 0.5 to 1 per phase. table7, orders: no order distinguishable from the
          best static setting in F1; in held-out loss words beat tokens under word masks, and the loss under a setting
          is lowest for the arm that was trained with it last. corruption: no difference in geometry beyond the seeds.
          curves: averaged_* within 0.05 nats of contextualized after 100 steps; a variant ahead of the literal rows.
          For arms added later: from MiniLM mapped_spelled 0.05 nats or more ahead of mapped_centred after 100,000
          words, spelled_centred between the two; from the small source no difference.
          forecast: one to four times the rate ahead of a quarter and a half, masked_20 ahead at every rate; from a
          tenth of the steps the final loss within 1 %, Kendall's tau of 0.8 with the final order, and 0.6 for the order
          at that step, since high rates gain most at the end. From short runs of two lengths, 10 and 20 % of the steps,
          the final loss within 1 %, tau of 0.9 and the winner in 80 % of the groups, over both the 25 schedules and the
          masking orders; from 5 and 10 %, an error of 1.3 %, tau of 0.8, the winner in 75 %. Sixteen schedules that no
          regression was chosen on, eight orders of `masking` at once and twice the rate, from short runs of a tenth by
          a Gaussian process over the 25: an error of 1.5 %, tau of 0.75, and the arm that is taken within 0.03 nats of
          the lowest. The 29 other schedules of `masking` at five rates, from short runs over those 41: an error of
          1.5 %, tau of 0.85, the arm that is taken within 0.03 nats of the lowest; without the detour, which no
          finished arm resembles, 1.2 %. In groups of five of all seventy: an error of 0.9 %, tau of 0.88, the winner in
          80 %.
          masking: a falling rate ahead of a rising one by 0.05 nats or more in held-out loss, which hides 15 %, and
          level in hidden words; masked_20 first in hidden words, and last but for masked_16 and the detour in F1, by 1;
          at 16 % [MASK] the three corruptions within 0.1 nats a word; the detour 0.2 nats behind in hidden words and
          level in F1; no other arm distinguishable from words_20 in F1; across corpora 10 to 20 F1 less, and the same
          order. F1 from frozen states follows F1 of three fine-tunings with 0.6 over the ends of twelve arms, and with
          0.8 over step 0 and the four phases of six arms; a perfect measure would have 0.8 and 0.95.
          pace: by_entities ends each of the first three phases after three or four of its eight evaluations, so most
          words are hidden at 20 %, all [MASK], and by_loss ends one of them early; by_entities ahead of given in hidden
          words by 0.1 nats, and level in F1, within 1, as by_loss is.
          refit: on the listed tokens, which the first run names no better than their frequency does, fitted_bad 0.3
          nats a word ahead of spelled at step 0 and 0.05 at the end, fitted between the two; on all hidden words no
          difference, since listed tokens are few.
          content: on held-out documents random first in hidden words, terms 0.02 nats behind, perplexity and strange
          0.1; F1 of terms 1 above random, perplexity level with it, strange 1 below.
          Per-token losses compare all arms but `copy`, which keeps the source's vocabulary; the hidden-word measures
          of `analyze` and F1 compare all of them.
"""

import dataclasses
import random
from collections.abc import Sequence

from ml_collections import ConfigDict

from bioptimus_jax.ext import load, phase, read_options
from bioptimus_jax.pretrain.config import PAPER_PHASES
from bioptimus_jax.surgery.initialisations import INITIALISATIONS as STRATEGIES

LITERAL = '_literal'
DEALT = '_dealt'
VARIANTS: dict[str, dict] = {
    'averaged_input_centred': {'strategy': 'averaged_input', 'scale': 'centred'},
    'centred': {'scale': 'centred'},
    'middle_centred': {'layers': (), 'scale': 'centred'},
    'mapped_centred': {'layers': (), 'map': 'respelled', 'shrinkage': 1.0, 'scale': 'centred'},
    'mapped_spelled': {'layers': (), 'map': 'spelled', 'shrinkage': 1.0, 'scale': 'centred'},
    'spelled_centred': {'strategy': 'spelled', 'scale': 'centred'},
}
INITIALISATIONS = (
    *STRATEGIES,
    *(f'{name}{LITERAL}' for name in ('averaged_last', 'contextualized')),
    'mapped_centred',
    'mapped_spelled',
    *(f'{name}{DEALT}' for name in ('contextualized', 'mapped_centred')),
)
FALL = (0.30, 0.2375, 0.175, 0.1125, 0.05)
"""Rates at the ends of four phases, in one line."""
SETTINGS: dict[str, dict] = {
    'tokens_15': {'masking': 'tokens', 'rate': 0.15},
    'words_15': {'masking': 'words', 'rate': 0.15},
    'words_20': {'masking': 'words', 'rate': 0.20},
    'masked_20': {'masking': 'words', 'rate': 0.20, 'corruption': (1.0, 0.0, 0.0)},
    'masked_16': {'masking': 'words', 'rate': 0.16, 'corruption': (1.0, 0.0, 0.0)},
    'replaced_16': {'masking': 'words', 'rate': 0.16 / 0.9, 'corruption': (0.9, 0.1, 0.0)},
    'kept_16': {'masking': 'words', 'rate': 0.16 / 0.9, 'corruption': (0.9, 0.0, 0.1)},
    'words_25': {'masking': 'words', 'rate': 0.25},
    'replaced_20': {'masking': 'words', 'rate': 0.20 / 0.9, 'corruption': (0.9, 0.1, 0.0)},
    'kept_20': {'masking': 'words', 'rate': 0.20 / 0.9, 'corruption': (0.9, 0.0, 0.1)},
    **{f'words_{percent}': {'masking': 'words', 'rate': percent / 100} for percent in (30, 10, 5)},
    **{f'line_{n}': {'masking': 'words', 'rate': FALL[n - 1], 'rate_end': FALL[n]} for n in (1, 2, 3, 4)},
    'causal': {'masking': 'tokens', 'rate': 0.15, 'objective': 'causal'},
}
PAPER = ('tokens_15', 'words_15', 'words_20', 'masked_20')
CURRICULUM = 'easy_to_hard'
NO_CURRICULUM = 'tokens_15'
ORDERS: dict[str, tuple[str, ...]] = {
    **{name: (name,) * len(PAPER) for name in SETTINGS},
    CURRICULUM: PAPER,
    'hard_to_easy': PAPER[::-1],
    'shuffled': ('words_20', 'tokens_15', 'masked_20', 'words_15'),
    'falling_steps': ('words_30', 'words_20', 'words_10', 'words_5'),
    'falling_line': ('line_1', 'line_2', 'line_3', 'line_4'),
    'detour': ('causal', 'causal', 'causal', 'tokens_15'),
}
CORRUPTION = tuple('words_20 masked_20 masked_16 replaced_16 kept_16 words_25 replaced_20 kept_20'.split())
MASKING = tuple(
    f'words_20 {CURRICULUM} falling_steps falling_line masked_16 tokens_15 masked_20 detour words_30 shuffled '
    'words_15 replaced_16 kept_16'.split()
)
ALL_ENDS = (CURRICULUM, NO_CURRICULUM)
FIRST_ENDS = ('words_15', 'words_20')
"""Arms of `orders` that have a phase of Table 3 as their first."""
RESTART_FACTOR = 0.7
RIVALS = 'rivals'
PACED: dict[str, dict] = {
    'given': {},
    'by_loss': {'order': 'self_paced'},
    'by_entities': {'order': 'self_paced', 'pace': 'entities'},
}
REFIT: dict[str, dict] = {'spelled': {}, 'fitted': {'fit_steps': 150}, 'fitted_bad': {'fit_steps': 150}}
OF_A_LIST = 'fitted_bad'
ADAPTERS: dict[str, dict] = {
    'full': {},
    'lora_8': {'lora_rank': 8},
    'lora_64': {'lora_rank': 64},
    'lora_8_all': {'lora_rank': 8, 'lora_embeddings': 'all'},
    'lora_8_attention': {'lora_rank': 8, 'lora_targets': ('attention',)},
}
CONTENT = {'random': '', 'terms': 'terms', 'perplexity': '-perplexity', 'strange': 'perplexity'}
"""Arm of `content` -> corpus.content.prefer."""
OPTION_OF = {
    RIVALS: 'rivals',
    OF_A_LIST: 'tokens',
    'terms': 'terms',
    'perplexity': 'scores',
    'strange': 'scores',
}
"""Arm -> the option that it needs."""
NUMBERS = ('seeds', 'words', 'batch', 'rates', 'snapshots')
"""The options of every ablation."""
PATHS = {'refit': ('tokens',), 'content': ('terms', 'scores')}
"""Ablation -> options of it that are paths."""
FINE_TUNING_RATES = (2e-5, 1e-4, 5e-4)
SEEDS = (0, 1, 2)
WORDS_PER_STEP = 1500
STEPS = (100, 300, 600)
ARMS: dict[str, tuple[str, ...]] = {
    'table2': INITIALISATIONS,
    'table3': ('tokens_15', 'words_15', 'words_20'),
    'table5': (CURRICULUM,),
    'table6': (CURRICULUM, RIVALS),
    'table7': (CURRICULUM, NO_CURRICULUM),
    'orders': (*PAPER, CURRICULUM, 'hard_to_easy', 'shuffled'),
    'corruption': CORRUPTION,
    'masking': MASKING,
    'forecast': ('tokens_15', 'words_20', 'masked_20', CURRICULUM, 'hard_to_easy'),
    'pace': tuple(PACED),
    'refit': tuple(REFIT),
    'adapters': tuple(ADAPTERS),
    'content': tuple(CONTENT),
    'curves': (*STRATEGIES, f'contextualized{LITERAL}', *VARIANTS),
}
ARGUMENTS = tuple(
    f'{ablation}/{arm}.seed-0' for ablation, arms in ARMS.items() for arm in arms if arm not in OPTION_OF
)


@dataclasses.dataclass(frozen=True)
class Options:
    """The options after the name of an ablation."""

    seeds: int = len(SEEDS)
    words: float = 350_000.0
    batch: int = 8
    rates: int = 1
    snapshots: int = 1
    rivals: tuple[str, ...] = ()
    tokens: str = ''
    terms: str = ''
    scores: str = ''


def get_arms(argument: str = '') -> tuple[str, ...]:
    """The arms of an ablation, seed after seed, so that an interrupted sweep has complete seeds."""
    ablation, options = _options(argument)
    factors = [2.0 ** (n - options.rates // 2) for n in range(options.rates)]
    rates = [f'.rate-{factor:g}' for factor in factors] if options.rates > 1 else ['']
    named = [
        f'{arm}{rate}'
        for arm in ARMS[ablation]
        if arm not in OPTION_OF or getattr(options, OPTION_OF[arm])
        for rate in (rates if arm != RIVALS else [''])
    ]
    return tuple(f'{name}.seed-{seed}' for seed in range(options.seeds) for name in named)


def get_config(argument: str = '') -> ConfigDict:
    """One arm, named as in `table2/averaged_input.seed-0`."""
    named, _, arm = argument.rpartition('/')
    ablation, options = _options(named or arm)
    if not named:
        raise ValueError(
            f'{ablation} has several arms: make them with `bioptimus sweep`, or one as {ablation}/{get_arms(arm)[0]}'
        )
    if arm not in get_arms(named):
        raise ValueError(f'no arm {arm!r} in {ablation}; there are {", ".join(get_arms(named))}')
    rest, _, seed = arm.partition('.seed-')
    name, _, factor = rest.partition('.rate-')
    config = load('small')
    config.seed = int(seed)
    if ablation == 'curves':
        _initialise(config, name)
        _first_steps(config)
        return config
    config.stages = tuple(stage for stage in config.stages if stage != 'report')  # one page for all arms
    config.pretrain.update(batch_rows=options.batch, micro_batches=2 - options.batch % 2)
    config.pretrain.learning_rate *= float(factor or 1)
    config.finetune.update(seeds=(int(seed),), epochs=3)
    config.runtime.checkpoint_every_steps = 600
    config.contexts.per_token = 10
    config.evaluation.update(rows=128, per_phase=4, settings=tuple(PAPER_PHASES))
    config.analysis.update(cloze_documents=100, geometry_points=0, geometry_words=0)
    if ablation == 'table6':  # models of different sizes: none may get the rate that suits another
        config.finetune.setting.update(
            {f'lr{rate:.0e}': {'learning_rate': rate} for rate in FINE_TUNING_RATES}
        )
        config.finetune.settings = tuple(config.finetune.setting)
    if name == RIVALS:
        config.stages = ('finetune',)
        config.finetune.models = options.rivals
    elif ablation == 'table2':
        _initialise(config, name)
        _phases(config, PAPER[:1], options)
        config.evaluation.snapshots_per_phase = options.snapshots
        config.finetune.models = _ends(config, options.snapshots)
    elif ablation == 'refit':
        _initialise(config, 'spelled')
        config.surgery.update(REFIT[name], fit_only=options.tokens if name == OF_A_LIST else '')
        _phases(config, PAPER[:1], options)
        config.stages = tuple(stage for stage in config.stages if stage != 'finetune')
        config.finetune.models = ()
        config.analysis.tokens = options.tokens
    elif ablation == 'adapters':
        _initialise(config, 'spelled')
        config.pretrain.update(ADAPTERS[name])
        _phases(config, PAPER[:1], options)
        config.finetune.models = config.phases
    elif ablation == 'content':
        config.vocab.kind, config.surgery.strategy = 'source', 'copy'
        config.corpus.max_words = round(options.words / (1 - config.corpus.heldout_fraction))
        config.corpus.content.update(prefer=CONTENT[name], terms=options.terms)
        config.corpus.content.scores = (options.scores,) if options.scores else ()
        _phases(config, PAPER[1:2], options)
        config.finetune.models = config.phases
    elif ablation == 'table3':
        _phases(config, ORDERS[name][:1], options)
        config.finetune.models = config.phases
    elif ablation in ('forecast', 'masking'):
        shuffled = ablation == 'masking' and name == 'shuffled'
        order = random.Random(int(seed)).sample(PAPER, len(PAPER)) if shuffled else ORDERS[name]
        _phases(config, order, options, restart=False)
        scored = tuple(PAPER_PHASES) if ablation == 'masking' else ()
        config.evaluation.update(rows=64, per_phase=15, settings=scored)
        config.finetune.models = config.phases[-1:]
    elif ablation == 'pace':
        _phases(config, PAPER, options, restart=False)
        config.curriculum.update(PACED[name])
        config.evaluation.update(rows=64, per_phase=8, entities=config.finetune.datasets)
        config.finetune.models = config.phases[-1:]
    else:
        _phases(config, ORDERS[name], options)
        ends = len(PAPER) if name in ALL_ENDS else 0
        first = config.phases[:1] if name in FIRST_ENDS else ()
        config.finetune.models = config.phases[:ends] or (*first, config.phases[-1])
        config.analysis.update(geometry_words=600, geometry_contexts=5, geometry_documents=5000)
    return config


def _options(argument: str) -> tuple[str, Options]:
    """The named ablation, and its options. Raises ValueError."""
    ablation, *given = argument.split(',')
    if ablation not in ARMS:
        raise ValueError(f'no ablation {ablation!r}; there are {", ".join(ARMS)}')
    rivals: tuple[str, ...] = ()
    if ablation == 'table6':  # NAME=PATH
        rivals = tuple(
            option
            for option in given
            if option.partition('=')[0] not in NUMBERS and all(option.partition('='))
        )
    others = [option for option in given if option not in rivals]
    return ablation, read_options(others, Options(rivals=rivals), (*NUMBERS, *PATHS.get(ablation, ())))


def _initialise(config: ConfigDict, name: str) -> None:
    config.surgery.dealt = name.endswith(DEALT)
    name = name.removesuffix(DEALT)
    if name in VARIANTS:
        config.surgery.update(VARIANTS[name])
        return
    config.surgery.strategy = name.removesuffix(LITERAL)
    if name.endswith(LITERAL):
        config.surgery.scale = 'literal'
    if STRATEGIES[config.surgery.strategy].keeps_vocabulary:
        config.vocab.kind = 'source'


def _phases(config: ConfigDict, settings: Sequence[str], options: Options, restart: bool = True) -> None:
    """A phase for every setting. The length and learning rate of the n-th one do not depend on what it masks.

    Without `restart` the learning rate rises and falls once, over all of them.

    The paper's own order has the paper's names; the names of the others contain their settings.
    """
    papers = tuple(settings) == PAPER[: len(settings)]
    config.phases = tuple(PAPER_PHASES)[: len(settings)] if papers else _names(settings)
    for number, (name, setting) in enumerate(zip(config.phases, settings, strict=True)):
        config.phase[name] = phase(
            **SETTINGS[setting],
            duration=float(options.words),
            duration_unit='words',
            schedule='restart' if restart else 'continue',
            learning_rate=config.pretrain.learning_rate * RESTART_FACTOR**number if restart else 0.0,
        )


def _names(settings: Sequence[str]) -> tuple[str, ...]:
    return tuple(f'{number}-{setting}' for number, setting in enumerate(settings, 1))


def _ends(config: ConfigDict, snapshots: int) -> tuple[str, ...]:
    """Step 0, the snapshots and the end of the one phase; with one snapshot only the end."""
    [name] = config.phases
    on_the_way = tuple(f'{name}@{round(100 * n / snapshots)}' for n in range(1, snapshots))
    return ('initial', *on_the_way, name) if on_the_way else (name,)


def _first_steps(config: ConfigDict) -> None:
    """Equal words for every arm: `copy` needs more steps, since its words have more pieces."""
    config.stages = ('corpus', 'vocab', 'contexts', 'rows', 'surgery', 'pretrain', 'export', 'analyze')
    config.finetune.models = ()
    config.phases = tuple(map(str, STEPS))
    for steps, before in zip(STEPS, (0, *STEPS), strict=False):
        words = float(WORDS_PER_STEP * (steps - before))
        config.phase[str(steps)] = phase(duration=words, duration_unit='words')
    config.pretrain.update(batch_rows=8, micro_batches=2)
    config.evaluation.update(rows=64, per_phase=1)
    config.analysis.update(geometry_points=0, geometry_words=0)
    config.runtime.checkpoint_every_steps = 600

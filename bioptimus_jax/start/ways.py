"""Keep, append or replace: what may be done with a source's vocabulary, and what each way does to texts.

Shapes: D documents.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.plan import Assumptions, Plan, make_plan
from bioptimus_jax.scoring.metrics import divided
from bioptimus_jax.scoring.resampling import percentile_interval, resampled
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.subwords import Subwords, kind_name
from bioptimus_jax.vocab.build import trained
from bioptimus_jax.vocab.compare import measure_pieces, new_tokens

KEEP, APPEND, REPLACE = 'keep', 'append', 'replace'
VOCABULARIES = {KEEP: 'source', APPEND: 'append', REPLACE: 'train'}
"""What may be done with the source's vocabulary, as config.vocab.kind has it."""
SMALLEST = 100
"""Entries of a vocabulary that config.vocab.size takes."""
WORTH_IT = 0.05
"""Share of the pieces that a new vocabulary must save: below it little text is spelled otherwise."""
SEEN = 18
"""Times that a new token is seen on average, at least: fewer were not measured (350,000 words, 19,416 new tokens)."""
SHOWN_TO_PAY, MEASURED = 1_800_000, 0.25
"""Words of training below which a new vocabulary scored lower than the source's own, or no higher, and the share of the
pieces up to which this was measured (docs/results.md: 16 % saved, MiniLM, three seeds)."""
BEHIND = (
    "but the source's own scored 2.18 F1 higher after 600,000 words, and 1,800,000 were needed to be level (MiniLM); "
    'these hours read {words:,.0f}'
)


@dataclasses.dataclass(frozen=True)
class Way:
    """A vocabulary and what it does to texts that it was not trained on.

    `new`: tokens that the source does not have; `pieces_D` of every document; `words`: all of them, as `text.words`
    counts them; `one_piece`, `unknown`: shares of the tokenizer's words that are one piece, or the unknown token.
    """

    subwords: Subwords
    new: int
    pieces_D: np.ndarray
    words: int
    one_piece: float
    unknown: float

    @property
    def pieces_per_word(self) -> float:
        """Pieces a word, as `text.words` counts these."""
        return float(self.pieces_D.sum()) / self.words

    def saved(self, kept: 'Way') -> float:
        """Share of the pieces that this vocabulary saves; negative where it needs more."""
        return 1 - float(self.pieces_D.sum() / kept.pieces_D.sum())

    def saved_interval(self, kept: 'Way') -> tuple[float, float]:
        """The interval of 95 % of that, over documents drawn with replacement."""
        totals_Rx1x2 = resampled(np.stack([self.pieces_D, kept.pieces_D], -1)[None])
        return percentile_interval(1 - divided(*totals_Rx1x2[:, 0].T))


def ways(source: Subwords, texts: Sequence[str], size: int, given: Subwords | None = None) -> dict[str, Way]:
    """The source's vocabulary, and new ones of that `size` trained on every other text, measured on the other half.

    They save less there than vocabularies trained on the whole corpus would. `given`: a vocabulary that is measured in
    place of a new one that replaces the source's. Raises ConfigError, InputError.
    """
    counts = source.kind.count_words(texts[::2], source.lowercase, source.reader)
    unseen = texts[1::2] or texts
    made, tokenizer = {KEEP: source}, kind_name(source.kind)
    for name in (APPEND, REPLACE):
        settings = Vocab(kind=VOCABULARIES[name], tokenizer=tokenizer, size=size, lowercase=source.lowercase)
        made[name] = trained(settings, counts, source, say=lambda _: None)
    made[REPLACE] = given or made[REPLACE]
    return {name: _measured(subwords, source, unseen) for name, subwords in made.items()}


def _measured(subwords: Subwords, source: Subwords, texts: Sequence[str]) -> Way:
    shares, _ = measure_pieces(subwords, texts)
    return Way(
        subwords,
        len(new_tokens(subwords, source)),
        np.array([len(encoding.ids) for encoding in subwords.encode(texts)], np.int64),
        shares.words_between_spaces or 0,
        shares.one_piece_words,
        shares.unknown_words,
    )


def plans(experiment: HasTraining, found: Mapping[str, Way]) -> dict[str, Plan]:
    """Plans of the same training with each of the vocabularies."""
    made = {}
    for name, way in found.items():
        size = max(len(way.subwords.tokens), SMALLEST)
        vocab = dataclasses.replace(experiment.vocab, kind=VOCABULARIES[REPLACE], size=size)
        made[name] = make_plan(dataclasses.replace(experiment, vocab=vocab), Assumptions(words=1e9))
    return made


def text_per_flop(found: Mapping[str, Way], planned: Mapping[str, Plan]) -> dict[str, float]:
    """Words that training reads for the same work, as a multiple of KEEP's."""
    work = {n: planned[n].phases[0].flops_per_piece * way.pieces_per_word for n, way in found.items()}
    return {name: work[KEEP] / flops for name, flops in work.items()}


def decide(
    found: Mapping[str, Way], text: Mapping[str, float], pieces: float, asked: str = ''
) -> tuple[str, str]:
    """What to do where so many `pieces` are trained on, unless somebody has `asked` for something; and why.

    Among the new vocabularies that are worth it, it is the one with which training reads more `text` for the same work.
    """
    order = sorted((REPLACE, APPEND), key=lambda name: text[name], reverse=True)
    worths = {name: worth(found[name], found[KEEP], pieces) for name in order}
    # A small vocabulary reads more for the same work, and may save nothing: then it does not speak for all.
    saves_most = max(worths, key=lambda name: found[name].saved(found[KEEP]))
    best = next((name for name, (worth_it, _) in worths.items() if worth_it), saves_most)
    if asked:
        return asked, f'as you asked; {worths.get(asked, worths[best])[1]}'
    worth_it, why = worths[best]
    return best if worth_it else KEEP, why


def worth(way: Way, kept: Way, pieces: float) -> tuple[bool, str]:
    """Whether a new vocabulary is worth it where so many `pieces` are trained on, and why."""
    saved, seen = way.saved(kept), pieces / max(way.new, 1)
    measured = f'a new one saves {max(saved, 0):.0%} of the pieces'
    if saved < WORTH_IT:
        return False, f'{measured}, fewer than {WORTH_IT:.0%}'
    if seen < SEEN:
        return False, f'{measured}, but {way.new:,} new tokens would be seen {seen:.0f} times each: too few'
    words = pieces / kept.pieces_per_word
    if saved <= MEASURED and words < SHOWN_TO_PAY:
        return False, f'{measured}, {BEHIND.format(words=words)}'
    return True, measured

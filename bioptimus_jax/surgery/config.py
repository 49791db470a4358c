"""The section `surgery`."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from bioptimus_jax.config.bounds import LARGEST_SIZE, WIDEST_ROW
from bioptimus_jax.config.fields import common_key, key, named, section
from bioptimus_jax.config.plugins import LazyText, meanings
from bioptimus_jax.rows.config import HasRows
from bioptimus_jax.storage.files import JsonObject
from bioptimus_jax.surgery.initialisations import (
    INITIALISATIONS,
    MAPS,
    OF_FIT,
    Initialisation,
    Map,
    concerned,
)
from bioptimus_jax.surgery.stretches import STRETCHES

ROPES = ('default', 'linear', 'yarn')
"""Types of rotary positions (model/rotary.py)."""


def _of(name: str, meaning: str) -> LazyText:
    """A key's help that begins with the initialisations that it concerns."""
    return LazyText(lambda: f'{concerned(name)}: {meaning}')


@dataclasses.dataclass(frozen=True)
class Longer:
    """More positions than the source has, for longer documents; and how rotary ones turn from then on."""

    positions: int = key(0, "positions of the model; 0: the source's", low=0, high=WIDEST_ROW)
    table: str = key(
        'copied',
        LazyText(lambda: 'rows of learned positions that the source lacks: ' + meanings(STRETCHES)),
        one_of=STRETCHES,
    )
    rope_theta: float = key(
        0.0, "base of rotary positions, of layers that see all pieces; 0: the source's", low=0, high=1e12
    )
    rope_type: str = key(
        '', "how their angles are made: default, linear, yarn; empty: the source's", one_of=('', *ROPES)
    )
    rope_factor: float = key(0.0, 'linear, yarn: by how much the context grows', low=0, high=1e6)


@dataclasses.dataclass(frozen=True)
class Surgery:
    """How the embedding rows of new tokens are made (paper, section 3, Table 1)."""

    strategy: str = common_key(
        'contextualized',
        LazyText(lambda: 'a new row is ' + meanings(INITIALISATIONS)),
        one_of=INITIALISATIONS,
    )
    contexts: str = common_key(
        'all', 'all, or m ~ U{1..found} as the paper may be read', one_of=('all', 'uniform')
    )
    max_contexts: int = key(0, 'contexts of a token used at most, drawn from those found; 0: no bound', low=0)
    layers: tuple[int, ...] = key(
        (),
        _of(
            'layers',
            'layers of the source to read states from, their mean where there are several; 0: the embeddings, -1: the '
            'last, (): the two in the middle, of averaged_last the last',
        ),
        low=-1,
    )
    pooling: str = key(
        'mean',
        'states of a token from those of its pieces: the mean, or the first or last one',
        one_of=('mean', 'first', 'last'),
    )
    shrinkage: float = key(
        1.0,
        _of(
            'shrinkage',
            'k; n contexts count n / (n + k) and the context-free value the rest; 1: equation 2 with that value as one '
            'more context',
        ),
        low=0,
    )
    map: str = key(
        'spelled',
        LazyText(
            lambda: (
                f'{concerned("map")}: states as they are, or mapped linearly to input rows. Fitted on tokens of the '
                'source: '
                + '; '.join(f'{name}, {one.meaning}' for name, one in MAPS.items() if one.anchors)
                + '. Mapped rows are short: see scale'
            )
        ),
        one_of=MAPS,
    )
    fit_steps: int = key(
        0,
        _of(
            'fit_steps',
            'steps of gradient descent on the new rows alone, until one piece does what the pieces of the source do '
            '(token distillation); 0: none. Reads contexts with every strategy',
        ),
        low=0,
    )
    fit_layer: int = key(
        -1,
        'fit_steps: the layer with the states that one piece and several are to agree in; -1: the last, else 1 to '
        'the depth. Lower ones take less time: the layers above are not computed',
        low=-1,
    )
    fit_cross_entropy: float = key(
        0.0,
        "fit_steps: weight of a second term, in which the source's masked-LM head has to name the new token, hidden "
        'in its context, among its own tokens and all new ones. Without it the fit sees the rows as input alone, but '
        'they are output rows too. 1: as large as the first term at every step; 0: none',
        low=0,
    )
    fit_again: float = key(
        0.0,
        'fit_steps: share of the new tokens, those that are then furthest from the source, that get as many steps '
        'again on their own contexts; 0: none',
        low=0,
        high=1,
    )
    fit_only: str = key(
        '',
        'fit_steps: a file with the new tokens to fit, one a line, such as analyze/bad_tokens.txt of an earlier '
        'run; the others keep their rows. Empty: all new tokens',
        path=True,
    )
    donor: str = key(
        '',
        LazyText(
            lambda: (
                f'{concerned("donor")}, and the probe: another model, which knows tokens that the source lacks, a '
                "folder or a hub id; empty: word vectors trained on this run's corpus (needs the extra donor)"
            )
        ),
        path=True,
    )
    anchors: int = key(
        64,
        _of(
            'anchors',
            'tokens of the source that a row is the sum of; below the dimensions of the donor (300 of word vectors)',
        ),
        low=1,
        high=4096,
    )
    scale: str = common_key(
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
    longer: Longer = section(Longer)
    batch_pieces: int = key(
        0, 'source pieces encoded at once; 0: 2,048 on CPUs, else 65,536 a device', low=0, high=LARGEST_SIZE
    )

    own: Mapping[str, Any] = named(
        lambda name: INITIALISATIONS[name].settings,
        {},
        "by strategy, an initialisation's own settings: a record beside it",
        names=INITIALISATIONS,
    )

    @property
    def own_settings(self) -> Any:
        """The settings that are this strategy's alone, given or by default."""
        return self.own.get(self.strategy) or self.initialisation.settings()

    @property
    def resolved(self) -> 'Surgery':
        """The same with every setting that is this strategy's alone: what is not given, as its file has it now."""
        settings = self.own_settings
        return dataclasses.replace(
            self, own={self.strategy: settings} if dataclasses.fields(settings) else {}
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

    @property
    def counts_words(self) -> bool:
        """Whether new tokens get a bias by how often the words of the corpus have them."""
        return self.bias == 'log_count'

    def different(self, usual: 'Surgery') -> JsonObject:
        """The keys that this strategy is concerned with and that are other than in `usual`; not the strategy."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        concerned = self.initialisation.keys + (('contexts', 'max_contexts') if self.reads_contexts else ())
        found = {n: v for n, v in values.items() if n in concerned and v != getattr(usual, n)}
        own, by_default = self.own_settings, self.initialisation.settings()
        for field in dataclasses.fields(own):
            if (value := getattr(own, field.name)) != getattr(by_default, field.name):
                found[f'own.{self.strategy}.{field.name}'] = value
        return found


PAPER_ROWS: Mapping[str, Any] = {'layers': (-1,), 'map': 'none', 'shrinkage': 0.0, 'scale': 'literal'}
"""Keys of `config.surgery` that make the paper's rows; the defaults are what rebuilt hidden tokens best."""


def wrong_rope(theta: float, kind: str, factor: float, section: str) -> Iterator[str]:
    """What is wrong with a section's base, type and factor of rotary positions, a message each."""
    if (kind in ROPES[1:]) != (factor > 0):
        yield (
            f'{section}.rope_factor: {factor} does not go with rope_type={kind!r}; {" and ".join(ROPES[1:])} need one '
            'above 0, and nothing else has one'
        )
    if 0 < theta <= 1:
        yield f'{section}.rope_theta: {theta}; a base above 1 is expected, or 0'


def wrong_surgery(s: Surgery) -> Iterator[str]:
    """What is wrong with the section, a message each."""
    if len(set(s.layers)) != len(s.layers):
        yield f'config.surgery.layers: different layers are needed, got {s.layers}'
    for name in s.own.keys() - {s.strategy}:
        yield (
            f'config.surgery.own.{name}: settings of an initialisation that makes no rows here; set '
            f'config.surgery.strategy={name}, or leave them out'
        )
    unused = {'map': 'none', 'shrinkage': 0.0, 'fit_steps': 0, 'anchors': 64, 'dealt': False}
    for name, without in unused.items():
        value = getattr(s, name)
        if value not in (without, getattr(Surgery, name)) and name not in s.initialisation.keys:
            yield (
                f'config.surgery.{name}: {value} is for config.surgery.strategy={concerned(name, " or ")}, not '
                f'for {s.strategy}; set it to {without}'
            )
    if not s.fit_layer:
        yield (
            'config.surgery.fit_layer: 0 are the embeddings, in which no other piece knows of the new one; give 1 to '
            'the depth of the source, or -1 for its last layer'
        )
    longer = s.longer
    yield from wrong_rope(longer.rope_theta, longer.rope_type, longer.rope_factor, 'config.surgery.longer')
    for name in OF_FIT[1:]:
        if getattr(s, name) != getattr(Surgery, name) and not s.fit_steps:
            yield (
                f'config.surgery.{name}: {getattr(s, name)} decides nothing without a fit; set '
                f'config.surgery.fit_steps, or leave {name} at {getattr(Surgery, name)}'
            )


class HasSurgery(HasRows, Protocol):
    """What stage surgery reads of a configuration."""

    @property
    def surgery(self) -> Surgery: ...

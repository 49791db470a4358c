"""Frozen states on the sets of entities of a run: their sentences, and the records of each model."""

from collections.abc import Callable, Mapping, Sequence

from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.trees import Params
from bioptimus_jax.records.analysis import FrozenScore
from bioptimus_jax.scoring import frozen
from bioptimus_jax.scoring.config import HALVES
from bioptimus_jax.sets.config import ChoosesSets
from bioptimus_jax.sets.corpora import entity_sets, read_split
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.sets.tags import merged
from bioptimus_jax.tokenizer.subwords import Subwords


class FrozenSets:
    """The chosen sentences of each set. They are tokenised once for all models with the same vocabulary."""

    def __init__(self, sentences: Mapping[str, Sequence[Sentence]], layers: str = HALVES):
        self.sentences, self.layers = sentences, layers
        self._tagged: dict[tuple[str, tuple[str, ...], int], frozen.Tagged] = {}

    @classmethod
    def of(cls, settings: ChoosesSets, most: int, layers: str = HALVES) -> 'FrozenSets':
        """Sets with at most `most` sentences of each set of entities in config.finetune.folder; no set without a
        folder, or with `most` = 0. Raises InputError."""
        found = {}
        for one in entity_sets(settings) if settings.folder and most else ():
            sentences = frozen.chosen(read_split(one, 'train'), most)
            if one.reading:
                sentences = [s.retagged(merged) for s in sentences]
            found[one.name] = sentences
        return cls(found, layers)

    def __len__(self) -> int:
        """Sentences of all sets."""
        return sum(map(len, self.sentences.values()))

    def records(
        self,
        model: str,
        subwords: Subwords,
        architecture: Architecture,
        params: Params,
        on_sentences: Callable[[float], None] = lambda sentences: None,
    ) -> list[FrozenScore]:
        """A record of frozen.json for each set."""
        window = min(frozen.WINDOW, architecture.positions)
        records = []
        for name, sentences in self.sentences.items():
            key = name, tuple(subwords.tokens), window
            if key not in self._tagged:
                self._tagged[key] = frozen.Tagged.of(sentences, subwords, window)
            tagged = self._tagged[key]
            states_NxD = frozen.states(tagged, architecture, params, on_sentences, self.layers)
            scores = frozen.scored(tagged, states_NxD)
            records.append(FrozenScore(model, name, **scores, sentences=len(sentences)))
        return records

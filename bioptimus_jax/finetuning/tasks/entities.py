"""Named-entity recognition: a tag for every word, entity F1."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.finetuning.config import ENTITY_HEADS, Finetune
from bioptimus_jax.finetuning.entities import lint
from bioptimus_jax.finetuning.entities.align import align, piece_labels, tags_of_words, word_labels
from bioptimus_jax.finetuning.entities.files import (
    PREDICTIONS,
    read_predictions,
    write_predictions,
    write_standoff,
)
from bioptimus_jax.finetuning.entities.outside import read_tags
from bioptimus_jax.finetuning.entities.slices import label_distribution, material_of, slices
from bioptimus_jax.finetuning.entities.usage import usage_of
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.finetuning.outside import Submission
from bioptimus_jax.finetuning.predictions import Predicted, Seeds, majority
from bioptimus_jax.finetuning.summary import TokenStatistics
from bioptimus_jax.finetuning.task import DEFAULT, Encoded, Look, Task, Usage, of_setting
from bioptimus_jax.records.finetune import Details, FineTuning, Scores
from bioptimus_jax.records.statistics import MentionSlices
from bioptimus_jax.scoring.score import METRICS, by_type, check_with_seqeval, score
from bioptimus_jax.sets import corpora
from bioptimus_jax.sets.corpora import Dataset, NamedSet
from bioptimus_jax.sets.cutting import long_words
from bioptimus_jax.sets.sentences import SPLITS, Sentence
from bioptimus_jax.sets.tags import NAMELESS, Span, decode, encode, from_spans, labels_of, renamed, spans

OWN_PIECES = 8
"""Pieces of a window that are not shared with its neighbours, special tokens included, at least."""


class Entities(Task):
    """Sets in any form that `sets.corpora` reads; heads: linear, CRF, BiLSTM and both."""

    title = 'Named-entity recognition'
    hub = 'token-classification'
    unit = 'sentence'
    heads = ENTITY_HEADS
    metrics = METRICS
    files = (PREDICTIONS, 'predictions.ann', 'predictions.txt')
    reported: tuple[str, ...] = (
        'test_untyped',
        'test_by_type',
        'gold_in_file',
        'gold_left_out',
        'gold_scored',
        'recall_in_file',
        'gold_not_strict',
        'applied',
    )
    summed = ('gold_in_file', 'gold_left_out', 'gold_scored')

    def scheme(self, settings: Finetune) -> str:
        """How tags are taught: a value of config.finetune.scheme."""
        return settings.scheme

    def check_settings(self, settings: Finetune, dataset: str) -> None:
        super().check_settings(settings, dataset)
        most = (settings.max_pieces - OWN_PIECES) // 2
        if settings.overlap_pieces > most:
            raise ConfigError(
                f'config.finetune.overlap_pieces: {settings.overlap_pieces}{of_setting(settings)} for {dataset}, but '
                f'windows of config.finetune.max_pieces={settings.max_pieces} have room for at most {most}'
            )

    def read(self, chosen: NamedSet) -> Dataset:
        return corpora.read_dataset(chosen)

    def check(self, chosen: NamedSet, dataset: Dataset) -> None:
        corpora.require_all_mentions(chosen.folder, dataset)

    def labels(self, dataset: Dataset, settings: Finetune) -> Sequence[str]:
        of_devel = corpora.types_of(dataset.devel) if settings.learn_devel else ()
        return labels_of(sorted({*dataset.types, *of_devel}), self.scheme(settings))

    def windows(self, tokenizer: Any, examples: Sequence[Sentence], settings: Finetune) -> Encoded:
        return align(tokenizer, examples, settings.max_pieces, settings.overlap_pieces)

    def reads(self, dataset: Dataset, settings: Finetune) -> Reads:
        several = long_words(sentence.words for sentence in dataset.train)
        return Reads(settings.max_pieces, settings.overlap_pieces, dataset.cut, long_words=several)

    def applied(self, dataset: Dataset, tokenizer: Any, head: Any, settings: Finetune) -> Scores | None:
        from bioptimus_jax.finetuning.entities.applied import applied

        return applied(self, dataset, tokenizer, head, settings)

    def usage(self, dataset: Dataset, settings: Finetune) -> Usage:
        return usage_of(dataset.cut)

    def head(self, pretrained: Any, labels: Sequence[str], settings: Finetune, dtype: str) -> Any:
        from bioptimus_jax.finetuning.entities.tagger import Tagger

        taught = dataclasses.replace(settings, scheme=self.scheme(settings))
        return Tagger(pretrained, labels, taught, dtype)

    def answers(self, example: Sentence) -> Sequence[str]:
        return example.gold

    def shown(self, example: Sentence) -> tuple[str, ...]:
        return example.scored_words

    def mentions(self, answers: Sequence[str]) -> Sequence[Span]:
        return spans(answers)

    def sameness(self, gold: Sequence[Sequence[str]], answers: Sequence[Sequence[str]]) -> str:
        """What is said where nothing at all is found, though there is something."""
        found, there = (any(self.mentions(one) for one in side) for side in (answers, gold))
        return 'it finds nothing' if there and not found else ''

    def learned(self, example: Sentence, settings: Finetune) -> Sequence[str]:
        return encode(example.tags, self.scheme(settings))

    def target(self, window: Any, learned: Sequence[str], head: Any) -> list[int]:
        if head.chain is not None:
            return word_labels(window, learned, head.label_ids)
        return piece_labels(window, learned, head.label_ids, head.label_pieces)

    def decode(
        self, examples: Sequence, windows: Sequence, found: Sequence, head: Any, settings: Finetune
    ) -> list[list[str]]:
        tags = tags_of_words(examples, windows, found, head.labels)
        decoded = (decode(of_one, self.scheme(settings)) for of_one in tags)
        return [list(one.laid_out(of_one)) for one, of_one in zip(examples, decoded, strict=True)]

    def look(self, dataset: Dataset, tokenizers: Mapping[str, Any], max_pieces: int) -> Look:
        found = lint.lint_dataset(dataset, tokenizers, max_pieces)
        tags = {split: [s.gold for s in getattr(dataset, split)] for split in SPLITS}
        return Look(found, label_distribution(tags), lint.lines(found))

    def detail(self, dataset: Dataset, predicted: Sequence[Sequence[str]]) -> Details:
        gold = [s.gold for s in dataset.test]
        scores = self.metric.scores(gold, predicted)
        check_with_seqeval(gold, predicted, scores)
        in_file = dataset.gold_in_file['test']
        strict = sum(len(spans(tags, orphans_open=False)) for tags in gold)
        return Details(
            test_untyped=score(gold, predicted, typed=False),
            test_by_type=by_type(gold, predicted),
            gold_in_file=in_file,
            gold_left_out=dataset.gold_left_out.get('test', 0),
            gold_scored=int(scores['gold']),
            recall_in_file=scores['recall'] * scores['gold'] / in_file if in_file else 0.0,
            gold_not_strict=int(scores['gold']) - strict,
            merged_types=dataset.merged_types,
            unseen_labels=dataset.unseen_labels,
        )

    def remarks(self, record: Details) -> list[str]:
        lines = []
        if record.gold_left_out is not None:
            scored, left_out = record.gold_scored, record.gold_left_out
            lines.append(
                f'gold mentions in file {record.gold_in_file:,}, left out {left_out:,}, scored {scored:,}'
            )
            if left_out:
                recall = 100 * (record.recall_in_file or 0.0)
                lines[0] += (
                    f' (those left out overlap or repeat others; recall over all in the file {recall:.2f})'
                )
            if gone := record.gold_not_strict:
                lines.append(
                    f'strict F1 is not defined for this set: {gone:,} of {scored:,} gold mentions begin with I- and '
                    'are none in strict mode'
                )
        if record.applied:
            label, score = self.metric.label, 100 * record.applied[DEFAULT][self.metric.name]
            lines.append(
                f'`predict` cuts the text of this set into other words than its files, and so has {label} {score:.2f}'
            )
        return lines

    def slices(
        self, dataset: Dataset, predictions: Seeds, tokenizer: Any, known: TokenStatistics
    ) -> MentionSlices:
        return slices(predictions, material_of(dataset, tokenizer, known))

    def write(self, folder: Path, examples: Sequence[Predicted]) -> None:
        write_predictions(folder / self.files[0], examples)
        write_standoff(folder, examples)

    def vote(self, given: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """Mentions that more than half of the seeds have; no two of them overlap, as some seed has both."""
        return from_spans(majority(map(spans, given)), len(given[0]))

    def counted(self, tags: Sequence[str]) -> tuple[str, ...]:
        """What `vote` counts of a seed's tags, for each word: a mention begins with B-, whatever the seed has there."""
        return from_spans(spans(tags), len(tags))

    def shared(self, dataset: Dataset, other: Dataset) -> dict[str, str]:
        """Types of the same name, in capitals or not; tags without types say nothing of what they are."""
        theirs = {kind.casefold(): kind for kind in other.types if kind != NAMELESS}
        return {kind: theirs[kind.casefold()] for kind in dataset.types if kind.casefold() in theirs}

    def restrict_labels(self, answers: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
        return renamed(answers, lambda kind: names.get(kind, ''))

    def read_file(self, chosen: NamedSet, file: Path) -> tuple[Sequence[Sentence], Dataset]:
        dataset = corpora.read_test(chosen, file)
        return dataset.test, dataset

    def outside(self, chosen: NamedSet, asked: Submission) -> tuple[list[tuple[str, ...]], list[str]]:
        return read_tags(asked, one_type=bool(chosen.reading))

    def word_of(self, examples: Sequence[Sentence]) -> dict[str, tuple[int, ...]]:
        return {str(at): one.word_of for at, one in enumerate(examples) if one.exact}

    def asked_again(self, items: Sequence[Predicted], record: FineTuning) -> list[Sentence] | None:
        """Sentences in their own words, as parts of these would show the model where mentions begin and end."""
        if record.word_of is None:
            return None
        found = [Sentence(item.words, item.gold, item.document) for item in items]
        for at, word_of in record.word_of.items():
            item = items[int(at)]
            found[int(at)] = Sentence.joined(item.words, item.gold, word_of, item.document)
        return found

    def written(self, folder: Path) -> list[Predicted]:
        return read_predictions(folder / self.files[0])


TASK = Entities()

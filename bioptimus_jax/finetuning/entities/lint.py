"""What is worth knowing about an NER set before a model is trained on it: counts, flaws, leaks between splits."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.hosts.workers import ranges
from bioptimus_jax.progress.console import numbered, shortened, some_labels
from bioptimus_jax.records.sets import (
    LintedSet,
    LintedSplit,
    Repeated,
    SetInPieces,
    SplitInPieces,
    TaggedDifferently,
)
from bioptimus_jax.sets import blurb, published
from bioptimus_jax.sets.corpora import Dataset
from bioptimus_jax.sets.cutting import count_cut_otherwise
from bioptimus_jax.sets.sentences import SPLITS, Sentence
from bioptimus_jax.sets.tags import OUTSIDE, spans

LONG_WORDS = 128  # without a tokenizer: a sentence of so many words does not fit a window of as many pieces
PUNCTUATION = ('.', ',', ';', ':')
FEW_WITH_PUNCTUATION = 0.01  # of a split's mentions; the five public sets have none
LATER = (('train', 'devel'), ('train', 'test'), ('devel', 'test'))
EXAMPLES = 5
BATCH = 2000


def lint_dataset(
    dataset: Dataset, tokenizers: Mapping[str, Any] | None = None, max_pieces: int = Finetune().max_pieces
) -> LintedSet:
    """Everything that is found in a set; `lines` puts the essence into words.

    Tokenizers are those of transformers (fast) or of the library tokenizers.
    """
    name = blurb.set_of(dataset.name)
    known = blurb.SETS[name] if name else published.mentions_of(dataset.name)
    mentions = dict(zip(SPLITS, known.mentions if known else (0, 0, 0), strict=True))
    return LintedSet(
        dataset=dataset.name,
        blurb=name,
        form=dataset.form,
        scheme=dataset.scheme,
        columns=dataset.columns,
        types=tuple(dataset.types),
        merged_types=tuple(dataset.merged_types),
        cut=dataset.cut,
        cut_otherwise=count_cut_otherwise(dataset.test, dataset.cut),
        unseen_labels=dict(dataset.unseen_labels),
        splits={split: _split_of(dataset, split, mentions[split], name) for split in SPLITS},
        repeated=_repeated(dataset),
        tagged_differently=_tagged_differently(dataset),
        tokenizers={
            key: SetInPieces(max_pieces=max_pieces, **_in_pieces(dataset, tokenizer, max_pieces))
            for key, tokenizer in (tokenizers or {}).items()
        },
    )


def lines(record: LintedSet) -> list[str]:
    """A record for the terminal: the counts, those of BLURB beside them, and what is wrong."""
    mixed = '' if record.form == 'columns' else f'{record.form}, '
    kinds = record.merged_types or record.types
    types = shortened(kinds, 8)
    types += ' as one type' if record.merged_types else ''
    text = [f'{record.dataset}: {mixed}{record.scheme}; {types}']
    for split, found in record.splits.items():
        numbers = found.documents, found.sentences, found.words, found.mentions
        counts = list(map(numbered, numbers, ('document', 'sentence', 'word', 'mention')))
        text.append(f'  {split:5} {", ".join(counts[found.documents <= 1 :])}{_beside(found)}')
    return text + [f'  {note}' for note in notes(record)]


def notes(record: LintedSet, label: Callable[[str], str] = str) -> list[str]:
    """What the counts of a set do not say, and what is wrong with it; `label`: of the name of a tokenizer."""
    said = [record.columns] * bool(record.columns)
    for split, found in record.splits.items():
        said += [f'{split}: {what}: {count:,}' for what, count in found.repairs.items()]
    for split, found in record.splits.items():
        in_file, left_out, read = found.mentions_in_file, found.mentions_left_out, found.mentions
        if in_file != read + left_out:
            said.append(f'{split}: the files mark {numbered(in_file, "mention")}, but others are read')
        elif left_out:
            said.append(
                f'{split}: gold mentions in file {in_file:,}, left out {left_out:,} (they overlap or repeat others), '
                f'scored {read:,}'
            )
        if gone := found.mentions_not_strict:
            said.append(
                f'{split}: strict F1 is not defined, since {gone:,} of {read:,} mentions begin with I- and are none in '
                'strict mode'
            )
        if (
            record.form == 'columns'
            and (marked := found.mentions_with_punctuation or 0) > FEW_WITH_PUNCTUATION * read
        ):
            said.append(
                f'{split}: {marked:,} of {numbered(read, "mention")} end in punctuation, as "fever."; '
                "`predict` cuts it off (Label Studio's CoNLL is so, its JSON is not)"
            )
        if found.sentences_without_mention == found.sentences:
            said.append(f'{split}: has no mention at all')
    if other := record.cut_otherwise:
        said.append(
            f'test: {numbered(other, "sentence")} with other words than `predict` finds in the text (rule '
            f'{record.cut}), so a kept model gets a second score for its bare text'
        )
    if record.unseen_labels:
        counted = some_labels(f'{tag} {count:,}' for tag, count in record.unseen_labels.items())
        said.append(f'not in train, cannot be learned from it: {counted}')
    again = [
        f'{where} {found.sentences:,} ({found.mentions:,})'
        for where, found in record.repeated.items()
        if found.sentences
    ]
    if again:
        said.append(f'sentences that occur earlier (mentions in them): {", ".join(again)}')
    different = record.tagged_differently
    if different.sentences:
        example = different.examples[0][:60]
        said.append(
            f'tagged in more than one way: {numbered(different.sentences, "sentence")}, as {example!r}'
        )
    return said + _piece_notes(record, label)


def _split_of(dataset: Dataset, split: str, published_mentions: int, name: str) -> LintedSplit:
    """Counts of a split; `name`: of the set in BLURB, or ''."""
    sentences, by_type = getattr(dataset, split), Counter[str]()
    without = strict = marked = 0
    for sentence in sentences:
        found = spans(sentence.gold)
        strict += len(spans(sentence.gold, orphans_open=False))
        without += not found
        by_type.update(kind for kind, _, _ in found)
        ends = (sentence.scored_words[last] for _, _, last in found)
        marked += sum(len(word) > 1 and word.endswith(PUNCTUATION) for word in ends)
    return LintedSplit(
        documents=len({s.document for s in sentences}),
        sentences=len(sentences),
        words=sum(len(s.words) for s in sentences),
        mentions=by_type.total(),
        mentions_not_strict=by_type.total() - strict,
        mentions_with_punctuation=marked or None,
        mentions_by_type=dict(sorted(by_type.items())),
        sentences_without_mention=without,
        longest_sentence_words=max(len(s.words) for s in sentences),
        long_sentences=sum(len(s.words) > LONG_WORDS for s in sentences),
        blurb=published_mentions if name else None,
        public_files=blurb.SETS[name].in_files.get(split, published_mentions) if name else None,
        published=None if name else published_mentions or None,
        mentions_in_file=dataset.gold_in_file[split],
        mentions_left_out=dataset.gold_left_out.get(split, 0),
        repairs=dict(dataset.repairs.get(split, {})),
    )


def _repeated(dataset: Dataset) -> dict[str, Repeated]:
    """Sentences with the words of an earlier one of the same split, and of an earlier split."""
    texts = {split: {s.words for s in getattr(dataset, split)} for split in SPLITS}
    result = {}
    for split in SPLITS:
        seen, again = set[tuple[str, ...]](), []
        for sentence in getattr(dataset, split):
            if sentence.words in seen:
                again.append(sentence)
            seen.add(sentence.words)
        result[f'within {split}'] = _weight(again)
    for earlier, later in LATER:
        result[f'{later} from {earlier}'] = _weight(
            [s for s in getattr(dataset, later) if s.words in texts[earlier]]
        )
    return result


def _weight(sentences: Sequence[Sentence]) -> Repeated:
    return Repeated(len(sentences), sum(len(spans(s.gold)) for s in sentences))


def _tagged_differently(dataset: Dataset) -> TaggedDifferently:
    """Sentences, each counted once, that are there with different tags; most frequent examples first."""
    ways: dict[tuple[str, ...], Counter[tuple[str, ...]]] = defaultdict(Counter)
    for split in SPLITS:
        for sentence in getattr(dataset, split):
            ways[sentence.words][sentence.gold] += 1
    different = {words: found for words, found in ways.items() if len(found) > 1}
    order = sorted(different, key=lambda words: (-different[words].total(), words))
    return TaggedDifferently(len(different), tuple(' '.join(words)[:200] for words in order[:EXAMPLES]))


def _pieces_of(words: Sequence[str], tokenizer: Any) -> dict[str, int]:
    """How many pieces each word has."""
    pieces: dict[str, int] = {}
    for start, stop in ranges(len(words), BATCH):
        encoded = tokenizer.encode_batch(
            [[word] for word in words[start:stop]], is_pretokenized=True, add_special_tokens=False
        )
        # Padding that a tokenizer.json switches on is not a piece.
        numbers = [sum(found.attention_mask) for found in encoded]
        pieces.update(zip(words[start:stop], numbers, strict=True))
    return pieces


def _in_pieces(dataset: Dataset, tokenizer: Any, max_pieces: int) -> dict[str, SplitInPieces]:
    """What each split is in pieces: words without a piece, and lengths of sentences in pieces with the special tokens
    around them."""
    inner = getattr(tokenizer, 'backend_tokenizer', tokenizer)
    special = inner.num_special_tokens_to_add(False)
    words = sorted({word for split in SPLITS for s in getattr(dataset, split) for word in s.words})
    pieces = _pieces_of(words, inner)
    result: dict[str, SplitInPieces] = {}
    for split in SPLITS:
        sentences = getattr(dataset, split)
        lengths = [sum(pieces[word] for word in s.words) for s in sentences]
        empty: Counter[str] = Counter(word for s in sentences for word in s.words if not pieces[word])
        marked = lost = 0
        for sentence in sentences if empty else ():
            sizes = [pieces[word] for word in sentence.words]
            marked += sum(tag != OUTSIDE and not n for tag, n in zip(sentence.tags, sizes, strict=True))
            lost += sum(not any(sizes[first : last + 1]) for _, first, last in spans(sentence.tags))
        result[split] = SplitInPieces(
            words_without_piece=empty.total(),
            of_them_in_mentions=marked,
            mentions_without_piece=lost,
            examples=tuple(json.dumps(word) for word, _ in empty.most_common(EXAMPLES)),
            longest_sentence_pieces=max(lengths) + special,
            long_sentences=sum(length + special > max_pieces for length in lengths),
        )
    return result


def _beside(found: LintedSplit) -> str:
    """BLURB's number, and whether it is what was found, or else what the public files hold."""
    if found.blurb is None:
        said = {True: 'as published', False: f'published: {found.published or 0:,}; NOT the same'}
        return f' ({said[found.mentions == found.published]})' if found.published else ''
    if found.mentions == found.blurb:
        return f' (BLURB: {found.blurb:,})'
    known = 'known of the public files' if found.mentions == found.public_files else 'NOT the same'
    return f' (BLURB: {found.blurb:,}; {known})'


def _piece_notes(record: LintedSet, label: Callable[[str], str]) -> list[str]:
    notes = []
    for name, measured in record.tokenizers.items():
        found = measured.splits
        if long := sum(f.long_sentences for f in found):
            longest = max(f.longest_sentence_pieces for f in found)
            notes.append(
                f'{label(name)}: {numbered(long, "sentence")} of more than {measured.max_pieces} pieces, '
                f'cut into windows (longest: {longest:,})'
            )
        if empty := sum(f.words_without_piece for f in found):
            marked, lost = (
                sum(f.of_them_in_mentions for f in found),
                sum(f.mentions_without_piece for f in found),
            )
            shown = ', '.join(dict.fromkeys(e for f in found for e in f.examples))
            notes.append(
                f'{label(name)}: {numbered(empty, "word")} without a piece, which count as O ({marked:,} in mentions; '
                f'{numbered(lost, "mention")} cannot be found): {shown}'
            )
    splits = record.splits.values()
    if not record.tokenizers and (long := sum(f.long_sentences for f in splits)):
        longest = max(f.longest_sentence_words for f in splits)
        notes.append(f'{numbered(long, "sentence")} of more than {LONG_WORDS} words (longest: {longest:,})')
    return notes

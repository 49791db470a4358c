"""Where tokens stand in text: the tokens in each sentence, and character spans.

A tokenizer treats every stretch of text from one space to the next on its own, and text repeats its stretches. So each
different stretch ("chunk") is tokenised once per process and looked up afterwards; offsets are fetched for sampled ones
only. Whether a stretch holds the space before it is the tokenizer's affair (`Kind.carries_space`).
"""

import itertools

import numpy as np

from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.vocab.sampling import ranks

CACHED_CHUNKS = 1_000_000  # about 150 MB
BATCH = 500


class TokenFinder:
    """Finds some tokens of a vocabulary in sentences."""

    def __init__(self, subwords: Subwords, tokens: list[str]):
        """`tokens` are numbered by their order; each must be in the vocabulary."""
        self.subwords = subwords
        self.tokens = tokens
        ids = {token: i for i, token in enumerate(subwords.tokens)}
        self.texts = [subwords.text(ids[token]) for token in tokens]
        self.number_of_id = np.full(len(ids), -1, np.int32)
        self.number_of_id[[ids[t] for t in tokens]] = np.arange(len(tokens))
        self._forget()

    def _forget(self) -> None:
        self.row_of_chunk: dict[str, int] = {}
        self.row_counts: list[int] = [0]  # row 0: chunks without any of the tokens
        self.row_tokens: list[int] = []

    def _learn(self, chunks: list[str]) -> None:
        # All at once, not the oldest: row numbers stay consecutive, and frequent chunks come back soon.
        if len(self.row_of_chunk) > CACHED_CHUNKS:
            self._forget()
        missing = list(set(chunks).difference(self.row_of_chunk))
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            encodings = self.subwords.reader.encode_batch_fast(batch, add_special_tokens=False)
            lists = [encoding.ids for encoding in encodings]
            numbers = self.number_of_id[np.fromiter(itertools.chain.from_iterable(lists), np.int64)].tolist()
            end = 0
            for chunk, ids in zip(batch, lists, strict=True):
                begin, end = end, end + len(ids)
                wanted = [n for n in numbers[begin:end] if n >= 0]
                self.row_of_chunk[chunk] = len(self.row_counts) if wanted else 0
                if wanted:
                    self.row_counts.append(len(wanted))
                    self.row_tokens.extend(wanted)

    def find(self, sentences: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(sentence, token, chunk) of the first occurrence of every token in every sentence, in that order.

        int64 arrays of equal length; `chunk` counts the stretches between spaces within the sentence.
        """
        lists = [self.subwords.kind.stretches(sentence) for sentence in sentences]
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        chunks = list(itertools.chain.from_iterable(lists))
        self._learn(chunks)
        row_N = np.fromiter(map(self.row_of_chunk.__getitem__, chunks), np.int64, len(chunks))
        sentence_N = np.repeat(np.arange(len(lists)), lengths)
        counts = np.array(self.row_counts)
        starts = np.cumsum(counts) - counts
        # A chunk appears once for each of its tokens: not at all, most often.
        at = np.repeat(np.arange(len(chunks)), counts[row_N])
        token = np.array(self.row_tokens, np.int64)[starts[row_N[at]] + ranks(at)]
        sentence = sentence_N[at]
        chunk = ranks(sentence_N)[at]
        # The first index is the first place, as chunks are in order; `locate` needs the pairs sorted.
        _, first = np.unique(sentence * max(len(self.tokens), 1) + token, return_index=True)
        return sentence[first], token[first], chunk[first]

    def locate(
        self, sentences: list[str], sentence: np.ndarray, token: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(start, end) in characters of the first occurrence of `token[i]` in `sentences[sentence[i]]`.

        -1 where no span spells the token: a character that the normaliser takes apart (Hangul) holds several.
        """
        found_sentence, found_token, found_chunk = self.find(sentences)
        width = max(len(self.tokens), 1)
        keys = found_sentence * width + found_token
        chunk = found_chunk[np.searchsorted(keys, sentence * width + token)]
        lists = [self.subwords.kind.stretches(text) for text in sentences]
        words = [lists[s][c] for s, c in zip(sentence.tolist(), chunk.tolist(), strict=True)]
        pieces = self._pieces(words)
        start_I, end_I = np.full(len(words), -1), np.full(len(words), -1)
        between = 0 if self.subwords.kind.carries_space else 1  # characters that no stretch holds
        for i, word in enumerate(words):
            offset = sum(map(len, lists[sentence[i]][: chunk[i]])) + between * int(chunk[i])
            for begin, end in pieces[word].get(int(token[i]), ()):
                text = word[begin:end]
                if self.subwords.normalised(text).strip() == self.texts[token[i]]:
                    begin += len(text) - len(text.lstrip(' '))  # the span is the token's characters alone
                    start_I[i], end_I[i] = offset + begin, offset + end
                    break
        return start_I, end_I

    def _pieces(self, words: list[str]) -> dict[str, dict[int, list[tuple[int, int]]]]:
        """Word -> the spans of every wanted token, in order."""
        different = list(set(words))
        pieces: dict[str, dict[int, list[tuple[int, int]]]] = {}
        for start in range(0, len(different), BATCH):
            batch = different[start : start + BATCH]
            for word, encoding in zip(batch, self.subwords.encode(batch), strict=True):
                spans: dict[int, list[tuple[int, int]]] = {}
                numbers = self.number_of_id[encoding.ids].tolist()
                for number, span in zip(numbers, encoding.offsets, strict=True):
                    if number >= 0:
                        spans.setdefault(number, []).append(span)
                pieces[word] = spans
        return pieces


def cut_around(text: str, start: int, end: int, longest: int) -> tuple[str, int, int]:
    """A part of `text`, of at most `longest` characters, around [start, end), cut at spaces where there are any.

    Returns the shorter text and the span in it. A text that fits comes back as it is.
    """
    if len(text) <= longest:
        return text, start, end
    room = max(longest - (end - start), 0)
    left = max(min(start - room // 2, len(text) - longest), 0)
    right = min(max(left + longest, end), len(text))
    if left > 0 and text[left - 1] != ' ' and (space := text.find(' ', left, start)) >= 0:
        left = space + 1
    if right < len(text) and text[right] != ' ' and (space := text.rfind(' ', end, right)) >= 0:
        right = space
    return text[left:right], start - left, end - left

"""Documents for a query, by the cosine of vectors: nDCG@10, recall and MAP, as BEIR has them. Nothing is learned."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import Encoded, Look, Task, Usage
from bioptimus_jax.finetuning.texts.usage import EXAMPLE
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.finetune import BASELINES, Details
from bioptimus_jax.scoring.ranking import METRICS, Bm25, ranked
from bioptimus_jax.sets import beir
from bioptimus_jax.sets.beir import Query, Retrieval
from bioptimus_jax.sets.corpora import NamedSet

AT_ONCE = 1000
"""Texts that are encoded together."""
CODE = """\
import bioptimus_jax as bx

folder = '.'  # the path of this folder
[vector] = bx.embed(folder, [{example!r}], max_pieces={max_pieces})
print(vector)"""
CUT = 'texts that were cut'


class RetrievalTask(Task):
    """Sets in BEIR's layout. The model is judged as it is, so several seeds say the same."""

    title = 'Retrieval'
    hub = 'sentence-similarity'
    hf_class = 'AutoModel'
    unit = 'query'
    cuts = True
    learns = False
    metrics = METRICS
    reported = BASELINES

    def read(self, chosen: NamedSet) -> Retrieval:
        if not beir.is_one(chosen.folder):
            raise InputError(
                f'{chosen.folder}: is no set for retrieval; it needs {beir.CORPUS}, {beir.QUERIES} and {beir.JUDGED}, '
                "as BEIR's sets have them"
            )
        return beir.read(chosen.name, chosen.folder)

    def labels(self, dataset: Retrieval, settings: Finetune) -> Sequence[str]:
        return ['vector']

    def windows(self, tokenizer: Any, examples: Sequence[Query], settings: Finetune) -> Encoded:
        """The queries and, behind them, all documents; of long texts the beginning."""
        from bioptimus_jax.finetuning.texts.vectors import VectorWindow

        made, cut = list[VectorWindow](), 0
        for number, encoding in enumerate(_encodings(tokenizer, examples, settings.max_pieces)):
            cut += bool(encoding.overflowing)
            made.append(VectorWindow(number, tuple(encoding.ids)))
        return Encoded(made, {CUT: cut})

    def usage(self, dataset: Retrieval, settings: Finetune) -> Usage:
        return Usage(
            'The vector of a text, of length 1, so that the product of two is their cosine',
            CODE.format(example=EXAMPLE, max_pieces=settings.max_pieces),
            EXAMPLE,
        )

    def head(self, pretrained: Any, labels: Sequence[str], settings: Finetune, dtype: str) -> Any:
        from bioptimus_jax.finetuning.texts.vectors import Vectors

        return Vectors(pretrained, labels, dtype)

    def command(self, folder: str, text: str) -> str:
        code = f'import bioptimus_jax as bx; print(bx.embed({folder!r}, [{text}]))'
        return f'python -c {shlex.quote(code)}' if set('"$`!\\') & set(code) else f'python -c "{code}"'

    def target(self, window: Any, learned: Sequence[Any], head: Any) -> Any:
        raise NotImplementedError

    def decode(
        self, examples: Sequence[Query], windows: Sequence, found: Sequence, head: Any, settings: Finetune
    ) -> list[tuple[str, ...]]:
        """The ids of the nearest documents of each query."""
        if not examples:
            return []
        vectors = np.array(found, np.float32)
        queries_QxD, documents_NxD = vectors[: len(examples)], vectors[len(examples) :]
        return ranked(
            lambda begin, end: queries_QxD[begin:end] @ documents_NxD.T,
            [query.id for query in examples],
            examples[0].documents.ids,
        )

    def look(self, dataset: Retrieval, tokenizers: Mapping[str, Any], max_pieces: int) -> Look:
        lines = [f'{dataset.name}: {note}' for note in dataset.notes]
        for model, tokenizer in tokenizers.items():
            if cut := sum(bool(e.overflowing) for e in _encodings(tokenizer, dataset.test, max_pieces)):
                lines.append(
                    f'{dataset.name}: cut: {numbered(cut, "text")} of more than {max_pieces} pieces of {model}; '
                    'config.finetune.max_pieces says how many are read'
                )
        return Look(lines=lines)

    def detail(self, dataset: Retrieval, predicted: Sequence[Any]) -> Details:
        """The score of BM25, which reads words alone."""
        answers = by_words(dataset)
        score = self.metric.scores([query.answers for query in dataset.test], answers)[self.metric.name]
        return Details(bm25=float(score))

    def sameness(self, gold: Sequence[Sequence[Any]], answers: Sequence[Sequence[Any]]) -> str:
        return ''

    def vote(self, given: Sequence[Sequence[Any]]) -> Sequence[Any]:
        """The ranking of the first: all are alike."""
        return given[0]


TASK = RetrievalTask()


def _encodings(tokenizer: Any, examples: Sequence[Query], most: int) -> Iterator[Any]:
    """The pieces of the queries, and behind them those of all documents; at most so many of a text."""
    from bioptimus_jax.vocab.agreement import for_texts, load_in_transformers

    # The one for words may put a space before a text.
    reader = for_texts(load_in_transformers(Path(tokenizer.name_or_path)))
    texts = [*(query.words[0] for query in examples), *(examples[0].documents.texts if examples else ())]
    for begin in range(0, len(texts), AT_ONCE):
        yield from reader(texts[begin : begin + AT_ONCE], truncation=True, max_length=most).encodings


def by_words(dataset: Retrieval) -> list[tuple[str, ...]]:
    """The rankings of BM25: documents that have a word of the query."""
    bm25 = Bm25(dataset.documents.texts)
    texts = [query.words[0] for query in dataset.test]
    ids = [query.id for query in dataset.test]
    return ranked(lambda begin, end: bm25.scores(texts[begin:end]), ids, dataset.documents.ids, least=0)

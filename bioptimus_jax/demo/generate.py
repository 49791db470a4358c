"""Writes the generated world: general text, abstracts and two NER sets, the same for the same seed."""

import dataclasses
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

from bioptimus_jax.demo.general import General
from bioptimus_jax.demo.grammar import Lexicon, Phrase, Phrases, draw, expand, iob2, lexicon, text
from bioptimus_jax.demo.phrases import NEUTRAL, PLAIN, TITLES, TYPICAL
from bioptimus_jax.storage.files import atomic

ABSTRACTS, PARAGRAPHS = 4500, 8000
SENTENCES = {'train': 480, 'devel': 240, 'test': 480}
LABELS = {'drugs': ('drug', 'Drug'), 'diseases': ('disease', 'Disease')}
AUDITABLE = 40
"""Letters and digits from which on the audit looks for a sentence; shorter ones may stand in the corpus."""
UNSEEN = 0.75
"""Share of the names in devel and test that NER training never shows; the corpus has them all."""
LEAKED, DUPLICATES, SHORT = 12, 6, 4
"""Documents with a benchmark sentence on purpose, documents there twice, documents of a few words."""


def generate(folder: Path, seed: int, scale: float = 1.0) -> dict[str, int]:
    """Write general.txt, pubmed.jsonl.gz, ner/{drugs,diseases}/{train,devel,test}.tsv; return the counts.

    `scale` multiplies the numbers of documents, paragraphs and NER sentences; the names stay. The counts say
    how many documents hold a benchmark sentence on purpose ('leaked'): the audit has to find those, and only
    those.
    """
    rng = random.Random(f'bioptimus demo {seed}')
    world = World(rng, lexicon(rng))
    counts = {}
    benchmark: dict[str, str] = {}
    for name, (kind, label) in LABELS.items():
        for split, number in SENTENCES.items():
            found = list(world.benchmark(kind, split != 'train', max(40, round(number * scale)), benchmark))
            rows = [iob2(sentence, kind, label) for sentence in found]
            _write_iob2(folder / 'ner' / name / f'{split}.tsv', rows)
            counts[f'{name}_{split}_mentions'] = sum(tag.startswith('B-') for row in rows for _, tag in row)
    documents = world.documents(max(60, round(ABSTRACTS * scale)), benchmark)
    # No name and no time in the header: the same seed gives the same bytes.
    with atomic(folder / 'pubmed.jsonl.gz', 'wb') as raw, gzip.GzipFile('', 'wb', 6, raw, mtime=0) as packed:
        packed.write(''.join(json.dumps(document) + '\n' for document in documents).encode())
    general = General.of(rng)
    paragraphs = [general.paragraph(rng) for _ in range(max(60, round(PARAGRAPHS * scale)))]
    with atomic(folder / 'general.txt') as file:
        file.write('\n\n'.join(paragraphs) + '\n')
    return {
        'documents': len(documents),
        'leaked': LEAKED,
        'duplicates': DUPLICATES,
        'short': SHORT,
        'paragraphs': len(paragraphs),
        **counts,
    }


@dataclasses.dataclass
class World:
    """The biomedical grammar with its names and one stream of random numbers."""

    rng: random.Random
    names: Lexicon

    def documents(self, number: int, benchmark: dict[str, str]) -> list[dict[str, str]]:
        """Abstracts without benchmark sentences, and the leaked, doubled and short ones, in random order."""
        beginnings: dict[str, list[str]] = {}
        for key in benchmark:
            if len(key) >= AUDITABLE:
                beginnings.setdefault(key[:AUDITABLE], []).append(key)
        texts: list[tuple[str, str]] = []
        while len(texts) < number:
            title, body = self.abstract()
            # anywhere, not sentence by sentence: `12 children ...` holds the benchmark's `2 children ...`
            if not _holds(letters(title + body), beginnings):
                texts.append((title, body))
        long_enough = sorted(sentence for key, sentence in benchmark.items() if len(key) >= AUDITABLE)
        for place, sentence in enumerate(self.rng.sample(long_enough, LEAKED)):
            title, body = texts[place]
            half = body.index('. ') + 2
            texts[place] = title, body[:half] + sentence + ' ' + body[half:]
        texts += texts[LEAKED : LEAKED + DUPLICATES]
        texts += [('Erratum', self.rng.choice(('No abstract.', 'Not available.'))) for _ in range(SHORT)]
        self.rng.shuffle(texts)
        return [{'id': str(10_000_000 + i), 'title': t, 'abstract': b} for i, (t, b) in enumerate(texts)]

    def abstract(self) -> tuple[str, str]:
        """A title and six to twelve sentences around a few names of its own."""
        topic = {kind: draw(self.rng, names) for kind, names in self.names.names.items()}

        def pick(kind: str) -> Phrase:
            if kind in ('thing', 'other', 'third'):
                kind = self.rng.choice(tuple(TYPICAL))
            if kind not in topic:
                return self.number(kind)
            return (topic[kind] if self.rng.random() < 0.4 else draw(self.rng, self.names.names[kind])), kind

        sentences = []
        for _ in range(self.rng.randint(6, 12)):
            sentences.append(text(expand(self.rng, self.template(neutral=0.15, plain=0.12), pick)))
        return text(expand(self.rng, self.rng.choice(TITLES), pick)) + '.', ' '.join(sentences)

    def benchmark(
        self, kind: str, evaluated: bool, number: int, benchmark: dict[str, str]
    ) -> Iterator[Phrases]:
        """NER sentences for one class, all different, entered into `benchmark` by their letters and digits.

        Half of them are neutral, with the class itself in the first slot more often than the others.
        """

        def pick(slot: str) -> Phrase:
            name = slot
            if slot == 'thing':
                name = kind if self.rng.random() < 0.6 else self.rng.choice(tuple(TYPICAL))
            elif slot in ('other', 'third'):
                name = self.rng.choice(tuple(TYPICAL))
            if name not in self.names.names:
                return self.number(slot)
            unseen = evaluated and self.rng.random() < UNSEEN
            return self.rng.choice((self.names.unseen if unseen else self.names.seen)[name]), name

        made = 0
        while made < number:
            sentence = expand(self.rng, self.template(neutral=0.6, plain=0.05), pick)
            key = letters(text(sentence))
            if key not in benchmark:
                benchmark[key] = text(sentence)
                made += 1
                yield sentence

    def template(self, neutral: float, plain: float) -> str:
        """A sentence template: neutral or plain with these probabilities, otherwise typical of some class."""
        draw = self.rng.random()
        if draw < neutral:
            return self.rng.choice(NEUTRAL)
        if draw < neutral + plain:
            return self.rng.choice(PLAIN)
        kind = self.rng.choice(('drug', 'drug', 'disease', 'disease', *TYPICAL))
        return self.rng.choice(TYPICAL[kind])

    def number(self, kind: str) -> Phrase:
        """A number of the size that the slot asks for."""
        rng = self.rng
        if kind == 'percent':
            return (f'{rng.randint(2, 95)}',), ''
        if kind == 'dose':
            return (str(rng.choice((1, 2, 5, 10, 20, 25, 40, 50, 75, 100, 200, 500))),), ''
        return (str(rng.randint(1985, 2022) if kind == 'year' else rng.randint(2, 90)),), ''


def letters(sentence: str) -> str:
    """Letters and digits only, case folded: how sentences are compared."""
    return ''.join(c for c in sentence.casefold() if c.isalnum())


def _holds(key: str, beginnings: dict[str, list[str]]) -> bool:
    return any(
        key.startswith(sentence, start)
        for start in range(len(key) - AUDITABLE + 1)
        for sentence in beginnings.get(key[start : start + AUDITABLE], ())
    )


def _write_iob2(path: Path, rows: list[list[tuple[str, str]]]) -> None:
    with atomic(path) as file:
        for row in rows:
            file.write(''.join(f'{word}\t{tag}\n' for word, tag in row) + '\n')

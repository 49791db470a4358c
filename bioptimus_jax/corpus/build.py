"""Stage `corpus`: read, sift, split and store the documents, with a count for every reason."""

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from bioptimus_jax.corpus.audit import Auditor, Sentence, audit_files, reduced
from bioptimus_jax.corpus.documents import Document, DocumentWriter, document_key, write_metadata
from bioptimus_jax.corpus.readers import MADE_ID, input_files, read_inputs
from bioptimus_jax.errors import InputError
from bioptimus_jax.files import atomic
from bioptimus_jax.run import Run
from bioptimus_jax.schema import Corpus, Experiment

AUDIT_FILE = 'audit.jsonl'
REASONS = ('too_short', 'duplicate_text', 'duplicate_id', 'benchmark')
DOCUMENTS_PER_CHECK = 500


def external_inputs(experiment: Experiment) -> list[Path]:
    """The files outside the run that decide the corpus: the inputs, then the audited NER files."""
    audited = [path for _, _, path in audit_files(experiment.corpus.audit)]
    return input_files(experiment.corpus) + audited


class Sieve:
    """Decides about documents one by one; remembers only hashes of them (16 and 8 bytes each)."""

    def __init__(self, settings: Corpus):
        self.min_words = settings.min_words
        self.auditor = Auditor(settings.audit)
        self._texts: set[bytes] = set()
        self._keys: set[int] = set()

    def judge(self, document: Document) -> tuple[str, list[Sentence]]:
        """The reason to leave a document out ('' to keep it), with its benchmark sentences."""
        if len(document.text.split()) < self.min_words:
            return 'too_short', []
        letters = reduced(document.text)
        # A text without letters or digits is compared as it is.
        text = hashlib.blake2b((letters or document.text).encode(), digest_size=16).digest()
        if text in self._texts:
            return 'duplicate_text', []
        # Contexts and masks are keyed by id, so ids must be unique; the first document stays.
        key = document_key(document.id)
        if key in self._keys:
            return 'duplicate_id', []
        self._keys.add(key)
        self._texts.add(text)
        found = self.auditor.matches(letters)
        return ('benchmark' if found else ''), found


def is_heldout(id: str, fraction: float) -> bool:
    """Whether a document is held out, by a hash of its id that is independent of `document_key`."""
    number = int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8, person=b'heldout').digest(), 'little')
    return number < fraction * 2**64


def build(run: Run, folder: Path) -> dict[str, Any]:
    """Write `documents/` and `audit.jsonl`; returns counts and the digest of the decoded content.

    The result depends on the inputs and the corpus settings only. Raises InputError where nothing is left.
    """
    settings = run.config.corpus
    _clear(folder)
    sieve = Sieve(settings)
    total = sum(path.stat().st_size for path in input_files(settings))
    progress = run.progress('corpus', total / 1000, 'kB')
    left_out = Counter(dict.fromkeys(REASONS, 0))
    words, digests = Counter(train=0, heldout=0), {'train': hashlib.sha256(), 'heldout': hashlib.sha256()}
    read = matched = ids_made = 0
    with (
        DocumentWriter(folder, 'train', settings.shards) as train,
        DocumentWriter(folder, 'heldout', 1) as heldout,
        atomic(folder / AUDIT_FILE) as audit,
    ):
        for document in read_inputs(settings, lambda stored_bytes: progress.update(stored_bytes / 1000)):
            if read % DOCUMENTS_PER_CHECK == 0:
                run.check_stop()
            read += 1
            reason, found = sieve.judge(document)
            if reason:
                left_out[reason] += 1
                if found:
                    matched += len(found)
                    audit.write(json.dumps(_audit_record(document, found), ensure_ascii=False) + '\n')
                continue
            split = 'heldout' if is_heldout(document.id, settings.heldout_fraction) else 'train'
            (heldout if split == 'heldout' else train).write(document)
            ids_made += document.id.startswith(MADE_ID)
            words[split] += len(document.text.split())
            digests[split].update(_content(document))
        _require_documents(settings, read, train.count, heldout.count, left_out)
        lengths = {'train': train.finish(), 'heldout': heldout.finish()}
    write_metadata(folder, lengths)
    if progress.done < progress.total:  # sums of rounded parts
        progress.update(progress.total - progress.done)
    counts = {
        'read': read,
        'left_out': dict(left_out),
        'train': train.count,
        'heldout': heldout.count,
        'words': dict(words),
        'ids_made': ids_made,
        'audit': {
            'sentences': sieve.auditor.searched,
            'too_short': sieve.auditor.too_short,
            'matches': matched,
        },
    }
    run.say(f'corpus: {_summary(counts)}')
    content = hashlib.sha256(digests['train'].digest() + digests['heldout'].digest()).hexdigest()
    return {**counts, 'content': content}


def _clear(folder: Path) -> None:
    # An attempt that was killed leaves nothing to continue from: reading again is cheaper than checking.
    shutil.rmtree(folder / 'documents', ignore_errors=True)
    for path in (*folder.glob(f'.{AUDIT_FILE}.*'), folder / AUDIT_FILE):
        path.unlink(missing_ok=True)


def _content(document: Document) -> bytes:
    id, text = document.id.encode(), document.text.encode()
    return len(id).to_bytes(8, 'little') + id + len(text).to_bytes(8, 'little') + text


def _audit_record(document: Document, found: list[Sentence]) -> dict[str, Any]:
    sentences = [{'dataset': s.dataset, 'split': s.split, 'text': s.text} for s in found]
    return {'document': document.id, 'source': document.source, 'sentences': sentences}


def _require_documents(settings: Corpus, read: int, train: int, heldout: int, left_out: Counter[str]) -> None:
    if not read:
        raise InputError(f'{", ".join(settings.inputs)}: hold no documents; correct --config.corpus.inputs')
    if not train:
        reasons = ', '.join(f'{n} {reason}' for reason, n in left_out.items() if n) or 'none left out'
        raise InputError(
            f'{", ".join(settings.inputs)}: of {read} documents none is left for training ({reasons}, '
            f'{heldout} held out); give more text, or change config.corpus.min_words or heldout_fraction'
        )


def _summary(counts: dict[str, Any]) -> str:
    reasons = ', '.join(f'{n:,} {reason}' for reason, n in counts['left_out'].items() if n) or 'none'
    return (
        f'{counts["read"]:,} documents read, {counts["train"]:,} for training '
        f'({counts["words"]["train"]:,} words), {counts["heldout"]:,} held out; left out: {reasons}'
    )

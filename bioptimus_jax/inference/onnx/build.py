"""`bioptimus export MODEL --form=onnx`: a folder with a model as ONNX, or nothing if it does not compute the same."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from bioptimus_jax.corpus.documents import open_documents
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.export.card import NAME as CARD
from bioptimus_jax.export.sums import write_sums
from bioptimus_jax.finetuning.kept import NAME as READING
from bioptimus_jax.finetuning.loading import check_embedding_rows, positions_of
from bioptimus_jax.inference.model import KINDS
from bioptimus_jax.inference.onnx import gate, graph
from bioptimus_jax.inference.onnx.answering import ANSWERING
from bioptimus_jax.inference.onnx.card import OF_MODEL, lines, onnx_card
from bioptimus_jax.inference.onnx.scored import Tested, as_tested, scores
from bioptimus_jax.inference.onnx.session import (
    ABOUT,
    GRAPH,
    PACKAGES,
    OnnxModel,
    form_of,
    opened,
    require_extra,
)
from bioptimus_jax.model.folder import content_of
from bioptimus_jax.model.weights import weight_files
from bioptimus_jax.records.kept import ENSEMBLE, read_head
from bioptimus_jax.records.onnx import OnnxForm
from bioptimus_jax.run.manifests import MANIFEST, place_of, versions
from bioptimus_jax.storage.files import atomic, whole_folder, write_json
from bioptimus_jax.tokenizer.subwords import file_names
from bioptimus_jax.vocab.agreement import for_texts, load_in_transformers

TEXTS = (
    ('Torsade de pointes was induced by metoclopramide.',),
    ('Mutations of BRCA1 were found in 12 of 40 families with early-onset breast cancer.',),
    ('Is aspirin of use in the secondary prevention of stroke?', 'It lowered the risk of a second stroke.'),
    ('No adverse events were seen.',),
    ('Expression of IL-2 and of TNF-alpha was measured by ELISA in the serum of 32 patients with sepsis.',),
    ('The enzyme catalyses the oxidation of L-lactate to pyruvate.', 'Its activity was lost at 60 degrees.'),
    ('Mice that lack the receptor gained less weight on a diet that was rich in fat.',),
    ('Methods: a randomised, double-blind trial in five centres.',),
)
"""What a model is compared on that has neither a test set nor a corpus beside it."""
HELDOUT = 16
"""Documents of a run that were never trained on, which its exports are compared on."""


def export_onnx(folder: Path, to: Path, precision: str, threads: int, say: Callable[[str], None]) -> OnnxForm:
    """Write the folder `to`, only if it passes the gate; gives what it says of itself. Raises InputError, ConfigError.

    `folder`: of an exported or a fine-tuned model, or of any tagger, classifier or masked language model.
    """
    if precision not in graph.PRECISIONS:
        raise ConfigError(f'--precision={precision}: give one of {", ".join(graph.PRECISIONS)}')
    require_extra()
    if to.exists():
        raise InputError(f'{to}: already exists; name a new folder')
    if form_of(folder):
        raise InputError(f'{folder}: holds a model as ONNX already; give the folder that it was made from')
    if (folder / ENSEMBLE).is_file():
        raise InputError(
            f'{folder}: holds several models, and a file of ONNX is made of one; name a folder in it'
        )
    if head := read_head(folder):
        raise InputError(
            f'{folder}: its head ({head.described}) is of no class of transformers, and only those are traced; '
            'fine-tune with config.finetune.head=linear, of texts also with features=family'
        )
    torch.set_num_threads(threads)
    model, purpose = graph.load(folder)
    with whole_folder(to) as hidden:
        say(f'writes the graph in {precision}')
        graph.PRECISIONS[precision](model, purpose, hidden)
        form = _checked(folder, hidden, model, purpose, precision, threads, say)
        _finish(folder, hidden, form)
    for line in lines(form):
        say(line)
    return form


def _checked(
    folder: Path,
    hidden: Path,
    model: Any,
    purpose: graph.Purpose,
    precision: str,
    threads: int,
    say: Callable[[str], None],
) -> OnnxForm:
    """What is to be known of the graph that was written into `hidden`. Raises OnnxGateError for one that is too far off
    the model of the folder."""
    tokenizer = load_in_transformers(folder)
    check_embedding_rows(folder, tokenizer, model)
    means, tested, config = ANSWERING[purpose.hf_class], as_tested(folder, say), model.config
    mask, kept = -1, tokenizer.mask_token
    if means.hides and kept:
        mask = tokenizer.mask_token_id
    reader = for_texts(tokenizer, [kept] if mask >= 0 else ())
    positions = min(tokenizer.model_max_length, positions_of(model, tokenizer.model_max_length))
    longest = min(positions, gate.LONGEST)
    texts = _texts(folder, tested, purpose.hf_class == KINDS['ForTokenClassification'].hf_class)
    rows = gate.rows_of(reader, texts, longest, means.hides)
    names = graph.inputs_of(model)
    onnx = OnnxModel(opened(hidden / GRAPH, threads), config, purpose.output)
    ours, theirs = _asking(onnx, names, purpose.output), _asking(graph.Traced(model, purpose), names)
    given = list(gate.batches(rows[: gate.COMPARED], config.vocab_size, longest))
    agreement = gate.compared(ours, theirs, given, config, means, mask)
    gate.require_alike(agreement, precision, str(folder))
    score = None
    if tested:
        say(f'both answer the {len(tested.items):,} test items of {tested.dataset}')
        labels = [str(config.id2label[at]) for at in range(config.num_labels)]
        score = scores(tested, folder, model, onnx, labels)
    return OnnxForm(
        hf_class=purpose.hf_class,
        inputs=names,
        output=purpose.output,
        opset=graph.OPSET,
        precision=precision,
        positions=positions,
        bytes={p.name: p.stat().st_size for p in sorted(hidden.iterdir())},
        pytorch_bytes=sum(file.stat().st_size for file in weight_files(folder)),
        made_from=content_of(folder),
        agreement=agreement,
        score=score,
        speed=gate.timed(ours, theirs, rows, config.pad_token_id or 0, threads),
        versions=versions(PACKAGES),
    )


def _asking(model: torch.nn.Module, names: Sequence[str], output: str = '') -> gate.Compute:
    """What a model gives for the inputs of these names."""

    @torch.inference_mode()
    def compute(tensors: dict[str, torch.Tensor]) -> gate.Values:
        found = model(**{name: tensors[name] for name in names})
        values: gate.Values = (getattr(found, output) if output else found).numpy()
        return values

    return compute


def _texts(folder: Path, tested: Tested | None, of_words: bool) -> list[tuple[str, ...]]:
    """What a model is compared on: the first items of its test, which may be `of_words`, else what its run has held
    out, else TEXTS."""
    if tested:
        read = [item.words for item in tested.items[: gate.TIMED]]
        return [(' '.join(words),) if of_words else words for words in read]
    corpus = folder.resolve().parents[1] / 'corpus'
    if (corpus / MANIFEST).is_file() and folder.resolve().parent.name == 'export':
        documents = open_documents(place_of(corpus), 'heldout')
        if len(documents):
            return [(d.text,) for d in documents.read(0, min(HELDOUT, len(documents)))]
    return [*TEXTS]


def _finish(folder: Path, hidden: Path, form: OnnxForm) -> None:
    """Put what is read with the graph beside it, the cards, what it says of itself, and the checksums."""
    for name in ('config.json', READING, *file_names()):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, hidden / name)
    if (folder / CARD).is_file():
        shutil.copyfile(folder / CARD, hidden / OF_MODEL)
    write_json(hidden / ABOUT, form.json())
    with atomic(hidden / CARD) as file:
        file.write(onnx_card(folder, form))
    write_sums(hidden)

"""The score of a tagger that is applied to the bare text of a test set, where its words are cut otherwise there."""

from collections import Counter
from pathlib import Path
from typing import Any

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.entities.outside import laid_on
from bioptimus_jax.finetuning.outside import Submission
from bioptimus_jax.finetuning.task import Task
from bioptimus_jax.finetuning.training import predict
from bioptimus_jax.records.finetune import Scores
from bioptimus_jax.sets.characters import Marked, Mention
from bioptimus_jax.sets.corpora import Dataset
from bioptimus_jax.sets.cutting import bare_lines, count_cut_otherwise
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.sets.tags import spans


def applied(task: Task, dataset: Dataset, tokenizer: Any, head: Any, settings: Finetune) -> Scores | None:
    """Every metric on test of what the model says of the bare texts of documents, cut by the rule that it is kept with.

    None where the rule gives the words of the set, as it does wherever mentions are marked by characters: then this is
    the score on the set itself.
    """
    if not count_cut_otherwise(dataset.test, dataset.cut):
        return None
    texts, places_of = zip(*bare_lines(dataset.test, dataset.cut), strict=True)
    cut = [(number, places) for number, of_one in enumerate(places_of) for places in of_one]
    sentences = [Sentence(tuple(texts[at][a:b] for a, b in places), ()) for at, places in cut]
    windows = task.windows(tokenizer, sentences, settings).windows
    mentions: list[list[Mention]] = [[] for _ in texts]
    tags = predict(task, head, sentences, windows, settings)
    for (number, places), of_sentence in zip(cut, tags, strict=True):
        for kind, first, last in spans(of_sentence):
            mentions[number].append(Mention(kind, places[first][0], places[last][1]))
    documents = [Marked(text, tuple(found)) for text, found in zip(texts, mentions, strict=True)]
    asked = Submission(Path(dataset.name), Path(dataset.name), dataset.test, task.unit)
    answers = laid_on(asked, documents, Counter())
    return task.scores([s.gold for s in dataset.test], answers)

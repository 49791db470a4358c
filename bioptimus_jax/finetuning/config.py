"""The section `finetune`."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from bioptimus_jax.config.bounds import LARGEST_SEED, MOST_LAYERS, SHORTEST_WINDOW, WIDEST_ROW
from bioptimus_jax.config.fields import NOT_EMPTY, common_key, key, meant, named
from bioptimus_jax.config.plugins import LazyText, Plugins, meanings
from bioptimus_jax.finetuning.texts.features import FEATURES, PREDICTORS
from bioptimus_jax.model.config import INITIAL, SOURCE, phase_of
from bioptimus_jax.model.lora import MOST_RANK, Lora, alpha_key, lora_of, targets_key
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.storage.files import JsonObject

STANDARD = 'standard'
TOGETHER = 'ensemble'
"""The value of `keep` for seeds that answer together, and the name of their folder."""
AUTO, TORCH, JAX = 'auto', 'torch', 'jax'
WITH_LORA = ('finetune.lora_rank', NOT_EMPTY)
PAPER_FINETUNING = {'epochs': 5, 'batch_sentences': 16, 'learning_rate': 2e-5}
"""Values of the keys that follow model and set by default, for configs that do as a paper did (BIOptimus, Table 9)."""
TASKS = Plugins('bioptimus_jax.finetuning.tasks', 'TASK')
"""Kinds of fine-tuning (`finetuning.task.Task`): what config.finetune.task may be."""
ENTITY_HEADS = ('linear', 'crf', 'span', 'bilstm', 'bilstm_crf', 'bilstm_span')
HEADS = tuple(dict.fromkeys((*ENTITY_HEADS, *PREDICTORS)))
NOT_OF_A_SET = tuple('folder datasets task models setting of_set keep crossed halving tuned_on'.split())
NOT_OF_A_SETTING = (*NOT_OF_A_SET, 'seeds', 'settings', 'word_column', 'tag_column')


@dataclasses.dataclass(frozen=True)
class Finetune:
    """Fine-tuning for entities, classes and similarity (paper, Table 9; Gu et al. 2021; Tinn et al., sections 3-4)."""

    folder: str = common_key(
        '', 'sets: NAME/{train,devel,test}.tsv; of entities in any scheme, BRAT or PubTator', path=True
    )
    datasets: tuple[str, ...] = common_key(
        (),
        'sets of that folder; NAME-typed, NAME-merged: its types apart, as one (JNLPBA: as one unless typed, as in '
        'BLURB); empty: all of them',
    )
    task: str = common_key(
        'entities', 'the task of sets without a record in sets/: a file of finetuning/tasks', one_of=TASKS
    )
    word_column: str = key(
        '',
        'column of the word, in files with a word and its tag in each line, by its number (1; -1 is the last) or '
        'its name in a header; empty: found from what columns hold',
    )
    tag_column: str = key('', 'column of the tag, in the same way')
    models: tuple[str, ...] = common_key(
        (),
        'exports that are scored, as 0.4 or 0.1@25; initial, source, Hugging Face folders or hub ids, as /models/a, '
        'OWNER/NAME@REVISION or NAME=/models/a; empty: every phase',
    )
    seeds: tuple[int, ...] = common_key((0,), 'one fine-tuning each', low=0, high=LARGEST_SEED)
    settings: tuple[str, ...] = key(
        (STANDARD,), 'names of `setting`, tried with all models, sets, seeds; standard: the keys below'
    )
    setting: Mapping[str, Mapping[str, Any]] = named(
        lambda name: Finetune, {}, 'by name, the keys below that are different', without=NOT_OF_A_SETTING
    )
    of_set: Mapping[str, Mapping[str, Any]] = named(
        lambda name: Finetune,
        {},
        'by folder, or by the name of a public set: the keys that are different for it, also seeds and settings; a '
        'setting takes precedence',
        without=NOT_OF_A_SET,
    )
    halving: int = key(
        0,
        'successive halving: 1/halving of the settings of a set continue after 1/halving of the epochs; 0: all do',
        low=0,
        high=100,
    )
    tuned_on: tuple[str, ...] = key(
        (),
        'models that choose one setting for each set and all models (BLURB); empty: each model has its own',
    )
    epochs: int = common_key(
        0,
        'passes over the training set (paper: 5-11; BLURB: 2-60; Tinn et al.: to 100); 0: by the number of examples',
        low=0,
        high=10_000,
    )
    batch_sentences: int = common_key(
        0, 'paper: 4, 8 or 16; BLURB: 16 or 32; 0: by the number of examples', low=0, high=WIDEST_ROW
    )
    learning_rate: float = common_key(
        0.0,
        "peak (paper: 1e-5 or 2e-5; BLURB: 1e-5, 3e-5 or 5e-5); 0: by the model's width, of an adapter ten times that",
        low=0,
        high=1,
    )
    head_learning_rate: float = key(0.0, 'peak for the head, which starts at random; 0: same', low=0, high=1)
    warmup_fraction: float = key(
        0.1, 'share of the steps with a rising rate, in the slanted triangular schedule', low=0, high=1
    )
    weight_decay: float = key(0.01, 'decay of weights; biases and layer norms have none', low=0, high=10)
    bias_correction: bool = key(
        True, 'correct the bias of Adam; the original BERT does not, which Tinn et al. find unstable'
    )
    dropout: float = key(
        0.1, 'dropout of hidden states, attention probabilities and the head', low=0, high=0.9
    )
    head: str = key(
        'linear',
        "on the last layer's states (PubMedBERT, section 5.2); of texts on their features: "
        + ', '.join(PREDICTORS),
        one_of=HEADS,
    )
    features: str = key(
        'family',
        LazyText(lambda: meanings(FEATURES)),
        one_of=FEATURES,
    )
    segment_ids: str = key(
        'two',
        'two: a pair of texts has the ids that the tokenizer gives; one: 0 everywhere (Tinn et al., PubMedQA)',
        one_of=('two', 'one'),
    )
    lstm_hidden: int = key(0, 'bilstm: units a direction; 0: half of the hidden size', low=0, high=WIDEST_ROW)
    scheme: str = key('bio', 'tags that are learned, whatever the files have', one_of=('bio', 'io', 'bioul'))
    label_pieces: str = key('first', 'pieces of a word that carry its label', one_of=('first', 'all'))
    freeze_layers: int = key(
        0,
        'lowest encoder layers that are not trained, like the embeddings (Tinn et al.: half)',
        low=0,
        high=MOST_LAYERS,
    )
    layer_decay: float = key(1.0, "each layer's rate as a share of the next's; 1: none", low=0.1, high=1)
    layer_decay_rule: str = key(
        'electra',
        'the top layer has learning_rate x decay (zhang), or x decay^2 (electra, whose removed pooler counts)',
        one_of=('electra', 'zhang'),
    )
    reinit_layers: int = key(0, 'top layers that begin at random (Zhang et al.)', low=0, high=MOST_LAYERS)
    lora_rank: int = key(
        0,
        'rank of an adapter (LoRA) that is trained in place of the weights of the encoder (extra lora); the head is '
        'trained whole, and a model that is kept has it merged; 0: none',
        low=0,
        high=MOST_RANK,
    )
    lora_alpha: float = alpha_key(WITH_LORA)
    lora_targets: tuple[str, ...] = targets_key(WITH_LORA)
    remove_layers: int = key(0, 'top layers left out (Tinn et al., Table 8)', low=0, high=MOST_LAYERS)
    train_sentences: int = key(0, 'a choice of training sentences, for low resources; 0: all', low=0)
    train_choice: str = key(
        'random',
        'way to choose; stratified: the same share of every answer. A smaller choice is part of a larger one',
        one_of=('random', 'stratified'),
    )
    train_seed: int = key(0, 'seed of that choice', low=0, high=LARGEST_SEED)
    devel_sentences: int = key(0, 'the same for devel, which chooses the epoch; 0: all', low=0)
    learn_devel: bool = key(
        False,
        'train on devel too, once setting and epochs are chosen (Tinn et al., BIOSSES); then the last epoch is scored',
    )
    max_pieces: int = common_key(
        128, 'window; longer sentences get several, overlapping', low=SHORTEST_WINDOW, high=WIDEST_ROW
    )
    overlap_pieces: int = key(32, 'context repeated on either side of a window border', low=0)
    dtype: str = key(
        'auto', 'compute type; auto: bfloat16 on GPUs and TPUs', one_of=('auto', 'float32', 'bfloat16')
    )
    encoder: str = key(
        AUTO,
        'what computes the encoder, under the same heads of PyTorch; auto: jax where it has an accelerator that '
        'PyTorch has not, as a TPU, else torch',
        one_of=(AUTO, TORCH, JAX),
    )
    keep: str = common_key(
        'none',
        'fine-tuned models that are kept, in seed-N/model: the seed that is best on devel, or all; ensemble: all, and '
        'beside them a folder in which they answer together',
        one_of=('none', 'best', 'all', TOGETHER),
    )
    crossed: bool = key(
        False, 'models that are kept also predict the test of the other sets that share a type of entity'
    )

    @property
    def lora(self) -> Lora | None:
        """The adapter that is trained, if any."""
        return lora_of(self.lora_rank, self.lora_alpha, self.lora_targets) if self.lora_rank else None

    def named(self, setting: str) -> 'Finetune':
        """The keys under one of `settings`: those of config.finetune, but for the ones that it changes."""
        return dataclasses.replace(self, settings=(setting,), setting={}, **self.setting.get(setting, {}))

    @property
    def tried(self) -> list['Finetune']:
        """The keys under each of `settings`."""
        return [self.named(setting) for setting in self.settings]

    def deciding(self) -> JsonObject:
        """The values of the keys that decide the result of a fine-tuning."""
        return {k: v for k, v in dataclasses.asdict(self).items() if k not in NOT_OF_A_SETTING}

    def on(self, dataset: str) -> 'Finetune':
        """The keys for a set: those of config.finetune, but for the ones that `of_set` changes."""
        return dataclasses.replace(self, of_set={}, **self.of_set.get(dataset, {}))


def own_models(experiment: 'HasFinetune') -> list[str]:
    """The models of config.finetune that this run makes: step 0, phases and snapshots; no folders, and the source only
    where an adapter is merged into it."""
    wanted = experiment.finetune.models or experiment.phases
    made = (INITIAL, SOURCE) if experiment.source.adapter else (INITIAL,)
    return [name for name in wanted if name in made or phase_of(name) in experiment.phases]


def wrong_finetune(settings: Finetune) -> Iterator[str]:
    """What is wrong with the section, a message each."""
    if STANDARD in settings.setting:
        yield (
            f'config.finetune.setting: {STANDARD!r} stands for the keys of config.finetune itself; choose another name'
        )
    if settings.halving == 1:
        yield 'config.finetune.halving: 1 would stop nothing; set 2 or more, or 0 for no halving'
    if settings.crossed and settings.keep == 'none':
        yield "config.finetune.crossed: is for models that are kept; set config.finetune.keep to 'best' or 'all'"
    yield from _wrong_settings(settings, 'config.finetune.')
    for name in settings.of_set:
        yield from _wrong_settings(settings.on(name), f'config.finetune.of_set.{name}.')


def _wrong_settings(settings: Finetune, where: str) -> Iterator[str]:
    """What is wrong with settings for all sets, or for one: `where` its keys are."""
    for name, values in (('seeds', settings.seeds), ('settings', settings.settings)):
        if not values or len(set(values)) != len(values):
            yield f'{where}{name}: one or more different ones are needed, got {values}'
    if settings.keep == TOGETHER and len(settings.seeds) < 2:
        yield f"{where}keep: {TOGETHER!r} needs several seeds; add some to {where}seeds, or set 'best'"
    known = (STANDARD, *settings.setting)
    for name in settings.settings:
        if name not in known:
            yield (
                f'{where}settings: {name!r} has no config.finetune.setting entry; known: '
                f'{", ".join(known)}{meant(name, known)}'
            )
        yield from _wrong_setting(settings.named(name), name, where)


def _wrong_setting(setting: Finetune, name: str, where: str) -> Iterator[str]:
    """What is wrong with one of `settings`, by its name, with all of its keys."""
    if setting.keep == 'best' and setting.learn_devel:
        yield (
            f"config.finetune.keep: 'best', but setting {name!r} learns devel, which then chooses none; set 'all'"
        )
    if setting.lora and setting.reinit_layers:
        yield (
            f'{where}reinit_layers: {setting.reinit_layers}, but of an encoder with an adapter (lora_rank='
            f'{setting.lora_rank}) no layer is trained that begins at random; set one of them to 0'
        )
    if setting.head.endswith(('crf', 'span')) and setting.label_pieces != 'first':
        yield (
            f'{where}label_pieces: {setting.label_pieces!r}, but head={setting.head!r} reads the first pieces of '
            "words; set 'first'"
        )
    if setting.head.endswith('span') and setting.scheme != 'bio':
        yield f"{where}scheme: {setting.scheme!r}, but head={setting.head!r} finds mentions, not tags; set 'bio'"


class HasFinetune(HasTraining, Protocol):
    """What stage finetune reads of a configuration."""

    @property
    def finetune(self) -> Finetune: ...

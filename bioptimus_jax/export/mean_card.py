"""README.md of a mean of models: which models it is made of, how much each counts, and which licences apply."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData

from bioptimus_jax.export.card import bullets, facts_of_model, purpose_of, widget_of, with_article
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.export import Export, MergedModel

TAGS = ('merge', 'bioptimus-jax')
CARD = """---
{data}
---

# {title}, the mean of {number}

{a_title} {purpose}. Its weights are the weighted mean of those of {number}, made by `bioptimus merge` of bioptimus-jax.

## Use

```python
{code}```

## Model

{model}
## How it was made

{made}- What they were trained on, and how, is told by their own cards

## Limits

{limits}"""


def mean_card(architecture: Architecture, about: Export, folder: Path) -> str:
    """The card of the model in `folder`, front matter and text; `about`: what export.json says, `merged` among it."""
    models = about.merged or {}
    cards = [one.card for one in models.values()]
    purpose, number = purpose_of(architecture, folder), numbered(len(models), 'model')
    licences = dict.fromkeys(licence for one in cards for licence in _listed(one.license or 'not on record'))
    data = ModelCardData(
        language=_shared([one.language for one in cards]),
        license=_shared([one.license for one in cards]),
        library_name=purpose.library,
        pipeline_tag=purpose.pipeline,
        tags=[architecture.model_type, purpose.tag, *TAGS],
        base_model=[one.base_model for one in cards if one.base_model] or None,
        widget=widget_of(purpose, folder),
        ignore_metadata_errors=False,
    )
    limits = [
        f'It {purpose.does}',
        'It has learned whatever biases the texts have; they were not measured',
        'The mean itself has not been scored: the scores of the models are not its own',
        f'The licences of all {number} hold for it ({", ".join(licences)}); know them before you publish this folder',
    ]
    return CARD.format(
        data=data.to_yaml(),
        title=architecture.title,
        a_title=with_article(architecture.title),
        number=number,
        purpose=purpose.title,
        code=purpose.code,
        model=bullets(facts_of_model(architecture, about)),
        made=bullets([_told(name, one) for name, one in models.items()]),
        limits=bullets(limits),
    )


def _shared(said: Sequence[Any]) -> Any:
    """What the cards of all models say alike; None where they do not."""
    return said[0] if all(_listed(value) == _listed(said[0]) for value in said) else None


def _listed(said: Any) -> list[Any]:
    """What a card says as a list, as it may also say one thing."""
    return list(said) if isinstance(said, list | tuple) else [said]


def _told(name: str, one: MergedModel) -> str:
    """A model by its name on the hub or that of its folder, without the path, its weight and its checksum."""
    sums = [value for file, value in one.sha256.items() if file.endswith(('.safetensors', '.bin'))]
    called = one.card.base_model or Path(name).resolve().name
    return f'`{called}`, weight {one.weight:g}, weights with SHA-256 `{sums[0][:16]}…`'

"""Longformer (Beltagy et al. 2020, arXiv 2004.05150), as is Clinical-Longformer: RoBERTa with a window in every layer.

Pieces that attend to the whole document are chosen by each task; pre-training has none, so that the projections for
them stay as they are.
"""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from bioptimus_jax.config.bounds import LARGEST_SIZE
from bioptimus_jax.errors import InputError
from bioptimus_jax.model.families.roberta import Roberta, under
from bioptimus_jax.storage.files import JsonObject

WINDOW = 'attention_window'
GLOBAL = re.compile(
    r'(encoder\.layer\.\d+\.attention\.self\.(?:query|key|value))(_global)?(\.weight|\.bias)$'
)


@dataclasses.dataclass(frozen=True)
class Longformer(Roberta):
    """A Longformer with its masked-language-model head.

    `attention_windows`: for each layer the places that a piece attends to beside itself, half of them on either side;
    one number is that of all layers.
    """

    attention_windows: tuple[int, ...] = (512,)

    model_type: ClassVar = 'longformer'
    title: ClassVar = 'Longformer'
    hf_class: ClassVar = 'LongformerForMaskedLM'
    token_keys: ClassVar = {**Roberta.token_keys, 'sep_token_id': 'sep'}
    prefix: ClassVar = 'longformer.'
    modules: ClassVar = under('longformer', Roberta.modules)
    ignored: ClassVar = re.compile(f'{Roberta.ignored.pattern}|.*_global\\.')
    tied: ClassVar = under('longformer', Roberta.tied)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.attention_windows) not in (1, self.layers):
            raise ValueError(
                f'{WINDOW} has {len(self.attention_windows)} windows for {self.layers} layers; give one, or one a layer'
            )
        if len(set(self.attention_windows)) == 1:  # so that equal functions are equal
            object.__setattr__(self, 'attention_windows', self.attention_windows[:1])

    @classmethod
    def from_config(cls, values: JsonObject, file: Path) -> Self:
        """The architecture; config.json has one window, or a list with one for each layer."""
        given = values.get(WINDOW, cls.attention_windows[0])
        windows = given if isinstance(given, list) and given else [given]
        for window in windows:
            if type(window) is not int or window % 2 or not 0 < window <= LARGEST_SIZE:
                raise InputError(f'{file}: {WINDOW} is {str(given)[:40]}; even numbers above 0 are expected')
        made = super().from_config(values, file)
        try:
            return dataclasses.replace(made, attention_windows=tuple(windows))
        except ValueError as error:
            raise InputError(f'{file}: {error}') from error

    def to_config(self) -> JsonObject:
        return {**super().to_config(), WINDOW: [2 * window for window in self.windows]}

    @property
    def windows(self) -> tuple[int, ...]:
        of_all = self.attention_windows * self.layers
        return tuple(window // 2 for window in of_all[: self.layers])

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """The projections of pieces that attend to the whole document, and the pooler."""
        shapes = {self.tensor_name(path): shape for path, shape in self.shapes().items()}
        return {**super().untouched(), **_global(shapes)}

    def to_hf_tensors(self, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Tensors with projections of pieces that attend to the whole document, which begin as those of the others."""
        made = super().to_hf_tensors(tensors)
        return {**made, **_global(made)}


def _global(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """What each local projection has, by the name of the projection of pieces that attend to the whole document."""
    found = ((GLOBAL.search(name), name, value) for name, value in tensors.items())
    return {
        name[: part.end(1)] + '_global' + part[3]: value
        for part, name, value in found
        if part and not part[2]
    }


FAMILY = Longformer

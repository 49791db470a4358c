"""CamemBERT (Martin et al. 2020): a RoBERTa of French, which transformers knows by another name."""

import dataclasses
from typing import ClassVar

from bioptimus_jax.model.families.roberta import Roberta


@dataclasses.dataclass(frozen=True)
class CamemBert(Roberta):
    """A CamemBERT with its masked-language-model head."""

    model_type: ClassVar = 'camembert'
    title: ClassVar = 'CamemBERT'
    hf_class: ClassVar = 'CamembertForMaskedLM'


FAMILY = CamemBert

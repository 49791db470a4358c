"""XLM-RoBERTa (Conneau et al. 2020): a RoBERTa of a hundred languages, which transformers knows by another name."""

import dataclasses
from typing import ClassVar

from bioptimus_jax.model.families.roberta import Roberta


@dataclasses.dataclass(frozen=True)
class XlmRoberta(Roberta):
    """An XLM-RoBERTa with its masked-language-model head."""

    model_type: ClassVar = 'xlm-roberta'
    title: ClassVar = 'XLM-RoBERTa'
    hf_class: ClassVar = 'XLMRobertaForMaskedLM'


FAMILY = XlmRoberta

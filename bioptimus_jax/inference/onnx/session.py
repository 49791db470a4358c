"""A file of ONNX behind the arguments and outputs of a model of transformers, so that whatever asks one can ask it.

Shapes: B windows, L pieces of the longest window.
"""

import importlib.util
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.model.folder import config_values
from bioptimus_jax.records.onnx import OnnxForm
from bioptimus_jax.storage.files import read_json

GRAPH, ABOUT = 'model.onnx', 'onnx.json'
"""The graph of a folder, and the file that says what it takes and gives."""
PACKAGES = ('onnx', 'onnxscript', 'onnxruntime')
"""What the extra brings; to run a file the last one is enough."""
LOGITS, VECTORS = 'logits', 'vectors'
"""What a graph may give."""
ERRORS_ALONE = 3
"""The level of onnxruntime's log at which it is silent of nodes that it cannot fold."""
ANEW = 'export it again with --form=onnx'


def require_extra(packages: Sequence[str] = PACKAGES) -> None:
    """Raise ConfigError where one of these packages is not installed."""
    for name in packages:
        if importlib.util.find_spec(name) is None:
            raise ConfigError(
                f"models as ONNX need the package {name}, which is not installed; pip install 'bioptimus-jax[onnx]'"
            )


def form_of(folder: Path) -> OnnxForm | None:
    """What a folder says of the ONNX file in it; None where it is no such folder. Raises InputError for damage."""
    if (said := read_json(folder / ABOUT)) is None:
        return None
    form = OnnxForm.read(said, str(folder / ABOUT), ANEW)
    if lacking := sorted(name for name in form.bytes if not (folder / name).is_file()):
        raise InputError(f'{folder / lacking[0]}: is missing; restore it, or {ANEW}')
    return form


def opened(file: Path, threads: int) -> Any:
    """An InferenceSession on the CPU. Raises InputError for a file that onnxruntime refuses."""
    require_extra(PACKAGES[-1:])
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = ERRORS_ALONE
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=['CPUExecutionProvider'])
    except Exception as error:  # of its C++, whatever the file holds
        said = str(error).strip().splitlines()[0][:200]
        raise InputError(f'{file}: onnxruntime cannot read it ({said}); {ANEW}') from error


class OnnxModel(torch.nn.Module):
    """A graph in the place of a model of transformers: its arguments, its `logits`, its `config`.

    An argument that the graph takes and nobody gives is 0 everywhere, as in transformers; one that it does not take is
    left out.
    """

    def __init__(self, session: Any, config: Any, output: str = LOGITS) -> None:
        super().__init__()
        self.session, self.config, self.output = session, config, output
        self.inputs = tuple(one.name for one in session.get_inputs())
        self.device = torch.device('cpu')

    @property
    def base_model(self) -> 'OnnxModel':
        """Itself: an encoder without its head is not in the file."""
        return self

    def forward(self, input_ids: torch.Tensor, **others: torch.Tensor) -> Any:
        """An object with the output under its name."""
        arrays = {'input_ids': input_ids, **others}
        zeros_BxL = np.zeros(tuple(input_ids.shape), np.int64)
        given = {n: arrays[n].numpy().astype(np.int64) if n in arrays else zeros_BxL for n in self.inputs}
        [found] = self.session.run([self.output], given)
        return types.SimpleNamespace(**{self.output: torch.from_numpy(found)})


def load_onnx(folder: Path, hf_class: str, threads: int) -> tuple[OnnxModel, int] | None:
    """The model of a folder that has one as ONNX, and how many pieces a text may have; None for another folder.

    Raises InputError where it was not made for answers of this class.
    """
    import transformers

    if (form := form_of(folder)) is None:
        return None
    if (form.hf_class, form.output) != (hf_class, LOGITS):
        raise InputError(
            f'{folder / ABOUT}: the graph gives {form.output} of {form.hf_class}, no answers; README.md says how it is '
            'used'
        )
    config_values(folder)
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    return OnnxModel(opened(folder / GRAPH, threads), config), form.positions

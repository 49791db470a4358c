#!/usr/bin/env bash
# torch.onnx (torch 2.13.0, onnxscript 0.7.2): the file that it writes tells where the program lies, node by node.
#   - Every node has `pkg.torch.onnx.stack_trace` among its metadata, with the absolute paths of the source files of
#     the model, of this program too: the name of a user and of a project go wherever the file goes.
#   - They are most of the file of a small model, and neither `verbose=False` nor `optimize=True` leaves them out.
#   - Cleared before `save`, the file computes the same and no path is left.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install torch==2.13.0 numpy onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0
cd "$folder"
mkdir -p home-of-somebody/secret-project
cat > home-of-somebody/secret-project/model.py <<'PYTHON'
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(8))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x
PYTHON
cat > try.py <<'PYTHON'
import sys

import numpy as np
import onnxruntime
import torch

sys.path.insert(0, 'home-of-somebody/secret-project')
from model import Model

model, x = Model().eval(), torch.ones(2, 4)
sizes, found = {}, {}
for name in ('as it is', 'cleared'):
    program = torch.onnx.export(model, (x,), opset_version=18, dynamo=True, optimize=True, verbose=False)
    if name == 'cleared':
        for node in program.model.graph.all_nodes():
            node.metadata_props.clear()
    program.save(f'{name}.onnx')
    content = open(f'{name}.onnx', 'rb').read()
    sizes[name] = len(content)
    session = onnxruntime.InferenceSession(f'{name}.onnx')
    [found[name]] = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    told = content.count(b'home-of-somebody/secret-project/model.py')
    print(f'{name}: {len(content):,} bytes, the path of the model stands in it {told} times')
    assert bool(told) is (name == 'as it is'), 'other paths are written now'
assert sizes['as it is'] > 2 * sizes['cleared']
assert np.array_equal(*found.values())
PYTHON
env/bin/python try.py
echo 'As stated: paths of the machine that exported it are in the file, and can be taken out.'

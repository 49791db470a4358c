#!/usr/bin/env bash
# peft 0.21.2 (torch 2.13.0): HRA with `apply_GS=True` does not begin at the model that it adapts, and what it begins
# at is made of rounding errors.
#   - By default each second column of the adapter is a copy of the one before, so that two reflections cancel and
#     nothing is changed. Gram-Schmidt takes the one from the other, which leaves rounding errors, and scales these to
#     length 1.
#   - The output of a linear layer is changed by about its own length before any training, with apply_GS=False by
#     1e-7. A small BERT with HRA on query and value puts most texts into other classes.
#   - The matrix is not orthogonal, which is what HRA is for: rounding errors do not stand at right angles to the
#     column they are left of.
#   - Gradients are 10^8 times as large as without, and have the direction of the rounding errors. With float64 they
#     are 10^16 times as large, and the start is another one.
# The documentation says of apply_GS: "Whether to apply Gram-Schmidt orthogonalization", and of r that the
# initialization needs an even number. The default, 8, is one. With their usual initialization nearly all adapters of
# peft begin with the model as it is, and HRA does without apply_GS. Nothing is raised: the loss begins high and
# falls, as the model is learned again. No start with apply_GS can be at the model, for I - 2UU' is 2 sqrt(r) away
# from I. Remedy: no apply_GS; or init_weights=False, by which the matrix is at least orthogonal and gradients are as
# usual. Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install peft==0.21.2 torch==2.13.0 transformers==5.23.0 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
from importlib.metadata import version

import torch
from peft import HRAConfig, get_peft_model
from transformers import BertConfig, BertForSequenceClassification

print('peft', version('peft'), 'with torch', torch.__version__)


def start(dtype=torch.float32, size=64, **settings):
    """A linear layer at the start of HRA: its relative change, its matrix, and its largest gradient."""
    torch.manual_seed(0)
    base = torch.nn.Sequential(torch.nn.Linear(size, size)).to(dtype)
    inputs = torch.randn(5, size, dtype=dtype)
    before = base(inputs).detach()
    adapted = get_peft_model(base, HRAConfig(target_modules=['0'], **settings), autocast_adapter_dtype=False)
    after = adapted(inputs)
    (after**2).mean().backward()
    layer = adapted.base_model.model[0]
    change = float((after - before).norm().detach() / before.norm())
    return change, layer.get_delta_weight('default').detach(), float(layer.hra_u['default'].grad.abs().max())


def far(matrix):
    """How far it is from the identity, and its square from that of an orthogonal matrix."""
    one = torch.eye(len(matrix), dtype=matrix.dtype)
    return float((matrix - one).norm()), float((matrix @ matrix.T - one).norm())


for dtype in (torch.float32, torch.float64):
    slopes = []
    for orthogonal in (False, True):
        change, matrix, slope = start(dtype, apply_GS=orthogonal)
        distance, turned = far(matrix)
        print(f'{dtype}, apply_GS={orthogonal}: output changed by {change:.2g}, H is {distance:.2g} from I,', end=' ')
        print(f"HH' is {turned:.2g} from I, largest gradient {slope:.2g}")
        if orthogonal:
            assert change > 0.3 and turned > 0.1, 'it begins at the model now, or with an orthogonal matrix'
        else:
            assert change < 1e-5 and turned < 1e-4
        slopes.append(slope)
    assert slopes[1] / slopes[0] > (1e5 if dtype == torch.float32 else 1e12)

change, matrix, slope = start(apply_GS=True, init_weights=False)
distance, turned = far(matrix)
print(f'init_weights=False: output changed by {change:.2g}, H is {distance:.3g} from I,', end=' ')
print(f"HH' is {turned:.2g} from I, largest gradient {slope:.2g}")
assert turned < 1e-4 and abs(distance - 2 * 8**0.5) < 1e-3 and slope < 10

config = BertConfig(
    vocab_size=100,
    hidden_size=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    intermediate_size=128,
    num_labels=5,
    initializer_range=0.2,
)
words = torch.randint(5, 100, (200, 12), generator=torch.Generator().manual_seed(0))
for orthogonal in (False, True):
    torch.manual_seed(0)
    bert = BertForSequenceClassification(config).eval()
    with torch.no_grad():
        before = bert(words).logits.argmax(-1)
        settings = HRAConfig(task_type='SEQ_CLS', target_modules=['query', 'value'], apply_GS=orthogonal)
        after = get_peft_model(bert, settings).eval()(words).logits.argmax(-1)
    same = float((before == after).float().mean())
    print(f'BERT, apply_GS={orthogonal}: {same:.0%} of 200 texts keep their class at the start')
    assert same < 0.7 if orthogonal else same == 1
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: it begins with reflections that rounding made.'

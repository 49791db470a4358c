"""`bioptimus merge`: average several models' weights.

The mean of the weights of exported models of one shape and one vocabulary, for example of several seeds or
ends of decays, behind the same gate as an export.

reads:  Hugging Face folders, or hub ids
writes: one Hugging Face folder, with the tokenizer of the first; export.json says what it was made from

example:
  bioptimus merge runs/a/export/0.4 runs/b/export/0.4 --weights=1,2 --to=merged
"""

from pathlib import Path

from bioptimus_jax.cli.command import Command, Verb, described, flag, levels, needed
from bioptimus_jax.hosts.devices import present
from bioptimus_jax.hosts.remote.models import model_folder


def _call(command: Command) -> None:
    from bioptimus_jax.export.merge import merge  # imports jax
    from bioptimus_jax.model.compute import PLAIN_COMPUTE

    options, how = command.options, PLAIN_COMPUTE.words()
    print(
        f'merge: computes on {present()}, mesh one device, attention {how["attention"]}, type {how["type"]}'
    )
    folders = [model_folder(name, 'HF_FOLDER') for name in options.folders]
    measured = merge(folders, options.weights, Path(options.to))
    print(f'merge: {options.to} agrees with transformers, logits within {measured["logits"]:.1e}')


VERB = Verb(
    *described(__doc__),
    (
        ('folders', {'help': 'Hugging Face folders', 'nargs': '+', 'metavar': 'HF_FOLDER'}),
        needed('--to', 'folder to make', 'FOLDER'),
        flag('--weights', 'how much each counts (default: alike)', (), type=levels, metavar='A,B,...'),
    ),
    _call,
)

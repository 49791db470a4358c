"""`bioptimus merge`: the mean of models."""

from pathlib import Path

from bioptimus_jax.command import Command, Verb, flag, levels
from bioptimus_jax.hosts.devices import present


def _call(command: Command) -> None:
    from bioptimus_jax.export.merge import merge  # imports jax
    from bioptimus_jax.model.compute import PLAIN

    options, how = command.options, PLAIN.words()
    print(
        f'merge: computes on {present()}, mesh one device, attention {how["attention"]}, type {how["type"]}'
    )
    measured = merge([Path(name) for name in options.folders], options.weights, Path(options.to))
    print(f'merge: {options.to} agrees with transformers, logits within {measured["logits"]:.1e}')


VERB = Verb(
    'the mean of the weights of models',
    'The mean of the weights of exported models of one shape and one vocabulary, for example of several seeds or\n'
    'ends of decays, behind the same gate as an export.\n\n'
    'reads:  Hugging Face folders\n'
    'writes: one Hugging Face folder, with the tokenizer of the first; export.json says what it was made from\n\n'
    'example:\n  bioptimus merge runs/a/export/0.4 runs/b/export/0.4 --weights=1,2 --to=merged',
    (
        ('folders', {'help': 'Hugging Face folders', 'nargs': '+', 'metavar': 'HF_FOLDER'}),
        flag('--to', 'folder to make', None, required=True, metavar='FOLDER'),
        flag('--weights', 'how much each counts (default: alike)', (), type=levels, metavar='A,B,...'),
    ),
    _call,
)

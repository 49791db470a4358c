"""`bioptimus rebuild`: build public sets of texts from their originals.

A public set of texts from its original files, as its authors made it: the public files byte for byte, where
there are any. Other originals are refused. Entities can be left in the text, with or without markers.

reads:  the original files, packed or not, anywhere in a folder
writes: DIR/SET/{train,devel,test}.tsv; with --input or --fold DIR/SET-markers, DIR/SET-fold2 and so on

example:
  bioptimus rebuild --set=chemprot --from=ChemProt_Corpus --to=blurb
"""

from pathlib import Path

from bioptimus_jax.cli.command import Command, Verb, count, described, flag, needed
from bioptimus_jax.config.plugins import meanings
from bioptimus_jax.errors import printable
from bioptimus_jax.rebuild.originals import BUILDERS
from bioptimus_jax.run.session import require_local
from bioptimus_jax.sets.inputs import INPUTS


def _call(command: Command) -> None:
    from bioptimus_jax.rebuild.rebuild import rebuild  # imports pyarrow

    options = command.options
    require_local('--to', options.to)
    originals, root = Path(options.originals), Path(options.to)
    print(printable('\n'.join(rebuild(options.set, originals, root, options.input, options.fold))))


VERB = Verb(
    *described(__doc__),
    (
        flag('--set', 'one of: %(choices)s', None, required=True, choices=BUILDERS, metavar='SET'),
        flag('--from', 'folder of the originals', None, required=True, dest='originals', metavar='FOLDER'),
        needed('--to', 'folder of sets, created if missing', 'DIR'),
        flag(
            '--input',
            meanings(INPUTS) + ' (default: %(default)s)',
            next(iter(INPUTS)),
            choices=tuple(INPUTS),
            metavar='FORM',
        ),
        count('--fold', 'fold of gad, 1 to 10 (default: %(default)s)', 1),
    ),
    _call,
)

"""`bioptimus push`: upload an export, a kept model or a report to the Hugging Face hub.

Lists what would be sent and, with --yes, sends it in one commit; no other verb sends anything.
A folder is sent as its stage left it: another file in it, a link, a changed file, something like a token,
a model without a card and an unfinished stage are refused. You may edit the card (README.md) first.

WHAT:   RUN/export/PHASE, a fine-tuned model that was kept, a merged model, a run with one of these; or
        RUN/report; or a card alone, RUN/report/cards/PHASE.md, which becomes the README.md there
reads:  WHAT, and the token in HF_TOKEN; HF_ENDPOINT for a hub of your own
writes: to the hub alone; other files of the repository stay

examples:
  bioptimus push runs/mine/export/0.4 --to=hf://OWNER/NAME --private
  bioptimus push runs/mine/report --to=hf://spaces/OWNER/NAME --yes
"""

from pathlib import Path

from bioptimus_jax.cli.command import USE, Command, Verb, described, flag, needed, switch
from bioptimus_jax.errors import printable


def _call(command: Command) -> None:
    from bioptimus_jax.cli.push import destination, parcel, send  # imports the client

    options = command.options
    made = parcel(Path(options.what))
    name = destination(options.to, made.kind)
    print(printable('\n'.join(made.lines(options.to, options.private))), flush=True)
    done = (
        send(made, name, options.private)
        if options.yes
        else 'nothing was sent; add --yes to send these files'
    )
    print(printable(f'push: {done}'))


VERB = Verb(
    *described(__doc__),
    (
        flag('what', 'what is sent', None, metavar='WHAT'),
        needed('--to', 'target: hf://OWNER/NAME; for a report hf://spaces/OWNER/NAME', 'URL'),
        switch('--private', 'make the repository private'),
        switch('--yes', 'send it'),
    ),
    _call,
    group=USE,
)

"""`bioptimus push`: upload an export, a kept model or a report to the Hugging Face hub.

Lists what would be sent and, with --yes, sends it in one commit; no other verb sends anything.
A folder is sent as its stage left it: another file in it, a link, a changed file, something like a token,
a model without a card and an unfinished stage are refused. You may edit the card (README.md) first.

The card that is sent says how to use the model from where it is: its code gets the files of that branch or tag.

WHAT:   RUN/export/PHASE, a fine-tuned model that was kept, a merged model, one as ONNX, a run with one of these; or
        RUN/report; or a card alone, RUN/report/cards/PHASE.md, which becomes the README.md there
reads:  WHAT, and the token in HF_TOKEN; HF_ENDPOINT for a hub of your own
writes: to the hub alone; other files of the repository stay

examples:
  bioptimus push runs/mine/export/0.4 --to=hf://OWNER/NAME --private
  bioptimus push runs/mine/export/0.4 --to=hf://OWNER/NAME@dev --tag=v1 --yes
  bioptimus push runs/mine/export/0.4-adapter --to=hf://OWNER/NAME-adapter --base=OWNER/NAME
  bioptimus push runs/mine/report --to=hf://spaces/OWNER/NAME --yes
"""

from pathlib import Path

from bioptimus_jax.cli.command import USE, Command, Verb, described, flag, needed, switch
from bioptimus_jax.errors import printable


def _call(command: Command) -> None:
    from bioptimus_jax.cli.push import destination, parcel, send  # imports the client

    options = command.options
    made = parcel(Path(options.what))
    place = destination(options.to, options.tag, made.kind)
    made = made.for_place(place, options.base)
    print(printable('\n'.join(made.lines(options.to, options.private))), flush=True)
    done = (
        send(made, place, options.private)
        if options.yes
        else 'nothing was sent; add --yes to send these files'
    )
    print(printable(f'push: {done}'))


VERB = Verb(
    *described(__doc__),
    (
        flag('what', 'what is sent', None, metavar='WHAT'),
        needed(
            '--to',
            'target: hf://OWNER/NAME, or hf://OWNER/NAME@BRANCH, which is made if it is not there; for a report '
            'hf://spaces/OWNER/NAME',
            'URL',
        ),
        flag('--tag', 'a tag for the commit, by which it can be read for ever', '', metavar='NAME'),
        flag('--base', 'the model of the hub that an adapter is for', '', metavar='OWNER/NAME'),
        switch('--private', 'make the repository private'),
        switch('--yes', 'send it'),
    ),
    _call,
    group=USE,
)

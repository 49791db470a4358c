"""TensorBoard: events in WORKDIR/tensorboard."""

from collections.abc import Mapping
from pathlib import Path

from bioptimus_jax.progress.tracker import Tracker, Write


def opened(workdir: Path, settings: Mapping[str, str]) -> Write:
    """What writes into an event file in the folder."""
    from tensorboardX import SummaryWriter

    # Its `flush` does not wait for the thread that writes, which by default does so every two minutes.
    events = SummaryWriter(str(workdir / 'tensorboard'), flush_secs=1)

    def write(stage: str, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            events.add_scalar(name, value, step)

    return write


TRACKER = Tracker('tensorboardX', opened)

"""The Trainer of transformers that calls a collator: whether it evaluates, how far it is, and in which process.

The Trainer has one collator for training and evaluation, and tells it nothing. It is found among the callers; in a
worker that is forked they are those of the process that made it.
"""

import sys
import weakref
from typing import Any, NamedTuple

EVALUATES = ('evaluation_loop', 'prediction_loop')
"""Methods of a Trainer that score a data set."""


class Moment(NamedTuple):
    """`batches`: what this process has trained on, None without a Trainer. `run`: its state, one for each training."""

    evaluates: bool = False
    batches: int | None = None
    rank: int = 0
    run: Any = None


def moment() -> Moment:
    """What the callers of this function say."""
    known: Any = getattr(sys.modules.get('transformers.trainer'), 'Trainer', None)
    frame = sys._getframe(1) if known else None
    while frame is not None:
        trainer = frame.f_locals.get('self')
        if isinstance(trainer, known):
            return _of(trainer, _evaluates(frame, trainer))
        frame = frame.f_back
    return Moment(rank=_rank())


def _evaluates(frame: Any, trainer: Any) -> bool:
    """Whether the innermost of the Trainer's loops, seen from a frame, is one of evaluation."""
    while frame is not None:
        if frame.f_locals.get('self') is trainer and frame.f_code.co_name in EVALUATES:
            return True
        frame = frame.f_back
    return False


def _of(trainer: Any, evaluates: bool) -> Moment:
    state, loader = trainer.state, trainer.callback_handler.train_dataloader
    try:
        done = round((state.epoch or 0) * len(loader))
    except TypeError:  # a stream has no known length
        done = state.global_step * trainer.args.gradient_accumulation_steps
    return Moment(evaluates, done, trainer.args.process_index, weakref.ref(state))


def _rank() -> int:
    """The number of this process among those that train together."""
    import torch  # late: what masks with numpy alone does without

    together = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_rank() if together else 0

"""What stage surgery has made of a model, by its records: rows of tokens, parameters that the source does not have."""

import dataclasses
from pathlib import Path

import numpy as np

from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.records.surgery import COPIED, SurgeryReport, TokenRow
from bioptimus_jax.storage.files import read_json
from bioptimus_jax.surgery.account import FRESH, REPORT, SYNTHESISED, TOKENS_FILE


@dataclasses.dataclass(frozen=True)
class Made:
    """Tokens, by their ids, whose rows were made, and `whole` parameters, by their paths, as of a head."""

    tokens: np.ndarray
    whole: tuple[str, ...] = ()


NOTHING_MADE = Made(np.zeros(0, np.int32))


def made_in(folder: Path, architecture: Architecture) -> Made:
    """What was made of a model of that shape, by the records of the finished stage in a folder. Raises InputError."""
    file = folder / REPORT
    report = SurgeryReport.read(read_json(file), str(file))
    new = [row.id for row in TokenRow.read_lines(folder / TOKENS_FILE) if row.kind != COPIED]
    # What has a row for every token was made where new tokens are, but for that of a head which the source lacks.
    whole = [path for path in report.parameters[SYNTHESISED] if path not in architecture.padded]
    whole += [path for path in report.parameters[FRESH] if path != architecture.table]
    return Made(np.array(new, np.int32), tuple(whole))

"""The configurations that are shipped."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def shipped_configs() -> list[str]:
    """NAME or NAME:ARGUMENT for everything under configs/; each file lists its arguments in ARGUMENTS."""
    names = []
    for file in sorted((ROOT / 'configs').glob('*.py')):
        arguments = runpy.run_path(str(file))['ARGUMENTS']
        names += [f'{file.stem}:{argument}' if argument else file.stem for argument in arguments]
    return names

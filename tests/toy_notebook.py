"""A notebook, executed as its reader does: the cells in order, in one namespace, each with what it prints.

`python tests/toy_notebook.py docs/python.ipynb` writes what they print into the notebook.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path


def execute(file: Path, folder: Path) -> tuple[dict, dict]:
    """The notebook with the outputs of its code cells, and the namespace that they leave; run within a folder."""
    notebook, namespace = json.loads(file.read_text('utf-8')), {'__name__': '__main__'}
    with contextlib.chdir(folder):
        for number, cell in enumerate(code_cells(notebook), 1):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(''.join(cell['source']), f'{file.name}, cell {number}', 'exec'), namespace)
            lines = printed.getvalue().splitlines(keepends=True)
            stream = {'name': 'stdout', 'output_type': 'stream', 'text': lines}
            cell.update(execution_count=number, outputs=[stream] if lines else [])
    return notebook, namespace


def code_cells(notebook: dict) -> list[dict]:
    return [cell for cell in notebook['cells'] if cell['cell_type'] == 'code']


if __name__ == '__main__':
    os.environ['HF_HUB_OFFLINE'] = '1'
    with tempfile.TemporaryDirectory() as name:
        made, _ = execute(Path(sys.argv[1]), Path(name))
    Path(sys.argv[1]).write_text(json.dumps(made, indent=1, ensure_ascii=False) + '\n', 'utf-8')

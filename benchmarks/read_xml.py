"""Two readers of PubMed XML; as a program one of them, for corpus.py, in a process that holds nothing else.

python benchmarks/read_xml.py {ours,pubmed_parser} FILE...
"""

import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from protocol import resident_mb, serve


def our_records(path: Path, **settings: Any) -> Iterator[Any]:
    """The records of a file as the stage reads them; `settings` are keys of config.corpus."""
    from bioptimus_jax.corpus import build, readers
    from bioptimus_jax.corpus.config import Corpus

    assert build  # the stage's workers have it in memory, too
    return readers.read_file(path, path.name, Corpus(**settings))


def their_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file as pubmed_parser reads them."""
    import pubmed_parser

    return pubmed_parser.parse_medline_xml(str(path))


READERS = {'ours': our_records, 'pubmed_parser': their_records}


def main() -> None:
    read, files = READERS[sys.argv[1]], itertools.cycle(map(Path, sys.argv[2:]))
    next(iter(read(Path(sys.argv[2]))))  # everything is imported

    def step() -> dict[str, Any]:
        path = next(files)
        started = time.perf_counter()
        records = sum(1 for _ in read(path))
        seconds = time.perf_counter() - started
        return {'seconds': seconds, 'file': path.name, 'records': records, 'peak_mb': resident_mb(peak=True)}

    serve(step, {'imports_mb': resident_mb(peak=True)})


if __name__ == '__main__':
    main()

"""What a section of the page is: a heading with tables and figures, each made from a run's measures."""

import dataclasses
from collections.abc import Callable

from bioptimus_jax.report.drawing import Figure
from bioptimus_jax.report.layout import Table
from bioptimus_jax.report.measures import Measures

Tables = dict[str, Callable[[Measures], Table]]
"""Name of a table, and of its CSV file -> what makes it."""


@dataclasses.dataclass(frozen=True)
class Section:
    """A heading and what is under it; `folded` tables open on a click, `stages` are those that fill the section."""

    title: str
    lead: str
    stages: tuple[str, ...]
    tables: Tables = dataclasses.field(default_factory=dict)
    figures: tuple[Callable[[Measures], Figure], ...] = ()
    folded: Tables = dataclasses.field(default_factory=dict)

"""What a section of the page is: a heading with tables and figures, each made from a run's measures."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.report.drawing import Figure
from bioptimus_jax.report.layout import Table
from bioptimus_jax.report.measures import Measures

Tables = dict[str, Callable[[Measures], Table]]
"""Name of a table, and of its CSV file -> what makes it."""


@dataclasses.dataclass(frozen=True)
class Section:
    """A heading and what is under it; `folded` tables open on a click, `stages` are those that fill the section.

    `for_users`: it stands open on the page of a run; of others, which only a researcher reads, the heading does.
    `after`: the file of the section that it follows, for one that the page's order does not name; '': at the end.
    """

    title: str
    lead: str
    stages: tuple[str, ...]
    tables: Tables = dataclasses.field(default_factory=dict)
    figures: tuple[Callable[[Measures], Figure], ...] = ()
    folded: Tables = dataclasses.field(default_factory=dict)
    after: str = ''
    for_users: bool = False


@dataclasses.dataclass(frozen=True)
class Addition:
    """Tables for a section of another file, `to`, behind its table of the name `after`."""

    to: str
    after: str
    tables: Tables

    def within(self, section: Section) -> Section:
        """The section with these tables in it."""
        names = list(section.tables)
        at = names.index(self.after) + 1
        order = [*names[:at], *self.tables, *names[at:]]
        both = section.tables | self.tables
        return dataclasses.replace(section, tables={name: both[name] for name in order})

    def fits(self, sections: Mapping[str, Section]) -> bool:
        """Whether the place of these tables is there yet."""
        return self.to in sections and self.after in sections[self.to].tables


def arranged(order: Sequence[str], found: Mapping[str, Section | Addition]) -> dict[str, Section]:
    """Sections by their files: those that `order` names, with all others where they say that they stand.

    Raises ConfigError for a place that is not there.
    """
    placed = {name: one for name in order if isinstance(one := found[name], Section)}
    waiting = {name: one for name, one in found.items() if name not in order}
    while waiting:
        fitting = [name for name, one in waiting.items() if _fits(one, placed)]
        if not fitting:
            name, one = next(iter(waiting.items()))
            where = one.after if isinstance(one, Section) else f'{one.after} of {one.to}'
            raise ConfigError(f'section {name} of the page is to stand after {where}, which is not there')
        for name in fitting:
            one = waiting.pop(name)
            placed = _with(one, name, placed)
    return placed


def _fits(one: Section | Addition, placed: Mapping[str, Section]) -> bool:
    return one.fits(placed) if isinstance(one, Addition) else not one.after or one.after in placed


def _with(one: Section | Addition, name: str, placed: Mapping[str, Section]) -> dict[str, Section]:
    if isinstance(one, Addition):
        return {**placed, one.to: one.within(placed[one.to])}
    names = list(placed)
    at = names.index(one.after) + 1 if one.after else len(names)
    both = {**placed, name: one}
    return {file: both[file] for file in [*names[:at], name, *names[at:]]}

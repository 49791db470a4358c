"""A section of the page: the stages of the run, the slowest first."""

from bioptimus_jax.ext import Column, Measures, Section, Table, fixed, words


def slowest(m: Measures) -> Table:
    """Every finished stage and its seconds."""
    seconds = {name: made.seconds for name, made in m.manifests.items() if made.seconds is not None}
    columns = [
        Column('stage', lambda name: words(name)),
        Column('seconds', lambda name: fixed(seconds[name], 1)),
    ]
    return Table.of('The slowest stages', columns, sorted(seconds, key=seconds.get, reverse=True))


SECTION = Section('What took longest', 'The stages by their time.', (), {'slowest': slowest})

"""What `bioptimus forecast` says: a table of candidates, of the check, and which to take."""

import dataclasses
from collections.abc import Mapping, Sequence

from bioptimus_jax.errors import InputError
from bioptimus_jax.forecast.check import GROUP, GROUPS, check
from bioptimus_jax.forecast.curves import Curve, curve_of
from bioptimus_jax.forecast.final import Forecast, chances, forecast, outside
from bioptimus_jax.report.layout import Cell, Column, Table, each, fixed, missing, percent
from bioptimus_jax.report.records import named
from bioptimus_jax.report.resolved import read_runs

HOPELESS = 0.05
"""A run that ends lowest with a smaller chance may stop."""


@dataclasses.dataclass(frozen=True)
class Told:
    """Tables, and what follows from them."""

    tables: tuple[Table, ...]
    said: str


def tell(folders: Sequence[str], shares: Sequence[float] = ()) -> Told:
    """Of runs and sweeps: forecasts of those that are not finished; with `shares`, a check by those that are.

    Raises InputError for folders without runs, and where too few are finished.
    """
    every = {name: curve_of(name, m) for name, m in named(read_runs(folders)).items()}
    curves = [one for one in every.values() if one]
    finished = [one for one in curves if one.finished]
    started = [one for one in curves if not one.finished]
    if shares:
        return Told(checks(finished, shares), '')
    if not started:
        raise InputError(
            f'none of these {len(every)} runs is under way ({len(finished)} are finished), so there is nothing to '
            'forecast; --check=0.1 shows how well the ends of finished runs would have been told'
        )
    waiting = [name for name, one in every.items() if not one]
    told = [forecast(one, finished) for one in started]
    ended = min((Forecast(one, float(one.losses_N[-1]), 0.0) for one in finished), key=lambda f: f.comparable)
    found = sorted([*told, ended], key=lambda f: f.comparable)
    likely = dict(zip((f.curve.name for f in found), map(float, chances(found)), strict=True))
    return Told((_candidates(found, likely, finished, waiting),), _advice(found, likely))


def checks(finished: Sequence[Curve], shares: Sequence[float]) -> tuple[Table, Table]:
    """Of finished runs the losses after such shares of the steps and at the end, and how well that end is told."""
    rows = [row for share in shares for row in check(finished, share)]
    losses = [
        Column('run', lambda one: one.name),
        *each({share: f'after {share:.0%}' for share in shares}, lambda x, one: fixed(one.at(x)), 'low'),
        Column('at the end', lambda one: fixed(float(one.losses_N[-1])), 'low'),
    ]
    columns = [
        Column('of the steps', lambda r: percent(r.share, 0)),
        Column('by', lambda r: r.way),
        Column('error', lambda r: percent(r.error, 2)),
        Column('within 1 %', lambda r: percent(r.within, 0)),
        Column('in the interval', lambda r: percent(r.inside, 0)),
        Column("Kendall's tau", lambda r: fixed(r.tau, 2)),
        Column('winner right', lambda r: percent(r.right, 0)),
        Column('nats lost', lambda r: fixed(r.lost)),
    ]
    note = (
        f'Means over {GROUPS} groups of {GROUP} arms, each forecast from the finished runs of all other arms. Nats '
        'lost: what the arm that would be taken ends above the lowest of its group.'
    )
    return (
        Table.of('Held-out loss', losses, finished, note='In nats a piece.'),
        Table.of('How well the end is told', columns, rows, note=note),
    )


def _candidates(
    found: Sequence[Forecast], likely: Mapping[str, float], finished: Sequence[Curve], waiting: Sequence[str]
) -> Table:
    several = len({round(f.curve.unit, 4) for f in found}) > 1
    columns = [
        Column('run', lambda f: f.curve.name),
        Column('of its steps', lambda f: percent(f.curve.share, 1)),
        Column('held-out loss', lambda f: fixed(float(f.curve.losses_N[-1]))),
        Column('at the end', lambda f: fixed(f.final), 'low', when=not several),
        Column('low', lambda f: fixed(f.final - f.half)),
        Column('high', lambda f: fixed(f.final + f.half)),
        Column('nats a word', lambda f: fixed(f.comparable), 'low', when=several),
        Column('ends lowest', lambda f: percent(likely[f.curve.name], 0)),
        Column('hours to go', lambda f: _hours(f.curve)),
    ]
    note = (
        f'At the end: expected from {len(finished)} finished runs, with its 95 % interval, in nats a piece; the lowest '
        'of the finished runs is a row, too.'
    )
    if new := outside([f.curve for f in found], finished):
        note += f' Outside what finished runs have: {", ".join(new)}; these intervals are too narrow.'
    if several:
        note += ' The vocabularies differ, so runs are ranked by the loss of a piece times pieces a word.'
    if waiting:
        note += f' Not started, or from an older record without the steps to come: {", ".join(waiting)}.'
    return Table.of('Forecast', columns, found, note=note)


def _hours(curve: Curve) -> Cell:
    left = len(curve.rates_T) - int(curve.steps_N[-1])
    return fixed(left * curve.seconds / 3600, 2) if curve.seconds else missing()


def _advice(found: Sequence[Forecast], likely: Mapping[str, float]) -> str:
    first = max(found, key=lambda f: likely[f.curve.name])
    name, chance = first.curve.name, likely[first.curve.name]
    stop = [f.curve.name for f in found if likely[f.curve.name] < HOPELESS and not f.curve.finished]
    said = f'Continue {name}: it ends lowest with a chance of {chance:.0%}.'
    if first.curve.finished:
        said = f'Take {name}, which has ended: no other ends lower, with a chance of {chance:.0%}.'
    if stop:
        said += f' Below {HOPELESS:.0%}: {", ".join(stop)}.'
    return said

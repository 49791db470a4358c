"""What `bioptimus forecast` says: a table of candidates, of the check, and which to take."""

import dataclasses
from collections.abc import Mapping, Sequence

from bioptimus_jax.errors import InputError
from bioptimus_jax.lab.forecast.check import GROUP, GROUPS, check, check_shorts
from bioptimus_jax.lab.forecast.curves import Curve, curves_of
from bioptimus_jax.lab.forecast.final import Forecast, chances, forecast, outside
from bioptimus_jax.lab.forecast.short import Shorts, shorts
from bioptimus_jax.progress.console import numbered
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


def tell(folders: Sequence[str], shares: Sequence[float] = (), short: Sequence[str] = ()) -> Told:
    """Forecasts of runs, of sweeps too, that are not finished; with `shares`, a check by those that are.

    With folders of `short` runs, forecasts are made from these and not from first steps, also for runs that have not
    started. Raises InputError for folders without runs, and where too few are finished.
    """
    runs = named(read_runs(folders))
    curves = curves_of(runs)
    whole = {name: one for name, one in curves.items() if one.finished}
    finished = list(whole.values())
    found = shorts(runs, whole, named(read_runs(short))) if short else None
    if shares:
        return Told(checks(finished, shares, [found] if found else []), '')
    if found and not found.candidates:
        raise InputError(
            f'every short run has a finished long one ({len(found.known)}), so there is nothing to forecast; '
            '--check=0.1 shows how well these ends would have been told'
        )
    if found:
        return _told(found.known, found.candidates, [], found)
    started = [one for name, one in curves.items() if name not in whole]
    if not started:
        raise InputError(
            f'of {numbered(len(runs), "run")} none is under way (finished: {len(finished)}), so there is nothing to '
            'forecast; --check=0.1 shows how well the ends of finished runs would have been told'
        )
    return _told(finished, started, [name for name in runs if name not in curves], None)


def _told(
    finished: Sequence[Curve], candidates: Sequence[Curve], waiting: Sequence[str], found: Shorts | None
) -> Told:
    """Candidates and the lowest of the finished runs, in the order of their ends."""
    told = [forecast(one, finished) for one in candidates]
    ended = min((Forecast(one, one.final, 0.0, open=False) for one in finished), key=lambda f: f.comparable)
    ranked = sorted([*told, ended], key=lambda f: f.comparable)
    likely = dict(zip((f.curve.name for f in ranked), map(float, chances(ranked)), strict=True))
    return Told((_candidates(ranked, likely, finished, waiting, found),), _advice(ranked, likely, found))


def checks(
    finished: Sequence[Curve], shares: Sequence[float], short: Sequence[Shorts] = ()
) -> tuple[Table, Table]:
    """Losses of finished runs after such shares of the steps and at the end, and how well that end is told.

    `short`: their short runs, of one length or of several.
    """
    rows = [row for share in shares for row in check(finished, share)]
    rows += [row for found in short for row in check_shorts(found)]
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
    ranked: Sequence[Forecast],
    likely: Mapping[str, float],
    finished: Sequence[Curve],
    waiting: Sequence[str],
    found: Shorts | None,
) -> Table:
    several = len({round(f.curve.unit, 4) for f in ranked}) > 1
    columns = [
        Column('run', lambda f: f.curve.name),
        Column('of its steps', lambda f: percent(f.curve.share, 1), when=not found),
        Column('short run' if found else 'held-out loss', lambda f: fixed(float(f.curve.losses_N[-1]))),
        Column('at the end', lambda f: fixed(f.final), 'low', when=not several),
        Column('low', lambda f: fixed(f.final - f.half)),
        Column('high', lambda f: fixed(f.final + f.half)),
        Column('nats a word', lambda f: fixed(f.comparable), 'low', when=several),
        Column('ends lowest', lambda f: percent(likely[f.curve.name], 0)),
        Column('hours to go', lambda f: _hours(f, found)),
    ]
    note = (
        f'At the end: expected from {len(finished)} finished runs, with its 95 % interval, in nats a piece; the lowest '
        'of the finished runs is a row, too.'
    )
    if found:
        note += f' Short run: its final loss, after {found.share:.1%} of the steps of a long run.'
    if new := outside([f.curve for f in ranked], finished):
        note += f' Outside what finished runs have: {", ".join(new)}; these intervals may be too narrow.'
    if several:
        note += ' The vocabularies differ, so runs are ranked by the loss of a piece times pieces a word.'
    if waiting:
        note += f' Without a planned path on record, as before a start: {", ".join(waiting)}.'
    return Table.of('Forecast', columns, ranked, note=note)


def _hours(told: Forecast, found: Shorts | None) -> Cell:
    curve = told.curve
    left = found.steps if found else len(curve.rates_T) - int(curve.steps_N[-1])
    return fixed(left * told.open * curve.seconds / 3600, 2) if curve.seconds else missing()


def _advice(ranked: Sequence[Forecast], likely: Mapping[str, float], found: Shorts | None) -> str:
    first = max(ranked, key=lambda f: likely[f.curve.name])
    name, chance = first.curve.name, likely[first.curve.name]
    stop = [f.curve.name for f in ranked if likely[f.curve.name] < HOPELESS and f.open]
    said = f'{"Train" if found else "Continue"} {name}: it ends lowest with a chance of {chance:.0%}.'
    if not first.open:
        said = f'Take {name}, which has ended: no other ends lower, with a chance of {chance:.0%}.'
    if stop:
        said += f' Below {HOPELESS:.0%}: {", ".join(stop)}.'
    return said

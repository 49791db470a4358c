"""A tracker that appends every number as a line of CSV, for a spreadsheet."""

import csv

from bioptimus_jax.ext import Tracker


def opened(workdir, settings):
    """What writes into WORKDIR/numbers.csv."""

    def write(stage, step, values):
        with open(workdir / 'numbers.csv', 'a', newline='') as file:
            csv.writer(file).writerows((stage, step, name, value) for name, value in values.items())

    return write


TRACKER = Tracker('csv', opened)

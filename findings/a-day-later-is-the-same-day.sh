#!/usr/bin/env bash
# fhirpathpy 2.2.4 (FHIRPath, the query language for FHIR data): what is added to a time with an offset from UTC comes
# out in UTC, without an offset. The day may be wrong, and later comparisons depend on the clock of the machine.
#   - `@2026-01-01T00:30:00+02:00 + 1 day` is 2026-01-01T22:30:00, which reads as the same day. By the specification it
#     is 2026-01-02T00:30:00+02:00. In New York, `@2026-01-01T22:00:00-05:00 + 1 day` is the third of January.
#   - A month is counted from the day in UTC. `@2026-01-31T22:00:00-05:00 + 1 month` is 2026-03-01T03:00:00. The last
#     day of February, at 22:00, is right.
#   - `@2026-01-01T22:00:00-05:00 + 0 days = @2026-01-01T22:00:00-05:00` is true on a machine with UTC, and false on
#     one in New York or Tokyo. A day after 22:00 on the first is before 23:00 on the second with UTC and in Tokyo, and
#     it is not in New York. So it is for times in the expression. A stay of 25 hours in a record, by the same times, is
#     not longer than a day on any of the three: `start + 1 day < end` is false.
# The reason: the offset is taken off before the sum, and the result is written without one. Without an offset a time
# is taken for that of the machine when it is compared.
# FHIR asks for an offset wherever a time of day is given, so it is the rule in records. The specification keeps the
# precision and the offset of the left side. Nothing is raised. It hurts whoever checks intervals by FHIRPath, such as
# a visit within 30 days or a stay of more than a day. Remedy: compute such times elsewhere, or write them with `Z` and
# run the program with TZ=UTC.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install fhirpathpy==2.2.4 antlr4-python3-runtime==4.13.2 \
    python-dateutil==2.9.0.post0 six==1.17.0
"$folder/env/bin/python" - <<'PYTHON'
import os
import time
from datetime import datetime, timedelta
from importlib.metadata import version

from dateutil.relativedelta import relativedelta
from fhirpathpy import evaluate
from fhirpathpy.models import models

print('fhirpathpy', version('fhirpathpy'))


def ask(expression, resource=None):
    return evaluate(resource or {}, expression, None, models['r4'])


DAY, MONTH = timedelta(days=1), relativedelta(months=1)
for start, unit, step, seen, right in (
    ('2026-01-01T00:30:00+02:00', '1 day', DAY, '2026-01-01T22:30:00', '2026-01-02T00:30:00+02:00'),
    ('2026-01-01T22:00:00-05:00', '1 day', DAY, '2026-01-03T03:00:00', '2026-01-02T22:00:00-05:00'),
    ('2026-01-31T22:00:00-05:00', '1 month', MONTH, '2026-03-01T03:00:00', '2026-02-28T22:00:00-05:00'),
    ('2026-01-01T22:00:00', '1 day', DAY, '2026-01-02T22:00:00', '2026-01-02T22:00:00'),
):
    found, hand = ask(f'@{start} + {unit}'), (datetime.fromisoformat(start) + step).isoformat()
    print(f'{start} + {unit}: {found[0]}, by hand {hand}')
    assert found == [seen], 'sums of times have changed'
    assert hand == right

stay = {'resourceType': 'Encounter', 'status': 'finished', 'class': {'code': 'IMP'},
        'period': {'start': '2026-01-01T22:00:00-05:00', 'end': '2026-01-02T23:00:00-05:00'}}
start, end = (datetime.fromisoformat(stay['period'][name]) for name in ('start', 'end'))
assert end - start == timedelta(hours=25) and start + DAY < end
answers = {}
for zone, clock in (('UTC', 'UTC0'), ('New York', 'EST5EDT,M3.2.0,M11.1.0'), ('Tokyo', 'JST-9')):
    os.environ['TZ'] = clock
    time.tzset()
    equal = ask('@2026-01-01T22:00:00-05:00 + 0 days = @2026-01-01T22:00:00-05:00')[0]
    longer = ask('Encounter.period.start + 1 day < Encounter.period.end', stay)
    later = ask('@2026-01-01T22:00:00-05:00 + 1 day < @2026-01-02T23:00:00-05:00')[0]
    without = ask('@2026-01-02T22:00:00-05:00 < @2026-01-02T23:00:00-05:00')[0]
    print(f'{zone}: equal after 0 days {equal}, 25 hours longer than a day {longer}, by literals {later}')
    answers[zone] = equal, later
    assert longer == [False] and without is True, 'records are compared otherwise now'
assert answers == {'UTC': (True, True), 'New York': (False, False), 'Tokyo': (False, True)}, answers
PYTHON
echo 'As stated: sums of times lose their offset.'

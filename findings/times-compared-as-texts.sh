#!/usr/bin/env bash
# fhirpathpy 2.2.4 (FHIRPath, the query language for FHIR data): two times of a record are compared as texts, letter by
# letter, whatever their offsets from UTC are. Of times written in the expression the comparison is right.
#   - A stay from 02:30 to 02:10 in the night when the clocks go back (+02:00 and +01:00) is 40 minutes long. FHIR's
#     rule for periods, `start <= end`, is false.
#   - A result taken at 10:00+02:00 and issued at 08:20Z, twenty minutes later, is issued before it was taken. One that
#     is issued at 08:00Z, the same moment, has another time: `effective = issued` is false.
#   - 1000 results, each issued 5 to 240 minutes after it was taken, with the time taken in local time (+02:00) and the
#     other in UTC: `effective <= issued` is false for 493, which are those issued within two hours.
#   - From `2026-01-15` to `2026-01`, which is not known to be wrong, it is false, where the specification says empty.
# The reason: a field is a text, and only if the other side is a time is it read as one. With the model of R4, which
# knows the types of the fields, it is the same.
# By the specification fields of the type dateTime and instant are times, and offsets are respected. Nothing is raised.
# It hurts whoever validates or filters records from several sources or seasons: right records fail, and wrong ones
# pass. Remedy: `start.toDateTime() <= end.toDateTime()`.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install fhirpathpy==2.2.4 antlr4-python3-runtime==4.13.2 \
    python-dateutil==2.9.0.post0 six==1.17.0
"$folder/env/bin/python" - <<'PYTHON'
import random
from datetime import datetime, timedelta, timezone
from importlib.metadata import version

from fhirpathpy import compile
from fhirpathpy.models import models

print('fhirpathpy', version('fhirpathpy'))
LOCAL = timezone(timedelta(hours=2))


def ask(expression, resource=None):
    return compile(expression, models['r4'])(resource or {})


def encounter(start, end):
    return {'resourceType': 'Encounter', 'status': 'finished', 'class': {'code': 'IMP'},
            'period': {'start': start, 'end': end}}


def observation(taken, issued):
    return {'resourceType': 'Observation', 'status': 'final', 'effectiveDateTime': taken, 'issued': issued}


start, end = '2026-10-25T02:30:00+02:00', '2026-10-25T02:10:00+01:00'
minutes = (datetime.fromisoformat(end) - datetime.fromisoformat(start)) / timedelta(minutes=1)
fields = ask('Encounter.period.start <= Encounter.period.end', encounter(start, end))
literals = ask(f'@{start} <= @{end}')
mended = ask('Encounter.period.start.toDateTime() <= Encounter.period.end.toDateTime()', encounter(start, end))
print(f'a stay of {minutes:.0f} minutes: start <= end is {fields}, of literals {literals}, by toDateTime {mended}')
assert minutes == 40 and literals == [True] and mended == [True]
assert fields == [False], 'fields are compared as times now'

taken = '2026-01-01T10:00:00+02:00'
for issued, expression, seen in (
    ('2026-01-01T08:20:00Z', 'Observation.issued < Observation.effective', True),
    ('2026-01-01T08:00:00Z', 'Observation.effective = Observation.issued', False),
):
    found, = ask(expression, observation(taken, issued))
    right, = ask(expression.replace('Observation.issued', f'@{issued}').replace('Observation.effective', f'@{taken}'))
    print(f'taken {taken}, issued {issued}: {expression} is {found}, of literals {right}')
    assert found is seen and right is not seen
assert datetime.fromisoformat(taken) == datetime(2026, 1, 1, 8, tzinfo=timezone.utc)

draw = random.Random(0)
ordered = compile('Observation.effective <= Observation.issued', models['r4'])
as_times = compile('Observation.effective.toDateTime() <= Observation.issued.toDateTime()', models['r4'])
found = right = 0
for _ in range(1000):
    moment = datetime(2026, 6, 1, tzinfo=LOCAL) + timedelta(minutes=draw.randrange(60 * 24 * 30))
    later = moment + timedelta(minutes=draw.randrange(5, 241))
    record = observation(moment.isoformat(), later.astimezone(timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ'))
    found += ordered(record) == [False]
    right += as_times(record) == [True]
print(f'1000 results that were issued later: {found} were not, by fields; {right} were, as times')
assert found == 493 and right == 1000

partial = encounter('2026-01-15', '2026-01')
assert ask('Encounter.period.start <= Encounter.period.end', partial) == [False]
assert ask('@2026-01-15 <= @2026-01') == []
PYTHON
echo 'As stated: two times of a record are compared as texts.'

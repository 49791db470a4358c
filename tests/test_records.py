"""Records of files: read with every key checked, written with the keys in their order, one version each."""

import dataclasses
import importlib
import json
import pkgutil
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from bioptimus_jax import records
from bioptimus_jax.errors import InputError
from bioptimus_jax.records.curriculum import PlacedPhase
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.records.metrics import Evaluation, Start, Training
from bioptimus_jax.records.record import Record, left_out, named, or_null, others, plain
from bioptimus_jax.run.metrics import MetricsLog
from bioptimus_jax.storage.files import read_jsonl


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner(Record):
    """A part."""

    share: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Whole(Record):
    """A record with a key of every kind."""

    name: str
    count: int
    given: bool = False
    parts: tuple[Inner, ...] = ()
    by_name: Mapping[str, Inner] = dataclasses.field(default_factory=dict)
    pair: tuple[str, float] = ('', 0.0)
    more: Mapping[str, Any] = others()
    unknown: float | None = or_null()
    seldom: str | None = left_out()


WHOLE = {
    'name': 'a',
    'count': 2,
    'given': True,
    'parts': [{'share': 0.5}, {'share': 1}],
    'by_name': {'x': {'share': 0.25}},
    'pair': ['a', 1],
    'other': [1, 2],
    'unknown': None,
}


def test_a_record_gives_the_bytes_that_it_was_read_from():
    record = Whole.read(WHOLE, 'file.json')
    assert record.parts == (Inner(share=0.5), Inner(share=1))
    assert (record.more, record.unknown, record.seldom) == ({'other': [1, 2]}, None, None)
    assert json.dumps(record.json()) == json.dumps(WHOLE)
    least = Whole.read({'name': 'a', 'count': 2}, 'file.json')
    assert list(least.json()) == ['name', 'count', 'given', 'parts', 'by_name', 'pair', 'unknown']


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        ({'count': None}, 'count: not a whole number'),
        ({'count': True}, 'count: not a whole number'),
        ({'name': 3}, 'name: not a text'),
        ({'given': 1}, 'given: not true or false'),
        ({'parts': {}}, 'parts: not a list'),
        ({'parts': [{'share': 1.0}, {}]}, "parts: entry 2: without the key 'share'"),
        ({'by_name': {'x': {'share': 'a'}}}, 'by_name: x: share: not a number'),
        ({'by_name': {'x': 3}}, 'by_name: x: no record'),
        ({'pair': ['a', 1, 2]}, 'pair: not 2 entries'),
        ({'pair': ['a', 'b']}, 'pair: entry 2: not a number'),
        ({'version': 2}, 'of version 2, and this program reads version 1'),
    ],
)
def test_what_is_wrong_is_one_line_with_file_key_and_remedy(change, said):
    with pytest.raises(InputError) as error:
        Whole.read({**WHOLE, **change}, 'runs/x/file.json', 'run it again')
    assert str(error.value) == f'runs/x/file.json: is damaged ({said}); run it again'


def test_a_key_may_have_another_name_in_the_file_and_a_kind_a_later_version_that_it_alone_reads():
    @dataclasses.dataclass(frozen=True)
    class Renamed(Record):
        documents: int = named('read')

    assert Renamed.read({'read': 3}, 'f').json() == Renamed(3).json() == {'read': 3}

    @dataclasses.dataclass(frozen=True)
    class Later(Record):
        VERSION: ClassVar[int] = 2
        FIRST: ClassVar[tuple[str, ...]] = ('b',)
        a: int
        b: int

    assert list(Later(1, 2).json().items()) == [('version', 2), ('b', 2), ('a', 1)]
    assert Later.read({'version': 2, 'a': 1, 'b': 2}, 'f') == Later(1, 2)
    for kind, given, said in (
        (Renamed, {'documents': 3}, "without the key 'read'"),
        (Later, {'a': 1, 'b': 2}, 'of version 1, and this program reads version 2'),
    ):
        with pytest.raises(InputError, match=said):
            kind.read(given, 'f')


def test_lines_of_metrics_are_read_as_they_are_written(tmp_path):
    log = MetricsLog(tmp_path, lambda: Quiet())
    speed = {'tokens_per_second': 9.0, 'flops': 1e9, 'seconds': 2.0, 'told': {'nsp_loss': 0.5}}
    line = Training(step=3, phase='0.1', tokens=9, loss=4.5, learning_rate=1e-4, **speed)
    scored = Evaluation(
        step=3, phase='0.1', frozen_loss=4.0, scores={'entities/drugs': 0.25}, losses={'0.1': 4.0}
    )
    for one in (Start(step=0, tokens=0), line, scored):
        log.add('pretrain', one)
    start, *_ = read_jsonl(tmp_path / 'metrics.jsonl')
    trained, evaluated = log.of('pretrain')
    assert list(start) == ['stage', 'step', 'time', 'kind', 'tokens']
    assert list(trained)[:6] == ['stage', 'step', 'time', 'kind', 'phase', 'tokens']
    assert list(trained)[-4:] == ['nsp_loss', 'flops', 'seconds', 'joules']
    assert Training.among([start, trained, evaluated]) == [dataclasses.replace(line, time=trained['time'])]
    [read] = Evaluation.among([start, trained, evaluated])
    assert (read.entity_f1, read.loss, read.phase_end) == ({'drugs': 0.25}, 4.0, False)
    assert read.line('pretrain') == evaluated
    del trained['loss']
    with pytest.raises(
        InputError, match=r"metrics\.jsonl: line 'train' of step 3: is damaged \(without the key 'los"
    ):
        Training.among([trained])


class Quiet:
    """Trackers that track nothing."""

    def write(self, stage, step, values):
        """Take a line."""


def test_a_manifest_keeps_the_order_of_its_keys():
    written = {'stage': 'a', 'config': {'k': [1]}, 'inputs': {}, 'content': 'c', 'counts': {'n': 1}}
    written |= {'files': {'f': {'bytes': 1, 'sha256': 's'}}, 'metrics': 'm', 'versions': {}, 'seconds': 1.5}
    assert json.dumps(Manifest.read(written, 'manifest.json').json()) == json.dumps(written)
    assert plain([PlacedPhase('0.1', 0, 5), PlacedPhase('0.2', 5, 9, ended=True)]) == [
        {'name': '0.1', 'start': 0, 'stop': 5},
        {'name': '0.2', 'start': 5, 'stop': 9, 'ended': True},
    ]


def kinds():
    """Every kind of record of the room."""
    for module in pkgutil.iter_modules(records.__path__):
        for value in vars(importlib.import_module(f'bioptimus_jax.records.{module.name}')).values():
            if isinstance(value, type) and issubclass(value, Record) and value is not Record:
                yield value


@pytest.mark.parametrize('kind', dict.fromkeys(kinds()), ids=lambda kind: kind.__name__)
def test_every_kind_of_record_refuses_another_version(kind):
    """Whatever a kind needs; a field of a type that no JSON has would be a TypeError here."""
    with pytest.raises(
        InputError, match=r'file\.json: is damaged \(of version 9, and this program reads version 1\)'
    ):
        kind.read({'version': 9}, 'file.json')

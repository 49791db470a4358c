"""`bioptimus sweep`: the arms of an ablation, each an ordinary run, sharing every stage that is the same for several.

A config with arms has `get_arms(argument)`, which names them, and gives each one's ConfigDict for the argument
`ARGUMENT/ARM`; so `bioptimus run --config=FILE:ARGUMENT/ARM` makes one alone.
"""

import collections
import contextlib
import dataclasses
import fnmatch
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bioptimus_jax.config.fields import meant
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.stages import STAGES, check_order
from bioptimus_jax.hosts import signals
from bioptimus_jax.hosts.config import MOST_WORKERS
from bioptimus_jax.lab import arms, last_models
from bioptimus_jax.lab.places import LOG, Here, Program, There
from bioptimus_jax.progress.console import clock, numbered
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.report.drawing import write_figures
from bioptimus_jax.report.layout import Column, Table, each
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.records import RECORDS, SEED, record_of
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.fingerprint import StageOfRun
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import alone, atomic, digest, write_jsonl

SHARED = ('corpus', 'vocab', 'contexts', 'rows')
"""Made one arm after another before the arms run side by side: whoever comes second takes what the first has made."""
REFERENCE = ('corpus', 'vocab')
"""Made of the first arm also where that is not chosen, and others hide the words of its vocabulary."""
REFERENCE_VOCAB = 'analysis.reference_vocab'

SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_AN_HOUR = 3600


@dataclasses.dataclass(frozen=True)
class Arm:
    """One run of a sweep, and the arguments of `bioptimus run` that make it."""

    name: str
    run: Run
    arguments: tuple[str, ...]

    @property
    def finished(self) -> bool:
        """Whether every stage has a manifest; whether it still matches is found out by running it."""
        return all(self.run.manifest(name) for name in self.run.config.stages)


class Sweep:
    """The arms of `--config=NAME:ARGUMENT` in WORKDIR/ARM; `jobs` at a time, each with its share of cores and GPUs.

    With `config.runtime.cluster` the arms go to its workers, an arm each. After `hours` the arms at work save and stop.
    Without `paths` environment variables in them may be unset, where nothing is made.

    Raises ConfigError for a config without arms, for a glob that names none, and for what one of the arms refuses.
    """

    def __init__(
        self,
        name: str,
        workdir: Path | str,
        overrides: Sequence[tuple[str, str]],
        only: str = '*',
        jobs: int = 1,
        control: str = '',
        hours: float | None = None,
        paths: bool = True,
    ):
        if not 1 <= jobs <= MOST_WORKERS:
            raise ConfigError(f'--jobs={jobs}: from 1 to {MOST_WORKERS}')
        self.workdir, self.jobs, self.hours = Path(workdir), jobs, hours
        self.control, self.tables = control, list[Table]()
        self.stopping, self.over = threading.Event(), threading.Event()
        self.known = known = config.arms(name)
        chosen = [arm for arm in known if any(fnmatch.fnmatch(arm, glob) for glob in only.split(','))]
        if not chosen:
            raise ConfigError(
                f'--arms={only}: names none of the arms of {name}: {", ".join(known)}{meant(only, known)}'
            )
        # The tables are also of arms that an earlier call has made.
        self.earlier = [arm for arm in known if arm not in chosen and (self.workdir / arm).is_dir()]
        shown = [arm for arm in known if arm in chosen or arm in self.earlier]
        if control and control not in {arm.partition(SEED)[0] for arm in shown}:
            raise ConfigError(
                f'--control={control}: is none of the arms {", ".join(shown)}{meant(control, shown)}'
            )
        self.name, self.overrides, self.paths = name, overrides, paths
        self.arms: list[Arm] = []
        # The first arm of the config, where it is not chosen and others take its vocabulary as reference.
        self.unchosen: list[Arm] = []
        try:
            self.arms += map(self._arm, chosen)
            if known[0] not in chosen and any(map(_takes_reference, self.arms)):
                self.unchosen.append(self._arm(known[0]))
        except (ConfigError, InputError):
            self.withdraw()
            raise

    def withdraw(self) -> None:
        """Take back the folders of arms that hold nothing."""
        for arm in reversed((*self.arms, *self.unchosen)):
            arm.run.withdraw()

    def _arm(self, arm: str, *more: tuple[str, str]) -> Arm:
        name = config.name_of_arm(self.name, arm)
        bases = config.experiment(name, self.overrides, self.paths).runtime.base_run
        given = [*self.overrides, ('runtime.base_run', repr((str(self.workdir), *bases))), *more]
        folder = self.workdir / arm
        run = Run(folder, config.experiment(name, given, self.paths))
        run.console.stopping = self.stopping
        flags = tuple(f'--config.{dotted}={text}' for dotted, text in given)
        return Arm(arm, run, (f'--config={name}', f'--workdir={folder}', *flags))

    def make(self) -> list[Arm]:
        """Bring every arm up to date; returns those that failed. Raises Stopped once all that run have saved.

        Records and tables are also of the finished arms of earlier calls. When the hours are over, they are of the
        finished arms alone. Raises ConfigError before any arm begins if a stage of one needs what does not come
        before it, or was made with other settings.
        """
        failed: list[Arm] = []
        with alone(self.workdir / '.sweep.lock', f'{self.workdir}: another sweep is working in it'):
            self._check_arms()
            with self._within_the_hours():
                by_round = in_rounds(self.arms, self.control)
                self._share(by_round, failed)
                by_round = [arm for arm in by_round if arm not in failed]
                self._run_beside_each_other(self._shared_surgeries(by_round), [])
                self._run_beside_each_other([(arm, 'run') for arm in by_round], failed)
            good = [arm for arm in self.arms if arm not in failed]
            made = [arm for arm in good if arm.finished] if self.over.is_set() else good
            self._write(
                sorted([*made, *self._of_earlier_calls()], key=lambda arm: self.known.index(arm.name))
            )
            return failed

    def _check_arms(self) -> None:
        try:
            for arm in self.arms:
                with _named(arm):
                    check_order(arm.run)
                    _changes(arm)
        except ConfigError:
            self.withdraw()
            raise

    def _of_earlier_calls(self) -> Iterator[Arm]:
        """Finished arms that are not chosen and were made with the same settings and inputs; of others a line says why
        not."""
        for name in self.earlier:
            try:
                arm = self._arm(name)
                told = self._reference(arm)
                why = _why_left_out(self._arm(name, *told) if told else arm)
            except (ConfigError, InputError) as error:
                why = str(error)
            if why:
                print(f'sweep: {name} is not in the tables: {why}', flush=True)
            else:
                yield arm

    @contextlib.contextmanager
    def _within_the_hours(self) -> Iterator[None]:
        """A limit on the sweep's hours: after it what runs is asked to stop as by a signal, and a line says so."""
        if self.hours is None:
            yield
            return

        def end() -> None:
            self.over.set()
            self.stopping.set()

        timer = threading.Timer(self.hours * SECONDS_AN_HOUR, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except Stopped as stop:
            if not self.over.is_set():  # a signal
                raise
            lost = f'; {stop}' if str(stop) else ''
            finished = sum(arm.finished for arm in self.arms)
            print(
                f'sweep: the {self.hours:g} hours are over, {finished} of {numbered(len(self.arms), "arm")} are '
                f'finished{lost}; rerun the same command to go on',
                flush=True,
            )
        finally:
            timer.cancel()

    def table(self) -> Table:
        """Which stages of which arm are done, and how long they took."""
        stages = list(dict.fromkeys(name for arm in self.arms for name in arm.run.config.stages))
        columns = [
            Column('arm', lambda arm: arm.name),
            *each({name: name for name in stages}, lambda name, arm: _state(arm.run.manifest(name))),
        ]
        return Table.of('Arms', columns, self.arms)

    def _write(self, made: Sequence[Arm]) -> None:
        """results.jsonl and votes.jsonl, records; arms.md, the tables; arms.svg and differences.svg, the figures."""
        measured = {arm.name: read_measures(arm.run, details=False) for arm in made}
        write_jsonl(self.workdir / RECORDS, [record_of(name, m).json() for name, m in measured.items()])
        grouped = arms.grouped(measured)
        voted = last_models.votes(grouped)
        write_jsonl(self.workdir / last_models.VOTES, (vote.json() for vote in voted))
        tables = [
            *arms.all_tables(grouped, self.control),
            last_models.last_models(grouped, voted),
            *([last_models.less_control(grouped, self.control)] if self.control else ()),
        ]
        self.tables = [table for table in tables if not table.empty]
        with atomic(self.workdir / 'arms.md') as file:
            file.write(f'# {self.workdir.name}\n\n' + '\n'.join(table.markdown() for table in self.tables))
        drawn = arms.figure(grouped, self.control), arms.differences(grouped, self.control)
        write_figures(drawn, self.workdir)

    def _share(self, by_round: Sequence[Arm], failed: list[Arm]) -> None:
        """Make what arms share, one arm after another; adds the arms that fail in it, with a line that says why."""
        for arm in self.unchosen:
            if not arm.run.manifest('vocab'):
                with _named(arm):
                    self._make_shared(arm, REFERENCE, {})
        flaws: dict[str, str] = {}
        for arm in by_round:
            if arm.finished:
                continue
            try:
                self._make_shared(arm, SHARED, flaws)
            except (ConfigError, InputError) as error:
                print(f'sweep: {arm.name} failed: {error}', flush=True)
                failed.append(arm)
        reference = (*self.unchosen, *self.arms)[0]
        for arm in by_round:
            if arm not in failed and _takes_reference(arm) and not reference.run.manifest('vocab'):
                print(
                    f'sweep: {arm.name} failed: it hides the words of {reference.name}, which has no vocabulary'
                )
                failed.append(arm)

    def _make_shared(self, arm: Arm, stages: Sequence[str], flaws: dict[str, str]) -> None:
        """Make stages of an arm. `flaws`: by `_deciding`, the errors of stages that have failed and are not tried
        again."""
        for name in (name for name in arm.run.config.stages if name in stages):
            if flaws and (known := flaws.get(_deciding(arm, name))):
                raise InputError(known)
            try:
                execute(arm.run, STAGES[name])
            except InputError as error:
                flaws[_deciding(arm, name)] = str(error)
                raise
            arm.run.console.check_stop()

    def _shared_surgeries(self, by_round: Sequence[Arm]) -> list[tuple[Arm, str]]:
        """Surgeries to make first: one for all arms that begin with the same weights, unless it is there; in
        processes."""
        surgery = STAGES['surgery']
        groups: dict[str, list[Arm]] = {}
        for arm in by_round:
            if surgery.name in arm.run.config.stages and not arm.finished:
                with contextlib.suppress(ConfigError, InputError):  # the arm itself will say it
                    groups.setdefault(_deciding(arm, surgery.name), []).append(arm)
        several = [group for group in groups.values() if len(group) > 1]
        return [(g[0], surgery.name) for g in several if not any(a.run.manifest(surgery.name) for a in g)]

    def _run_beside_each_other(self, verbs: Sequence[tuple[Arm, str]], failed: list[Arm]) -> None:
        """Each verb for its arm, `jobs` or as many as the cluster has workers at a time; adds the arms that fail."""
        waiting = [(arm, verb, self._arguments(arm)) for arm, verb in verbs]
        running: dict[int, tuple[Arm, str, Program]] = {}
        cluster = self.arms[0].run.config.runtime.cluster
        places = There(cluster) if cluster and waiting else Here(self.jobs, self.workdir)
        # Finished arms are excluded from the estimate: a look at one says nothing of the time that others take.
        there = {arm.name for arm, verb in verbs if verb == 'run' and arm.finished}
        started, done, made, stopped = time.monotonic(), 0, 0, False
        try:
            while waiting or running:
                for place in range(places.number):
                    if place not in running and waiting:
                        arm, verb, arguments = waiting.pop(0)
                        program = places.start([verb, *arguments], arm.run.workdir, place)
                        running[place] = arm, verb, program
                time.sleep(SECONDS_BETWEEN_LOOKS)
                if stopped := self.stopping.is_set():  # the arms may have been asked, too: none has failed
                    break
                for place, (arm, verb, program) in list(running.items()):
                    if program.poll() is None:
                        continue
                    del running[place]
                    done += 1
                    made += arm.name not in there
                    failed += [arm] * bool(program.returncode)
                    how = _how(arm, verb, program.returncode)
                    to_make = sum(a.name not in there for a, *_ in (*waiting, *running.values()))
                    seconds = (time.monotonic() - started) / max(made, 1) * to_make
                    left = f', {clock(seconds)} left' if made or not to_make else ''
                    what = arm.name if verb == 'run' else f'{verb} of {arm.name}'
                    print(f'sweep: {what} {how} ({done} of {len(verbs)}{left})', flush=True)
        finally:
            places.stop([program for *_, program in running.values()])
        if stopped:
            raise Stopped('; '.join(filter(None, (_lost(arm) for arm, *_ in running.values()))))

    def _arguments(self, arm: Arm) -> tuple[str, ...]:
        """The arm's arguments, and what it is told of the first arm."""
        return (*arm.arguments, *(f'--config.{key}={value}' for key, value in self._reference(arm)))

    def _reference(self, arm: Arm) -> list[tuple[str, str]]:
        """The first arm's vocabulary as reference for an arm with another one, so that all hide the same words.

        The first arm is that of the config, chosen or not, so that arms may be made a few at a time.
        """
        if not _takes_reference(arm):
            return []
        first = next((one for one in (*self.unchosen, *self.arms) if one.name == self.known[0]), None)
        if not first:  # those that are chosen do not need it
            first = self._arm(self.known[0])
            first.run.withdraw()
        of_first, own = (one.run.manifest('vocab') or Manifest() for one in (first, arm))
        if of_first.content == own.content:
            return []
        return [(REFERENCE_VOCAB, str(first.run.folder('vocab')))]


def _deciding(arm: Arm, stage: str) -> str:
    """A digest of what decides a stage's result: arms with the same one share it."""
    return digest([stage, StageOfRun(arm.run, STAGES[stage]).fingerprint().json()])


@contextlib.contextmanager
def _named(arm: Arm) -> Iterator[None]:
    """Put the name of the arm in front of an error."""
    try:
        yield
    except (ConfigError, InputError) as error:
        raise type(error)(f'{arm.name}: {error}') from error


def _why_left_out(arm: Arm) -> str:
    """Why the tables are without an arm of an earlier call; '' where it is finished, with these settings and inputs."""
    if not arm.finished:
        return 'is not finished'
    stages = [StageOfRun(arm.run, STAGES[name]) for name in arm.run.config.stages]
    of_inputs = (change for stage in stages for change in stage.check_inputs(replace=False).changes)
    return '; '.join([*_changes(arm), *of_inputs])


def _changes(arm: Arm) -> list[str]:
    """Settings that have changed since its stages were made. Raises ConfigError where a stage would refuse them."""
    stages = (StageOfRun(arm.run, STAGES[name]) for name in arm.run.config.stages)
    return [change for stage in stages for change in stage.check_settings(replace=False)]


def _takes_reference(arm: Arm) -> bool:
    """Whether it hides words, and is not told of which vocabulary, by its config or by a flag, which may be empty."""
    config = arm.run.config
    by_flag = any(REFERENCE_VOCAB in argument for argument in arm.arguments)
    return 'analyze' in config.stages and not (config.analysis.reference_vocab or by_flag)


def in_rounds(of: Sequence[Arm], control: str = '') -> list[Arm]:
    """One seed of every arm before the next of any, and the control first: what is done early says most.

    Arms without a seed in their names are of the first round.
    """
    seeds_before = collections.Counter[str]()
    places = []
    for number, arm in enumerate(of):
        kind = arm.name.partition(SEED)[0]
        places.append((seeds_before[kind], kind != control, number))
        seeds_before[kind] += 1
    return [of[number] for *_, number in sorted(places)]


def _state(manifest: Manifest | None) -> str:
    if manifest is None:
        return ''
    return 'shared' if manifest.folder else clock(manifest.seconds or 0)


def _how(arm: Arm, verb: str, code: int) -> str:
    """How the program of an arm has ended: `runtime.until` may have ended it before its last stage."""
    if code < 0:  # what it printed last is of its work
        return f'was ended by {signal.Signals(-code).name}: see {arm.run.workdir / LOG}, then rerun the same command'
    if code:
        return f'failed: {_last_line(arm)}'
    return 'done' if verb != 'run' or arm.finished else f'paused: {_last_line(arm)}'


def _lost(arm: Arm) -> str:
    """What an arm that was stopped has said that it does not keep; '' for nothing."""
    said, saved, _ = _last_line(arm).partition(f'; {signals.ELSE_SAVED}')
    return f'{arm.name}: {said.partition("; ")[2]}' if saved else ''


def _last_line(arm: Arm) -> str:
    lines = (arm.run.workdir / LOG).read_text('utf-8', 'replace').splitlines()
    return lines[-1] if lines else f'see {arm.run.workdir / LOG}'

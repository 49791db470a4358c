"""The `bioptimus` program: verbs, flags, exit codes.

0 done, 2 wrong usage or configuration, 3 bad input or a full disk, 75 stopped by SIGTERM or SIGHUP after saving, 130 by
Ctrl-C (start it again), 69 another process of the same run is gone (start all of them again), 1 anything else.
"""

import argparse
import contextlib
import os
import select
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from bioptimus_jax import config, processes, signals
from bioptimus_jax.arguments import make_parser, take_overrides
from bioptimus_jax.errors import (
    BAD_INPUT,
    DONE,
    FAILED,
    USAGE,
    ConfigError,
    InputError,
    Stopped,
    of_the_system,
    printable,
)
from bioptimus_jax.progress import complain, crash_file
from bioptimus_jax.remote.session import open_run, require_local
from bioptimus_jax.run import Run, execute
from bioptimus_jax.schema import check_text
from bioptimus_jax.stages import STAGES, run_all

UNREAD = 128 + signal.SIGPIPE  # what a shell says of others in such a pipe


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code and prints one line for whatever went wrong."""
    if arguments is None:
        signals.listen()
    code = _outcome(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or UNREAD
    return signals.leave(processes.leave(code))


def _outcome(arguments: list[str]) -> int:
    try:
        return _dispatch(arguments)
    except ConfigError as error:
        return _fail(str(error), USAGE)
    except InputError as error:
        return _fail(str(error), BAD_INPUT)
    except Stopped:
        return _fail(signals.last_words(), signals.asked())
    except BrokenPipeError:
        return UNREAD if _reader_is_gone() else _crash()
    except Exception as error:
        processes.settle()
        refused = of_the_system(error)
        return _fail(refused, BAD_INPUT) if refused else _crash()


def _reader_is_gone() -> bool:
    """Whether what is printed has nowhere to go, as behind `| head`, and no other pipe is the broken one."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _dispatch(arguments: list[str]) -> int:
    for argument in arguments:
        check_text(argument, 'the command line')
    parser, (overrides, flags) = make_parser(), take_overrides(arguments)
    options = parser.parse_args(flags)
    if options.verb is None:
        parser.print_help()
        return USAGE
    if getattr(options, 'workdir', None) == '':
        raise ConfigError('--workdir is empty; name a folder')
    if options.verb == 'demo':
        from bioptimus_jax.demo.main import run_demo  # imports every stage

        if overrides:
            raise ConfigError('demo takes no --config keys; copy configs/demo.py and use `bioptimus run`')
        require_local('--workdir', options.workdir)
        with signals.watching() as watch:
            run_demo(Path(options.workdir), watch)
        return DONE
    if options.verb == 'download':
        if overrides:
            raise ConfigError('download takes no --config keys; see `bioptimus download --help`')
        return _download(options)
    if options.verb == 'sweep':
        return _sweep(options, overrides)
    if options.verb == 'plan':
        return _plan(options, overrides)
    if options.verb == 'lint':
        if overrides:
            raise ConfigError('lint takes no --config keys; see `bioptimus lint --help`')
        return _lint(options)
    if options.verb == 'compare':
        return _compare_models(options, overrides) if options.models else _compare(options, overrides)
    if options.verb == 'report' and (options.runs or not (options.config and options.workdir)):
        return _report(options, overrides)
    experiment = config.experiment(options.config, overrides)
    if experiment.runtime.deterministic:  # read by XLA when its first backend starts
        os.environ['XLA_FLAGS'] = (
            f'{os.environ.get("XLA_FLAGS", "")} --xla_gpu_deterministic_ops=true'.strip()
        )
    others = processes.join(experiment.runtime) if experiment.runtime.distributed else None
    names = experiment.stages if options.verb == 'run' else (options.verb,)
    with (
        signals.watching() as watch,
        open_run(options.workdir, experiment, names, watch, others) as run,
    ):
        run.command = shlex.join(['bioptimus', *(given for given in arguments if given != '--replace')])
        if options.verb == 'difficulty':
            _difficulty(run, options)
        elif options.replace and run.mirror and others:
            raise ConfigError(
                '--replace: of a run in a bucket, give it to one process alone, then start them all'
            )
        elif options.verb == 'surgery' and options.probe:
            _probe(run, options)
        elif not run.leads:
            processes.follow(run, [STAGES[name] for name in names if name in STAGES])
        elif options.verb == 'run':
            run_all(run, options.replace)
        else:
            execute(run, STAGES[options.verb], options.replace)
    return DONE


def _report(options: argparse.Namespace, overrides: list[tuple[str, str]]) -> int:
    from bioptimus_jax.report import comparison  # imports matplotlib

    for folder in options.runs:
        require_local('RUN', folder)
    if not options.runs:
        raise ConfigError(
            'report takes run folders, or --config and --workdir; see `bioptimus report --help`'
        )
    if options.config or options.workdir or overrides or options.replace:
        raise ConfigError(
            'report of run folders takes no --config, --workdir, --replace: how they were made is read from them'
        )
    to = comparison.write(options.runs, Path(options.to) if options.to else None, options.loss, options.f1)
    print(f'report: {to / "index.html"}')
    return DONE


def _probe(run: Run, options: argparse.Namespace) -> None:
    from bioptimus_jax.surgery.probe import probe  # imports jax

    if run.leads:
        probe(run, options.probe_tokens, options.probe_contexts, options.probe_fit_steps)


def _difficulty(run: Run, options: argparse.Namespace) -> None:
    from bioptimus_jax.analysis.difficulty import measure  # imports jax and torch
    from bioptimus_jax.report.difficulty import difficulty
    from bioptimus_jax.report.measures import read_measures

    if run.leads:
        measure(run, options.model)
        print(difficulty(read_measures(run)).text())


def _sweep(options: argparse.Namespace, overrides: list[tuple[str, str]]) -> int:
    from bioptimus_jax.sweep import Sweep  # imports matplotlib

    require_local('--workdir', options.workdir)
    sweep = Sweep(options.config, options.workdir, overrides, options.arms, options.jobs, options.control)
    if options.status:
        print(sweep.table().text())
        return DONE
    with signals.watching() as watch:
        watch(sweep)
        failed = sweep.make()
    print('\n\n'.join(table.text() for table in sweep.tables))
    if failed:
        names = ', '.join(arm.name for arm in failed)
        raise InputError(
            f'{len(failed)} of {len(sweep.arms)} arms failed: {names}; see log.txt in their folders in '
            f'{options.workdir}, then give the same command again'
        )
    return DONE


def _compare(options: argparse.Namespace, overrides: list[tuple[str, str]]) -> int:
    from bioptimus_jax.report.tables import comparison_table, effort_table  # imports matplotlib

    if not options.config:
        raise ConfigError(
            '--config=NAME_or_FILE[:argument] is missing: it names the phases; or did you mean --models?'
        )
    experiment = config.experiment(options.config, overrides)
    for folder in options.runs:
        require_local('FOLDER', folder)
        if not Path(folder).is_dir():
            raise InputError(f'{folder}: no such run folder')
    runs = [Run(folder, experiment, quiet=True) for folder in options.runs]
    tables = [comparison_table(runs), effort_table(runs)]
    print('\n\n'.join(table.markdown() if options.markdown else table.text() for table in tables))
    return DONE


def _compare_models(options: argparse.Namespace, overrides: list[tuple[str, str]]) -> int:
    from bioptimus_jax.finetune.verdict import compare_models

    if options.config or overrides or options.markdown:
        raise ConfigError(
            'compare --models takes two folders, and no --config, no --config keys, no --markdown'
        )
    if len(options.runs) != 2:
        raise ConfigError(
            f'compare --models takes two folders, RUN/finetune/MODEL each; got {len(options.runs)}'
        )
    print(printable('\n'.join(compare_models(*options.runs))))
    return DONE


def _download(options: argparse.Namespace) -> int:
    from bioptimus_jax.corpus.download import Catalogue, Download  # imports the web client
    from bioptimus_jax.corpus.pubmed import ADDRESS, PubMed
    from bioptimus_jax.finetune.download import NerSets
    from bioptimus_jax.sets.blurb import SOURCE

    require_local('--to', options.to)
    what = tuple(part for part in options.what.split(',') if part)
    catalogue: Catalogue
    if 'ner' in what:
        if len(what) > 1:
            raise ConfigError(f'--what={options.what}: ner has a server of its own; give it alone')
        catalogue = NerSets(options.url or SOURCE, options.files)
    else:
        catalogue = PubMed(options.url or ADDRESS, what, options.files)
    download = Download(options.to, catalogue, options.parallel, check=options.check)
    with signals.watching() as watch:
        watch(download)
        download.run()
    return DONE


def _plan(options: argparse.Namespace, overrides: list[tuple[str, str]]) -> int:
    from bioptimus_jax import plan  # imports jax
    from bioptimus_jax.devices import device_named
    from bioptimus_jax.report import estimate

    device = device_named(options.device) if options.device else None
    assumed = plan.Assumptions(
        options.words,
        options.input_words,
        options.pieces_per_word,
        options.fill,
        options.mfu,
        options.price,
    )
    planned = plan.make_plan(config.experiment(options.config, overrides, paths=False), assumed)
    print(estimate.report(planned, estimate.chosen(device), options.devices))
    return DONE


def _lint(options: argparse.Namespace) -> int:
    from bioptimus_jax.finetune import lint
    from bioptimus_jax.finetune.tokenizer import load_tokenizer

    folders = [Path(name) for name in options.model]
    short = len({folder.name for folder in folders}) == len(folders)
    models = {folder.name if short else str(folder): load_tokenizer(folder) for folder in folders}
    records, errors = lint.lint_folder(Path(options.sets), models)
    for record in records:
        print(printable('\n'.join(lint.lines(record))), flush=True)
    if errors:
        for error in errors[1:]:
            _fail(error, BAD_INPUT)
        raise InputError(errors[0])
    return DONE


def _fail(message: str, code: int) -> int:
    complain(message)
    return code


def _crash() -> int:
    """A defect of ours: one line, and the traceback where it can be found."""
    error, where = sys.exc_info()[1], ''
    with contextlib.suppress(OSError):
        where = f'; the details are in {crash_file(traceback.format_exc())}'
    return _fail(f'unexpected {type(error).__name__}: {error}{where}', FAILED)


if __name__ == '__main__':
    sys.exit(main())

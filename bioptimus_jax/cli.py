"""The `bioptimus` program: verbs, flags, exit codes.

0 done, 2 wrong usage or configuration, 3 bad input, 75 stopped by SIGTERM after saving (start it again),
130 Ctrl-C, 1 anything else.
"""

import argparse
import contextlib
import errno
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from bioptimus_jax import __version__, config
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.processes import follow, join
from bioptimus_jax.run import Run, execute
from bioptimus_jax.schema import Experiment, walk
from bioptimus_jax.stages import STAGES, run_all

DONE, FAILED, USAGE, BAD_INPUT, STOPPED = 0, 1, 2, 3, 75
FULL = (errno.ENOSPC, errno.EDQUOT)
REFUSALS = (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR)

SYNOPSIS = 'bioptimus VERB --config=NAME_or_FILE[:argument] --workdir=DIR [--config.key=value ...]'
PROGRAM_HELP = """
Adapt a general BERT to a domain: corpus, vocabulary, embedding surgery, curriculum masked-LM
pre-training, Hugging Face export, NER scores, report.

exit codes: 0 done, 2 wrong usage or configuration, 3 bad input, 75 stopped by SIGTERM after saving
(start it again), 130 Ctrl-C, 1 anything else

examples:
  bioptimus demo --workdir=runs/demo
  bioptimus run --config=small --workdir=runs/small --config.source.path=FOLDER
  bioptimus pretrain --help
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise ConfigError(f'{message}; see `{self.prog} --help`')


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code and prints one line for whatever went wrong."""
    try:
        return _dispatch(list(sys.argv[1:] if arguments is None else arguments))
    except ConfigError as error:
        return _fail(str(error), USAGE)
    except InputError as error:
        return _fail(str(error), BAD_INPUT)
    except Stopped:
        return _fail('stopped; everything is saved, start the same command again to go on', STOPPED)
    except KeyboardInterrupt:
        return _fail('interrupted; start the same command again to go on', 130)
    except Exception as error:
        where = getattr(error, 'filename', None) or 'the output folder'
        if _is_full_disk(error):
            return _fail(f'{where}: no space left; free some and start the same command again', FAILED)
        if isinstance(error, OSError) and error.errno in REFUSALS:
            return _fail(f'{where}: {error.strerror}; check its rights, or choose another place', FAILED)
        return _crash()


def _is_full_disk(error: Exception) -> bool:
    """By number, or by words: the writers of safetensors, tokenizers and ArrayRecord raise exceptions of their own."""
    number = error.errno if isinstance(error, OSError) else None
    return number in FULL or any(os.strerror(n) in str(error) for n in FULL)


def _dispatch(arguments: list[str]) -> int:
    parser, overrides, arguments = _parser(), *_take_overrides(arguments)
    options = parser.parse_args(arguments)
    if options.verb is None:
        parser.print_help()
        return USAGE
    if options.verb == 'demo':
        from bioptimus_jax.demo.main import run_demo  # imports every stage

        if overrides:
            raise ConfigError('demo takes no --config keys; copy configs/demo.py and use `bioptimus run`')
        with _stop_on_signal() as watch:
            run_demo(Path(options.workdir), watch)
        return DONE
    if options.verb == 'download':
        if overrides:
            raise ConfigError('download takes no --config keys; see `bioptimus download --help`')
        return _download(options)
    if options.verb == 'sweep':
        return _sweep(options, overrides)
    if options.verb == 'lint':
        if overrides:
            raise ConfigError('lint takes no --config keys; see `bioptimus lint --help`')
        return _lint(options)
    if options.verb == 'compare':
        return _compare_models(options, overrides) if options.ner else _compare(options, overrides)
    experiment = _experiment(options.config, overrides)
    if experiment.runtime.deterministic:  # read by XLA when its first backend starts
        os.environ['XLA_FLAGS'] = (
            f'{os.environ.get("XLA_FLAGS", "")} --xla_gpu_deterministic_ops=true'.strip()
        )
    leads = join(experiment.runtime.distributed) if experiment.runtime.distributed else True
    run = Run(options.workdir, experiment, leads=leads)
    with _stop_on_signal() as watch:
        watch(run)
        if options.verb == 'surgery' and options.probe:
            _probe(run, options)
        elif not leads:
            names = experiment.stages if options.verb == 'run' else (options.verb,)
            follow(run, [STAGES[name] for name in names if name in STAGES])
        elif options.verb == 'run':
            run_all(run, options.replace)
        else:
            execute(run, STAGES[options.verb], options.replace)
    return DONE


def _probe(run: Run, options: argparse.Namespace) -> None:
    from bioptimus_jax.surgery.probe import probe  # imports jax

    if run.leads:
        probe(run, options.probe_tokens, options.probe_contexts, options.probe_fit_steps)


def _sweep(options: argparse.Namespace, overrides: list[tuple[str, str]]) -> int:
    from bioptimus_jax.sweep import Sweep  # imports matplotlib

    sweep = Sweep(options.config, options.workdir, overrides, options.arms, options.jobs, options.control)
    if options.status:
        print(sweep.table().text())
        return DONE
    with _stop_on_signal() as watch:
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
    from bioptimus_jax.report.tables import comparison_table  # imports matplotlib

    if not options.config:
        raise ConfigError(
            '--config=NAME_or_FILE[:argument] is missing: it names the phases; or did you mean --ner?'
        )
    experiment = _experiment(options.config, overrides)
    for folder in options.runs:
        if not Path(folder).is_dir():
            raise InputError(f'{folder}: no such run folder')
    table = comparison_table([Run(folder, experiment, quiet=True) for folder in options.runs])
    print(table.markdown() if options.markdown else table.text())
    return DONE


def _compare_models(options: argparse.Namespace, overrides: list[tuple[str, str]]) -> int:
    from bioptimus_jax.ner.verdict import compare_models

    if options.config or overrides or options.markdown:
        raise ConfigError('compare --ner takes two folders, and no --config, no --config keys, no --markdown')
    if len(options.runs) != 2:
        raise ConfigError(f'compare --ner takes two folders, RUN/ner/MODEL each; got {len(options.runs)}')
    print('\n'.join(compare_models(*options.runs)))
    return DONE


def _download(options: argparse.Namespace) -> int:
    from bioptimus_jax.corpus.download import Catalogue, Download  # imports the web client
    from bioptimus_jax.corpus.pubmed import ADDRESS, PubMed
    from bioptimus_jax.ner.blurb import SOURCE
    from bioptimus_jax.ner.download import NerSets

    what = tuple(part for part in options.what.split(',') if part)
    catalogue: Catalogue
    if 'ner' in what:
        if len(what) > 1:
            raise ConfigError(f'--what={options.what}: ner has a server of its own; give it alone')
        catalogue = NerSets(options.url or SOURCE, options.files)
    else:
        catalogue = PubMed(options.url or ADDRESS, what, options.files)
    download = Download(options.to, catalogue, options.parallel, check=options.check)
    with _stop_on_signal() as watch:
        watch(download)
        download.run()
    return DONE


def _lint(options: argparse.Namespace) -> int:
    from bioptimus_jax.ner import lint

    folders = [Path(name) for name in options.model]
    short = len({folder.name for folder in folders}) == len(folders)
    models = {folder.name if short else str(folder): lint.load_tokenizer(folder) for folder in folders}
    records, errors = lint.lint_folder(Path(options.ner), models)
    for record in records:
        print('\n'.join(lint.lines(record)), flush=True)
    if errors:
        for error in errors[1:]:
            _fail(error, BAD_INPUT)
        raise InputError(errors[0])
    return DONE


def _experiment(name: str, overrides: list[tuple[str, str]]) -> Experiment:
    loaded = config.load(name)
    for dotted, text in overrides:
        config.override(loaded, dotted, text)
    return Experiment.from_config(loaded)


def _take_overrides(arguments: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Split off `--config.key=value` and `--config.key value`."""
    overrides, rest = [], []
    waiting = iter(arguments)
    for argument in waiting:
        if not argument.startswith('--config.'):
            rest.append(argument)
            continue
        name, equals, value = argument.removeprefix('--config.').partition('=')
        if not equals:
            value = next(waiting, '')
            if not value or value.startswith('--'):
                raise ConfigError(f'{argument}: a value is missing; write {argument}=VALUE')
        overrides.append((name, value))
    return overrides, rest


def _parser() -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    parser = _Parser('bioptimus', SYNOPSIS, PROGRAM_HELP, formatter_class=plain)
    parser.add_argument('--version', action='version', version=f'bioptimus {__version__}')
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', parser_class=_Parser, prog='bioptimus')
    for stage in STAGES.values():
        example = f'bioptimus {stage.name} --config=small --workdir=runs/small'
        text = f'{stage.summary}\n\nreads:  {stage.reads}\nwrites: {stage.writes}\n\nexample:\n  {example}'
        keys = _describe_keys((*stage.sections, *(('source',) if 'source' in stage.reads else ())))
        verb = verbs.add_parser(
            stage.name,
            help=stage.summary.replace('%', '%%'),
            description=text,
            epilog=keys,
            formatter_class=plain,
        )
        _add_run_flags(verb)
        if stage.name == 'surgery':
            _add_probe_flags(verb)
    everything = (
        'Every stage of config.stages in order; finished ones are skipped, an unfinished one goes on.\n\n'
        'reads:  what the stages read\nwrites: WORKDIR/STAGE for each, WORKDIR/metrics.jsonl\n\n'
        'example:\n  bioptimus run --config=small --workdir=runs/small --config.source.path=FOLDER'
    )
    verb = verbs.add_parser(
        'run',
        help='every stage in order',
        description=everything,
        epilog=_describe_keys(('seed', 'stages', 'source')),
        formatter_class=plain,
    )
    _add_run_flags(verb)
    _add_compare(verbs)
    _add_sweep(verbs)
    demo = (
        'The whole job on generated text: no data, no download.\n\n'
        'reads:  nothing\nwrites: WORKDIR (the run), WORKDIR/source (the source model), WORKDIR/world\n\n'
        'example:\n  bioptimus demo --workdir=runs/demo'
    )
    verb = verbs.add_parser(
        'demo', help='the whole job on generated text', description=demo, formatter_class=plain
    )
    verb.add_argument('--workdir', default='runs/demo', help='run folder (default: runs/demo)')
    _add_lint(verbs)
    _add_download(verbs)
    return parser


def _add_sweep(verbs: 'argparse._SubParsersAction[_Parser]') -> None:
    text = (
        'Every arm of an ablation, each an ordinary run in WORKDIR/ARM; corpus, vocabulary, contexts, rows and\n'
        'whatever else is the same for several arms is made once. Finished arms are skipped, an unfinished one\n'
        'goes on.\n\n'
        'reads:  what the stages read\n'
        'writes: WORKDIR/ARM (a run, with log.txt), WORKDIR/results.jsonl, arms.md, arms.svg; tables\n\n'
        'example:\n  bioptimus sweep --config=ablations:table2 --workdir=runs/table2 '
        '--config.source.path=FOLDER --jobs=2'
    )
    plain = argparse.RawDescriptionHelpFormatter
    verb = verbs.add_parser('sweep', help='the arms of an ablation', description=text, formatter_class=plain)
    verb.add_argument(
        '--config', required=True, metavar='NAME_or_FILE[:argument]', help='a config with get_arms()'
    )
    verb.add_argument('--workdir', required=True, metavar='DIR', help='folder of the arms')
    verb.add_argument(
        '--arms', default='*', metavar='GLOB,...', help='only arms with such names (default: *)'
    )
    verb.add_argument(
        '--jobs',
        type=int,
        default=1,
        metavar='N',
        help='arms at a time, each with its share of the cores and GPUs (default: 1)',
    )
    verb.add_argument(
        '--control', default='', metavar='ARM', help='differences to this arm, and the steps that others save'
    )
    verb.add_argument('--status', action='store_true', help='only say which stages are done')


def _add_compare(verbs: 'argparse._SubParsersAction[_Parser]') -> None:
    text = (
        'Runs side by side: word-level loss at step 0 and after each phase, test F1. For arms of an ablation.\n'
        'With --ner: is model B better than model A at finding entities, on each set and over all? Test F1 over the\n'
        'seeds that both have, bootstrap intervals, a paired randomisation test, corrected for several sets (Holm).\n\n'
        'reads:  RUN/analyze, RUN/ner, RUN/metrics.jsonl of each; with --ner two folders RUN/ner/MODEL, or folders\n'
        '        below them, with :SETTING behind where a model was fine-tuned under several settings\n'
        'writes: a table, or a line for each set, to the terminal\n\n'
        'examples:\n  bioptimus compare --config=small --config.source.path=FOLDER '
        'runs/averaged_input runs/contextualized\n'
        '  bioptimus compare --ner runs/small/ner/0.1 runs/small/ner/0.4\n'
        '  bioptimus compare --ner runs/small/ner/0.4:standard runs/small/ner/0.4:frozen'
    )
    plain = argparse.RawDescriptionHelpFormatter
    verb = verbs.add_parser(
        'compare', help='runs or NER models side by side', description=text, formatter_class=plain
    )
    verb.add_argument('--config', metavar='NAME_or_FILE[:argument]', help='names the phases; not with --ner')
    verb.add_argument('--markdown', action='store_true', help='print the table as Markdown')
    verb.add_argument('--ner', action='store_true', help='two models by their NER predictions')
    verb.add_argument('runs', nargs='+', metavar='FOLDER', help='run folders; with --ner A and B')


def _add_lint(verbs: 'argparse._SubParsersAction[_Parser]') -> None:
    text = (
        'What is worth knowing about NER sets before a model is trained on them: counts beside those of BLURB, tag '
        'scheme,\nrepairs, orphan I- tags, sentences that are in two splits or tagged in two ways; with a model, words '
        'that its\ntokenizer loses and sentences too long for one window.\n\n'
        'reads:  a set (train, devel, test as .tsv, .conll, PubTator, BRAT or TFDS), or a folder of sets\n'
        'writes: lines to the terminal; exit code 3 where a set cannot be read\n\n'
        'example:\n  bioptimus lint --ner=$BIOPTIMUS_DATA/ner --model=runs/small/export/0.4'
    )
    plain = argparse.RawDescriptionHelpFormatter
    verb = verbs.add_parser('lint', help='look through NER sets', description=text, formatter_class=plain)
    verb.add_argument('--ner', required=True, metavar='FOLDER', help='a set or a folder of sets')
    verb.add_argument(
        '--model',
        action='append',
        default=[],
        metavar='HF_FOLDER',
        help='count its pieces too; may be repeated',
    )


def _add_download(verbs: 'argparse._SubParsersAction[_Parser]') -> None:
    text = (
        "PubMed's yearly baseline and daily update files, each checked by its MD5; or the five NER sets of BLURB,\n"
        'each checked by SHA-256. What is there and right is not fetched again, what was cut off goes on: give the\n'
        'same command again, after a failure or for new updates.\n\n'
        'reads:  the lists of files at URL/baseline and URL/updatefiles; ner: URL/BC2GM-IOB/train.tsv and others\n'
        'writes: DIR/baseline, DIR/updatefiles: NAME.xml.gz with NAME.xml.gz.md5 beside it\n'
        '        ner: DIR/{bc2gm,bc5-chem,bc5-disease,ncbi-disease,jnlpba}/{train,devel,test}.tsv\n\n'
        'examples:\n  bioptimus download --to=pubmed --what=baseline --files="pubmed*n000*"\n'
        '  bioptimus download --to=ner --what=ner'
    )
    verb = verbs.add_parser(
        'download',
        help="PubMed's baseline and update files; NER sets",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument('--to', required=True, metavar='DIR', help='folder, made if it is not there')
    verb.add_argument(
        '--what',
        default='baseline,updates',
        help='baseline, updates or both, or ner (default: baseline,updates)',
    )
    verb.add_argument(
        '--files',
        default='*',
        metavar='GLOB',
        help='only files with such names; ner: as bc2gm/train.tsv (default: *)',
    )
    verb.add_argument(
        '--url',
        default='',
        help='folder above baseline and updatefiles, or above BC2GM-IOB, of a mirror '
        "(default: PubMed's server; ner: the repository of Crichton et al.)",
    )
    verb.add_argument('--parallel', type=int, default=4, metavar='N', help='files at a time (default: 4)')
    verb.add_argument(
        '--check', action='store_true', help='read all that is there again, not only what has changed since'
    )


def _add_run_flags(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        '--config', required=True, metavar='NAME_or_FILE[:argument]', help='shipped config or .py file'
    )
    verb.add_argument('--workdir', required=True, metavar='DIR', help='run folder, made if it is not there')
    verb.add_argument(
        '--replace',
        action='store_true',
        help='delete what a stage made before and make it anew (run: where it differs)',
    )


def _add_probe_flags(verb: argparse.ArgumentParser) -> None:
    group = verb.add_argument_group(
        'the probe',
        'Which strategy and variant is best for this source and corpus? Needs the stages corpus and vocab and makes no '
        'stage: it hides tokens from the source, rebuilds their rows by every strategy and variant, and says how '
        'near they come to the true rows. Writes WORKDIR/probe.json and prints a table, the best first.',
    )
    group.add_argument('--probe', action='store_true', help='do that in place of the stage')
    group.add_argument(
        '--probe-tokens', type=int, default=1000, metavar='N', help='tokens hidden (default: %(default)s)'
    )
    group.add_argument(
        '--probe-contexts', type=int, default=10, metavar='N', help='sentences a token (default: %(default)s)'
    )
    group.add_argument(
        '--probe-fit-steps',
        type=int,
        default=0,
        metavar='N',
        help='compare a gradient fit too (default: %(default)s)',
    )


def _describe_keys(sections: tuple[str, ...]) -> str:
    """The keys of the sections that a verb reads, with defaults; runtime keys for all."""
    lines = ['keys (--config.KEY=VALUE), with their defaults:']
    for name, value, metadata in walk(Experiment()):
        if name.split('.')[0] in (*sections, 'runtime') and not name.startswith(
            ('phase.0.2', 'phase.0.3', 'phase.0.4')
        ):
            lines.append(f'  {name} = {value!r}\n      {metadata["doc"]}')
    return '\n'.join(lines)


@contextlib.contextmanager
def _stop_on_signal() -> Iterator:
    """Within it, SIGTERM asks the watched runs to save and stop at the next safe point."""
    watched: list[Run] = []

    def stop(*_: object) -> None:
        for run in watched:
            run.stopping.set()

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield watched.append
    finally:
        signal.signal(signal.SIGTERM, before)


def _fail(message: str, code: int) -> int:
    clear = '\r\x1b[K' if sys.stderr.isatty() else ''  # a progress bar may stand on the line
    print(f'{clear}bioptimus: {" ".join(message.split())}', file=sys.stderr)
    return code


def _crash() -> int:
    """A defect of ours: one line, and the traceback where it can be found."""
    file = Path(tempfile.gettempdir()) / f'bioptimus-crash-{os.getpid()}.txt'
    error = sys.exc_info()[1]
    with contextlib.suppress(OSError):
        file.write_text(traceback.format_exc(), 'utf-8')
    return _fail(f'unexpected {type(error).__name__}: {error}; the details are in {file}', FAILED)


if __name__ == '__main__':
    sys.exit(main())

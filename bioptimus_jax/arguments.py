"""What can be said on the command line: verbs, flags and their help."""

import argparse
import contextlib
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from bioptimus_jax import __version__
from bioptimus_jax.devices import DEVICES, MFU
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.schema import FORMER, Experiment, now_called, walk
from bioptimus_jax.stages import STAGES

SYNOPSIS = 'bioptimus VERB --config=NAME_or_FILE[:argument] --workdir=DIR [--config.key=value ...]'
PROGRAM_HELP = """
Adapt a general BERT to a domain: corpus, vocabulary, embedding surgery, curriculum masked-LM
pre-training, Hugging Face export, NER scores, report.

exit codes: 0 done, 2 wrong usage or configuration, 3 bad input, 75 stopped by SIGTERM or SIGHUP
after saving, 130 by Ctrl-C (start it again), 69 another process of the same run is gone (start all
of them again), 1 anything else

examples:
  bioptimus demo --workdir=runs/demo
  bioptimus run --config=small --workdir=runs/small --config.source.path=FOLDER
  bioptimus pretrain --help
"""


REPORT_HELP = """

Of several runs, or of sweeps: the paper's Tables 2, 3, 5, 6 and 7, orders and corruption from whatever they hold,
beside the paper's numbers. What a run answers is read from its manifests; runs whose corpora, vocabularies, budgets
or fine-tuning differ are not mixed, and the page says in what they differ; and what each arm took, in words, FLOPs,
hours. Of one run all tables and figures of that run come first. Writes index.html, tables.md and csv/TABLE.csv into
DIR, and results.jsonl, from which alone `bioptimus report` makes the same tables when the run folders are gone.

  bioptimus report runs/small
  bioptimus report runs/table2 runs/orders --loss=2.5,2 --f1=80"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        said = next(
            (now_called(old) for old in FORMER if repr(old) in message or message.endswith(f' {old}')), ''
        )
        raise ConfigError(f'{message}; see `{self.prog} --help`{said}')


Number = TypeVar('Number', int, float)
Verbs: TypeAlias = 'argparse._SubParsersAction[_Parser]'
PLAIN = argparse.RawDescriptionHelpFormatter


def take_overrides(arguments: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
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


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line. What it finds wrong it raises as ConfigError."""
    parser = _Parser('bioptimus', SYNOPSIS, PROGRAM_HELP, formatter_class=PLAIN)
    parser.add_argument('--version', action='version', version=f'bioptimus {__version__}')
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', parser_class=_Parser, prog='bioptimus')
    for stage in STAGES.values():
        example = f'bioptimus {stage.name} --config=small --workdir=runs/small'
        text = f'{stage.summary}\n\nreads:  {stage.reads}\nwrites: {stage.writes}\n\nexample:\n  {example}'
        keys = _describe_keys((*stage.sections, *(('source',) if 'source' in stage.reads else ())))
        if stage.name == 'report':
            text += REPORT_HELP
        verb = _verb(verbs, stage.name, stage.summary.replace('%', '%%'), text, keys)
        _add_run_flags(verb, required=stage.name != 'report')
        if stage.name == 'report':
            _add_report_flags(verb)
        if stage.name == 'surgery':
            _add_probe_flags(verb)
    everything = (
        'Every stage of config.stages in order; finished ones are skipped, an unfinished one goes on.\n\n'
        'reads:  what the stages read\nwrites: WORKDIR/STAGE for each, WORKDIR/metrics.jsonl\n\n'
        'example:\n  bioptimus run --config=small --workdir=runs/small --config.source.path=FOLDER'
    )
    verb = _verb(
        verbs, 'run', 'every stage in order', everything, _describe_keys(('seed', 'stages', 'source'))
    )
    _add_run_flags(verb)
    _add_compare(verbs)
    _add_sweep(verbs)
    demo = (
        'The whole job on generated text: no data, no download.\n\n'
        'reads:  nothing\nwrites: WORKDIR (the run), WORKDIR/source (the source model), WORKDIR/world\n\n'
        'example:\n  bioptimus demo --workdir=runs/demo'
    )
    verb = _verb(verbs, 'demo', 'the whole job on generated text', demo)
    verb.add_argument('--workdir', default='runs/demo', help='run folder (default: runs/demo)')
    _add_plan(verbs)
    _add_difficulty(verbs)
    _add_lint(verbs)
    _add_download(verbs)
    return parser


def _verb(verbs: Verbs, name: str, short: str, text: str, keys: str = '') -> argparse.ArgumentParser:
    """A verb whose help begins with `text` and ends with `keys`, both as they are."""
    return verbs.add_parser(name, help=short, description=text, epilog=keys or None, formatter_class=PLAIN)


def _add_config(
    verb: argparse.ArgumentParser, what: str = 'shipped config or .py file', required: bool = True
) -> None:
    verb.add_argument('--config', required=required, metavar='NAME_or_FILE[:argument]', help=what)


def _add_sweep(verbs: Verbs) -> None:
    text = (
        'Every arm of an ablation, each an ordinary run in WORKDIR/ARM; corpus, vocabulary, contexts, rows and\n'
        'whatever else is the same for several arms is made once. Finished arms are skipped, an unfinished one\n'
        'goes on.\n\n'
        'reads:  what the stages read\n'
        'writes: WORKDIR/ARM (a run, with log.txt), WORKDIR/results.jsonl, arms.md, arms.svg, differences.svg\n\n'
        'example:\n  bioptimus sweep --config=ablations:table2 --workdir=runs/table2 '
        '--config.source.path=FOLDER --jobs=2'
    )
    verb = _verb(verbs, 'sweep', 'the arms of an ablation', text)
    _add_config(verb, 'a config with get_arms()')
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


def _add_compare(verbs: Verbs) -> None:
    text = (
        'Runs side by side: word-level loss at step 0 and after each phase, test F1, and what each took to reach what\n'
        'all of them reach. For arms of an ablation.\n'
        'With --models: is model B better than model A at finding entities, on each set and over all? Test F1 over\n'
        'the seeds that both have: over fine-tunings (paired t-test), and of these models on other test items\n'
        '(bootstrap, randomisation), each corrected for several sets (Holm).\n\n'
        'reads:  RUN/analyze, RUN/finetune, RUN/metrics.jsonl of each; with --models two folders\n'
        '        RUN/finetune/MODEL, or folders below, with :SETTING behind where a model has several settings\n'
        'writes: two tables, or a line for each set, to the terminal\n\n'
        'examples:\n  bioptimus compare --config=small --config.source.path=FOLDER '
        'runs/averaged_input runs/contextualized\n'
        '  bioptimus compare --models runs/small/finetune/0.1 runs/small/finetune/0.4\n'
        '  bioptimus compare --models runs/small/finetune/0.4:standard runs/small/finetune/0.4:frozen'
    )
    verb = _verb(verbs, 'compare', 'runs or NER models side by side', text)
    verb.add_argument(
        '--config', metavar='NAME_or_FILE[:argument]', help='names the phases; not with --models'
    )
    verb.add_argument('--markdown', action='store_true', help='print the table as Markdown')
    verb.add_argument('--models', action='store_true', help='two models by what they predict')
    verb.add_argument('runs', nargs='+', metavar='FOLDER', help='run folders; with --models A and B')


def _add_plan(verbs: Verbs) -> None:
    text = (
        'What a run will take, before it is begun: parameters, steps and FLOPs of every phase, memory of a device,\n'
        'hours, cost, disk space of every stage. An estimate from the config: nothing is compiled or read but the\n'
        'config.json of a source that is a folder here.\n\n'
        'reads:  the config\n'
        'writes: tables to the terminal\n\n'
        'examples:\n  bioptimus plan --config=bioptimus\n'
        '  bioptimus plan --config=bioptimus --device=h200 --devices=8 --price=2.50 --config.rows.row_pieces=1024'
    )
    verb = _verb(verbs, 'plan', 'memory, hours, cost and disk of a run', text)
    _add_config(verb)
    names = ', '.join(DEVICES)
    verb.add_argument('--device', default='', metavar='NAME', help=f'one of {names} (default: all of them)')
    verb.add_argument(
        '--devices', type=_positive_whole, default=8, metavar='N', help='how many (default: %(default)s)'
    )
    verb.add_argument(
        '--price', type=_positive, metavar='AMOUNT', help='of one device for one hour: adds the cost'
    )
    verb.add_argument(
        '--mfu',
        type=_share,
        default=MFU,
        metavar='SHARE',
        help='of the bfloat16 peak that is reached (default: %(default)s)',
    )
    verb.add_argument(
        '--words',
        type=_positive,
        default=0,
        metavar='N',
        help='words of the corpus (default: config.corpus.max_words)',
    )
    verb.add_argument(
        '--input-words',
        type=_positive,
        default=0,
        metavar='N',
        help='words of the files it is chosen from (default: as many)',
    )
    verb.add_argument(
        '--pieces-per-word',
        type=_positive,
        default=0,
        metavar='X',
        help='between spaces (default: 1.31; 1.55 where the source keeps its vocabulary)',
    )
    verb.add_argument(
        '--fill',
        type=_share,
        default=0,
        metavar='SHARE',
        help='of the rows (default: .92; .98 where they hold two of the longest documents)',
    )


def _positive(text: str) -> float:
    return _number(text, float, lambda value: 0 < value < float('inf'), 'a number above 0')


def _positive_whole(text: str) -> int:
    return _number(text, int, lambda value: value > 0, 'a whole number, at least 1')


def _share(text: str) -> float:
    return _number(text, float, lambda value: 0 < value <= 1, 'a number above 0 and at most 1')


def _levels(text: str) -> tuple[float, ...]:
    return tuple(_positive(level) for level in text.split(','))


def _number(text: str, kind: type[Number], fits: Callable[[Number], bool], needed: str) -> Number:
    with contextlib.suppress(ValueError):
        if fits(value := kind(text)):
            return value
    raise argparse.ArgumentTypeError(f'{text!r}: must be {needed}')


def _add_difficulty(verbs: Verbs) -> None:
    text = (
        'How hard is each masking setting for a model? Perplexity of any Hugging Face masked language model on any\n'
        'texts under the setting of every phase: geometric mean and interval over config.curriculum.samples samples,\n'
        'by what stands at a position ([MASK], another token, the token itself) and over all. The texts should be of\n'
        'a domain that the models were not trained on. config.curriculum.order=easy_to_hard trains in this order.\n\n'
        'reads:  config.curriculum.texts (of a .csv column config.corpus.tsv_column), else corpus/; the models\n'
        'writes: WORKDIR/difficulty.json; a table. `bioptimus report` shows both\n\n'
        'example:\n  bioptimus difficulty --config=small --workdir=runs/small --model=initial --model=FOLDER '
        '--config.curriculum.texts=news.csv'
    )
    keys = _describe_keys(('phases', 'phase', 'curriculum', 'evaluation'))
    verb = _verb(verbs, 'difficulty', 'perplexity of models under each masking setting', text, keys)
    _add_config(verb)
    verb.add_argument('--workdir', required=True, metavar='DIR', help='run folder, made if it is not there')
    verb.add_argument(
        '--model',
        action='append',
        default=[],
        metavar='MODEL',
        help='initial, source, a phase of this run, a Hugging Face folder or NAME=FOLDER; may be repeated '
        '(default: config.curriculum.probe)',
    )


def _add_lint(verbs: Verbs) -> None:
    text = (
        'What is worth knowing about NER sets before a model is trained on them: counts beside those of BLURB, tag '
        'scheme,\nrepairs, orphan I- tags, sentences that are in two splits or tagged in two ways; with a model, words '
        'that its\ntokenizer loses and sentences too long for one window.\n\n'
        'reads:  a set (train, devel, test as .tsv, .conll, PubTator, BRAT or TFDS), or a folder of sets\n'
        'writes: lines to the terminal; exit code 3 where a set cannot be read\n\n'
        'example:\n  bioptimus lint --sets=$BIOPTIMUS_DATA/ner --model=runs/small/export/0.4'
    )
    verb = _verb(verbs, 'lint', 'look through NER sets', text)
    verb.add_argument('--sets', required=True, metavar='FOLDER', help='a set or a folder of sets')
    verb.add_argument(
        '--model',
        action='append',
        default=[],
        metavar='HF_FOLDER',
        help='count its pieces too; may be repeated',
    )


def _add_download(verbs: Verbs) -> None:
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
    verb = _verb(verbs, 'download', "PubMed's baseline and update files; NER sets", text)
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


def _add_report_flags(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        'runs',
        nargs='*',
        metavar='RUN',
        help='run folders, sweeps, or their results.jsonl; no --config, no --workdir',
    )
    verb.add_argument(
        '--to', default='', metavar='DIR', help='folder of their page (default: tables, beside or in them)'
    )
    what = 'what each arm took to get there (default: what all of them reach)'
    verb.add_argument('--loss', type=_levels, default=(), metavar='X,X', help=f'held-out losses: {what}')
    verb.add_argument('--f1', type=_levels, default=(), metavar='X,X', help=f'devel F1, percent: {what}')


def _add_run_flags(verb: argparse.ArgumentParser, required: bool = True) -> None:
    _add_config(verb, required=required)
    where = 'run folder, made if it is not there; or s3://, gs://'
    verb.add_argument('--workdir', required=required, metavar='DIR', help=where)
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

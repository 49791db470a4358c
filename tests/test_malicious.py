"""Malicious inputs through the program: refused with one clear line and exit code 3, and their code never runs."""

import contextlib
import gzip
import io
import itertools
import json
import struct
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pyarrow.ipc
import pytest
import safetensors.numpy
from toy_articles import article as toy_article
from toy_articles import packed
from toy_tables import save_to_disk

from bioptimus_jax.cli import main as cli
from bioptimus_jax.corpus import stored
from bioptimus_jax.storage.files import write_json
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

CONFIG = """
from bioptimus_jax.experiment.config import defaults

def get_config():
    c = defaults()
    c.runtime.workers = 1
    return c
"""
SHAPE = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
VOCABULARY = [*SPECIAL_TOKENS, 'drug', 'dose', 'the', '##s']


@pytest.fixture
def refused(tmp_path, capsys):
    """Runs a verb that must be refused with exit code 3 and one line; gives the line."""
    (tmp_path / 'plain.py').write_text(CONFIG)
    ran = tmp_path / 'the-code-ran'

    def refuse(verb, *arguments):
        if verb != 'lint':
            arguments = (f'--config={tmp_path / "plain.py"}', f'--workdir={tmp_path / "run"}', *arguments)
        code = cli.main([verb, *arguments])
        captured = capsys.readouterr()
        assert code == 3, captured.err
        assert captured.err.count('\n') == 1
        assert 'Traceback' not in captured.err + captured.out
        assert not ran.exists(), 'the code ran'
        assert not (tmp_path / 'run' / verb / 'manifest.json').exists()
        return captured.err

    refuse.ran = ran
    return refuse


class Bomb:
    """Pickled, it makes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), 'w')


def article(title):
    return (
        f'<PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>{title}</ArticleTitle><Abstract>'
        '<AbstractText>Text.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>'
    )


# ---- corpus: XML, archives, gzip


@pytest.mark.parametrize('kind', ['laughs', 'file', 'parameter'])
def test_entities_of_xml(kind, tmp_path, refused):
    secret = tmp_path / 'secret.txt'
    secret.write_text('tellnobody')
    entities = {
        'laughs': '<!ENTITY a0 "lol">'
        + ''.join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10)),
        'file': f'<!ENTITY a9 SYSTEM "{secret.as_uri()}">',
        'parameter': f'<!ENTITY % a9 SYSTEM "{secret.as_uri()}"> %a9;',
    }[kind]
    content = (
        f'<!DOCTYPE PubmedArticleSet [{entities}]><PubmedArticleSet>{article("&a9;")}</PubmedArticleSet>'
    )
    (tmp_path / 'a.xml').write_text(content)
    line = refused('corpus', f'--config.corpus.inputs={tmp_path / "a.xml"}')
    assert 'a.xml: declares entities of its own' in line
    assert 'tellnobody' not in line
    left = [f for f in (tmp_path / 'run').rglob('*') if f.is_file() and b'tellnobody' in f.read_bytes()]
    assert not left


def archive(path, name):
    if '.tar' in path.name:
        with tarfile.open(path, 'w:gz' if path.suffix == '.gz' else 'w') as made:
            entry = tarfile.TarInfo(name)
            entry.size = 5
            made.addfile(entry, io.BytesIO(b'evil\n'))
            link = tarfile.TarInfo('link')
            link.type, link.linkname = tarfile.SYMTYPE, '../..'
            made.addfile(link)
    else:
        with zipfile.ZipFile(path, 'w') as made:
            made.writestr(name, 'evil\n')


@pytest.mark.parametrize('ending', ['tar', 'tar.gz', 'zip'])
def test_archives_are_not_taken_apart(ending, tmp_path, refused, capsys):
    outside = tmp_path / 'evil.txt'
    folder = tmp_path / 'inputs'
    folder.mkdir()
    for number, name in enumerate(('../evil.txt', str(outside))):
        path = folder / f'{number}.{ending}'
        archive(path, name)
        line = refused('corpus', f'--config.corpus.inputs={path}')
        expected = 'unknown kind of file' if ending == 'zip' else 'holds no .nxml or .xml file'
        assert f'{path.name}: {expected}' in line
        assert not outside.exists()
        # Called a text it is an odd document, or none: nothing is made of the names in it.
        path.rename(folder / f'{number}.txt')
        inputs = f'--config.corpus.inputs={folder / f"{number}.txt"}'
        cli.main(['corpus', f'--config={tmp_path / "plain.py"}', f'--workdir={tmp_path / "x"}', inputs])
        assert not outside.exists()
        capsys.readouterr()


def test_articles_in_an_archive_are_read_where_they_are(tmp_path, refused):
    """Names that lead elsewhere lead nowhere, links are not followed, and entities are not expanded."""
    secret = tmp_path / 'secret.nxml'
    secret.write_text(article('tellnobody'))
    declared = f'<!DOCTYPE article [<!ENTITY a SYSTEM "{secret.as_uri()}">]>' + toy_article(title='&a;')
    folder = tmp_path / 'inputs'
    folder.mkdir()
    entries = {'../evil.nxml': declared, str(tmp_path / 'evil.nxml'): declared, 'x\x1b[2J.nxml': '<a>'}
    path = packed(folder / 'a.tar', entries)
    with tarfile.open(path, 'a') as made:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            link = tarfile.TarInfo('link.nxml')
            link.type, link.linkname = kind, str(secret)
            made.addfile(link)
    assert 'of 3 documents none is left' in refused('corpus', f'--config.corpus.inputs={path}')
    line = refused('corpus', f'--config.corpus.inputs={path}', '--config.corpus.on_bad_record=fail')
    assert 'a.tar: ../evil.nxml declares entities of its own (a)' in line
    assert not list(tmp_path.rglob('evil*'))
    left = [f for f in (tmp_path / 'run').rglob('*') if f.is_file() and b'tellnobody' in f.read_bytes()]
    assert not left


@pytest.mark.parametrize('name', ['a.jsonl.gz', 'a.txt.gz', 'a.xml.gz', 'a.tar.gz'])
def test_a_gzip_bomb(name, tmp_path, refused):
    start = b'<PubmedArticleSet>' if '.xml' in name else b''
    if '.tar' in name:  # one picture that has no end
        start = tarfile.TarInfo('a.jpg')
        start.size = 2**33 - 1
        start = start.tobuf()
    member = gzip.compress(
        (b'<a/>' if start else b'    ') * 2**22, 9
    )  # members of a gzip file stand behind each other
    (tmp_path / name).write_bytes(gzip.compress(start) + member * 600)  # 10 GB
    line = refused('corpus', f'--config.corpus.inputs={tmp_path / name}')
    assert f'{name}: unpacks to more than 200 times its size' in line


@pytest.mark.parametrize('name', ['a.jsonl', 'a.json', 'a.nbib', 'a.txt', 'a.xml'])
def test_a_line_or_record_without_end(name, tmp_path, refused, monkeypatch):
    monkeypatch.setattr(stored, 'LONGEST_LINE', 2**20)
    monkeypatch.setattr(stored.opened.__wrapped__, '__defaults__', (lambda read: None, 2**20))
    monkeypatch.setattr('bioptimus_jax.corpus.pieces.LONGEST_RECORD', 2**20)
    start = {'a.xml': b'<PubmedArticleSet>', 'a.json': b'[\n"'}.get(name, b'')
    (tmp_path / name).write_bytes(start + b'<a/>' * 2**19)
    line = refused('corpus', f'--config.corpus.inputs={tmp_path / name}')
    assert f'{name}: has a line or record longer than 1 MiB' in line


def test_names_cannot_write_on_the_terminal(tmp_path, refused):
    name = 'a\nbioptimus: done\x1b[2J\x1b]0;owned\x07\u202e.txt'
    (tmp_path / name).write_bytes(b'')
    line = refused('corpus', f'--config.corpus.inputs={tmp_path / "a*.txt"}')
    assert 'a bioptimus: done\\x1b[2J\\x1b]0;owned\\x07\\u202e.txt: is empty' in line
    assert all(character.isprintable() for character in line.rstrip('\n'))
    (tmp_path / 'b\udcff.txt').write_text('words')
    line = refused('corpus', f'--config.corpus.inputs={tmp_path / "b*.txt"}')
    assert 'b\\udcff.txt: its name is not UTF-8; rename it' in line


# ---- models: weights, configs, tokenizers


@pytest.fixture
def model(tmp_path):
    """A Hugging Face folder that every verb takes, but for what a test does to it."""
    rng = np.random.default_rng(0)
    folder = tmp_path / 'model'
    make(VOCABULARY, True).save(folder, 32)
    shape = dict(vocab_size=len(VOCABULARY), max_position_embeddings=32, type_vocab_size=2, **SHAPE)
    write_json(folder / 'config.json', dict(model_type='bert', architectures=['BertForMaskedLM'], **shape))
    size, wide = SHAPE['hidden_size'], SHAPE['intermediate_size']
    layer = 'encoder.layer.0.'
    shapes = {
        **{f'embeddings.{k}_embeddings.weight': (n, size) for k, n in
           (('word', len(VOCABULARY)), ('position', 32), ('token_type', 2))},
        **{f'{layer}attention.self.{k}.weight': (size, size) for k in ('query', 'key', 'value')},
        **{f'{layer}attention.self.{k}.bias': (size,) for k in ('query', 'key', 'value')},
        f'{layer}attention.output.dense.weight': (size, size),
        f'{layer}attention.output.dense.bias': (size,),
        f'{layer}intermediate.dense.weight': (wide, size),
        f'{layer}intermediate.dense.bias': (wide,),
        f'{layer}output.dense.weight': (size, wide),
        f'{layer}output.dense.bias': (size,),
    }  # fmt: skip
    for place in ('embeddings', f'{layer}attention.output', f'{layer}output'):
        shapes |= {f'{place}.LayerNorm.{k}': (size,) for k in ('weight', 'bias')}
    state = {f'bert.{k}': rng.normal(size=s).astype(np.float32) for k, s in shapes.items()}
    safetensors.numpy.save_file(state, folder / 'model.safetensors', metadata={'format': 'pt'})
    return folder


@pytest.fixture
def ner(tmp_path):
    for split in ('train', 'devel', 'test'):
        (tmp_path / 'ner' / 'set').mkdir(parents=True, exist_ok=True)
        (tmp_path / 'ner' / 'set' / f'{split}.tsv').write_text('the\tO\ndrug\tB-X\n\n')
    return tmp_path / 'ner'


@pytest.fixture
def verbs(tmp_path, model, ner):
    """The two programs that read a model: our own reader, and transformers."""
    for stage in ('vocab', 'contexts'):
        make(VOCABULARY, True).save(tmp_path / 'run' / stage, 32)
        write_json(tmp_path / 'run' / stage / 'manifest.json', {'content': stage, 'counts': {}})
    return {
        'surgery': (
            f'--config.source.path={model}',
            '--config.surgery.strategy=averaged_input',
            '--config.rows.max_document_pieces=32',
        ),
        'finetune': (
            f'--config.finetune.folder={ner}',
            f'--config.finetune.models={model}',
            '--config.finetune.max_pieces=16',
            '--config.finetune.overlap_pieces=4',
        ),
    }


def pickled(folder, value):
    import torch

    (folder / 'model.safetensors').unlink()
    torch.save({'bert.embeddings.word_embeddings.weight': value}, folder / 'pytorch_model.bin')


@pytest.mark.parametrize('verb', ['surgery', 'finetune'])
def test_pickled_weights_with_code(verb, verbs, model, refused):
    pickled(model, Bomb(refused.ran))
    line = refused(verb, *verbs[verb])
    assert str(model) in line
    assert 'is refused: it would run io.open when loaded; weights are only numbers' in line


def header(folder, value, length=None):
    content = json.dumps(value).encode()
    (folder / 'model.safetensors').write_bytes(
        struct.pack('<Q', length or len(content)) + content + bytes(64)
    )


HEADERS = {
    'endless header': lambda f: header(f, {}, 2**63),
    'huge tensor': lambda f: header(
        f, {'a': {'dtype': 'F32', 'shape': [2**40, 2**40], 'data_offsets': [0, 2**62]}}
    ),
    'overflow': lambda f: header(f, {'a': {'dtype': 'F32', 'shape': [2**62, 16], 'data_offsets': [0, 64]}}),
    'overlap': lambda f: header(
        f, {n: {'dtype': 'F32', 'shape': [16], 'data_offsets': [0, 64]} for n in ('a', 'b')}
    ),
}


@pytest.mark.parametrize('verb', ['surgery', 'finetune'])
@pytest.mark.parametrize('kind', HEADERS)
def test_a_safetensors_header_that_lies(kind, verb, verbs, model, refused):
    HEADERS[kind](model)
    assert str(model) in refused(verb, *verbs[verb])


@pytest.mark.parametrize('name', ['../elsewhere.safetensors', '/elsewhere.safetensors', 'evil.bin', '', '.'])
def test_an_index_that_points_elsewhere(name, verbs, model, refused):
    (model / 'model.safetensors').rename(model.parent / 'elsewhere.safetensors')
    (model / 'evil.bin').write_bytes(b'')
    write_json(model / 'model.safetensors.index.json', {'weight_map': {'bert.a': name}})
    line = refused('surgery', *verbs['surgery'])
    assert f'names {name!r}; a .safetensors file beside the index is expected' in line


def change(file, **values):
    write_json(file, json.loads(file.read_text()) | values)


@pytest.mark.parametrize(
    'values',
    [
        {'vocab_size': 10**12},
        {'hidden_size': 2**40},
        {'num_hidden_layers': 10**9},
        {'num_hidden_layers': -1},
        {'num_attention_heads': 0},
        {'hidden_size': -8},
        {'intermediate_size': 1.5},
        {'max_position_embeddings': True},
        {'hidden_size': 1e400},
    ],
    ids=str,
)
def test_absurd_sizes_in_config_json(values, verbs, model, refused):
    change(model / 'config.json', **values)
    assert str(model) in refused('surgery', *verbs['surgery'])


def test_a_model_that_brings_its_own_code(verbs, model, refused):
    (model / 'evil.py').write_text(f'open({str(refused.ran)!r}, "w")\nclass C: pass\n')
    names = dict.fromkeys(('AutoConfig', 'AutoModelForTokenClassification', 'AutoModelForMaskedLM'), 'evil.C')
    change(model / 'config.json', model_type='evil', auto_map=names)
    assert 'only "albert", ' in refused('surgery', *verbs['surgery'])
    assert str(model) in refused('finetune', *verbs['finetune'])


def test_a_tokenizer_that_brings_its_own_code(model, ner, refused):
    (model / 'evil.py').write_text(f'open({str(refused.ran)!r}, "w")\nclass C: pass\n')
    settings = dict(tokenizer_class='Evil', auto_map={'AutoTokenizer': ['evil.C', 'evil.C']})
    change(model / 'tokenizer_config.json', **settings)
    change(model / 'config.json', model_type='evil')
    assert str(model) in refused('lint', f'--sets={ner}', f'--model={model}')


# ---- NER sets


@pytest.mark.parametrize('flaw', ['length', 'offset', 'name'])
def test_an_arrow_file_that_lies(flaw, tmp_path, refused):
    """A body of an exabyte; a text that begins behind the file; a file of another folder."""
    folder = save_to_disk(tmp_path / 'saved', {'id': ['a', 'b'], 'text': ['x' * 40, 'y' * 24]}, shards=1)
    file = folder / 'data-00000-of-00001.arrow'
    content = bytearray(file.read_bytes())
    if flaw == 'offset':
        at = content.index(struct.pack('<iii', 0, 40, 64))
        content[at + 4 : at + 8] = struct.pack('<i', 2**30)
    elif flaw == 'length':  # of the body of the message that holds the rows
        _, message = itertools.islice(pyarrow.ipc.MessageReader.open_stream(bytes(content)), 2)
        at = content.index(struct.pack('<q', message.body.size))
        content[at : at + 8] = struct.pack('<q', 2**60)
    else:
        (folder / 'state.json').write_text('{"_data_files": [{"filename": "../secret.arrow"}]}')
    file.write_bytes(content)
    line = refused('corpus', f'--config.corpus.inputs={folder}', '--config.corpus.text_fields=text')
    assert (
        'names the file' in line
        if flaw == 'name'
        else 'is not in Arrow format, or is cut off or damaged' in line
    )


def test_a_tfds_folder_that_names_code(tmp_path, refused, monkeypatch):
    (tmp_path / 'evil_features.py').write_text(f'open({str(refused.ran)!r}, "w")\n')
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / 'sets' / 'set'
    folder.mkdir(parents=True)
    write_json(
        folder / 'dataset_info.json', {'name': 'set', 'version': '1.0.0', 'fileFormat': 'array_record'}
    )
    inner = {'pythonClassName': 'evil_features.Text', 'jsonFeature': {'json': '{}'}}
    outer = 'tensorflow_datasets.core.features.features_dict.FeaturesDict'
    for value in (
        inner,
        {'pythonClassName': outer, 'featuresDict': {'features': {'tokens': inner}}},
        {'type': 'evil_features.Text', 'content': {}},
        {
            'pythonClassName': outer,
            'jsonFeature': {'json': json.dumps({'a': {'type': 'evil_features.Text'}})},
        },
    ):
        write_json(folder / 'features.json', value)
        line = refused('lint', f'--sets={tmp_path / "sets"}')
        assert "features.json: names the class 'evil_features.Text'" in line


@pytest.mark.parametrize(
    ('name', 'content', 'said'),
    [
        (
            'train.xml',
            '<!DOCTYPE collection [<!ENTITY a SYSTEM "secret.txt">]><collection>&a;</collection>',
            None,
        ),
        ('train.jsonl', '[' * 100_000, 'is not JSON (too deep)'),
        ('train.json', '{"text": "a", "entities": [[0, ' + '9' * 5000 + ', "D"]]}', 'train.json:1: '),
        ('train.csv', 'text,label\n"' + 'a' * 99, 'is not comma-separated text'),
        ('train.jsonl.gz', gzip.compress(b' ' * 2**25), 'unpacks to more than 200 times its size'),
    ],
)
def test_foreign_files_that_are_made_to_break_readers(name, content, said, tmp_path, refused):
    for split in ('train', 'devel', 'test'):
        whole = content if isinstance(content, bytes) else content.encode()
        (tmp_path / 'sets' / 'x').mkdir(parents=True, exist_ok=True)
        (tmp_path / 'sets' / 'x' / name.replace('train', split)).write_bytes(whole)
    assert (said or 'declares entities of its own') in refused('lint', f'--sets={tmp_path / "sets"}')


# ---- download


def test_names_and_answers_of_a_server_that_lies(tmp_path, capsys, monkeypatch):
    """Names in its list that lead elsewhere, and a list without end."""
    monkeypatch.setenv('NO_PROXY', '127.0.0.1')
    pages = {
        '/a/baseline/': b'<html><a href="../../../../evil.xml.gz"><a href="/..%2f..%2fpubmed26n0001.xml.gz">'
        b'<a href="pubmed26n0001.xml.gz/../../x"><a href="pubmed26n0001.xml.gz%00"></html>',
        '/b/baseline/': b'<html>' + b' ' * 2**25,
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):  # the program may have heard enough
                self.wfile.write(pages.get(self.path, b''))

        def log_message(self, *_):
            pass

    with HTTPServer(('127.0.0.1', 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        for name, expected in (('a', 'links to no file like'), ('b', 'answers with more than 16 MiB')):
            url = f'http://127.0.0.1:{server.server_port}/{name}'
            assert cli.main(['download', f'--to={tmp_path / "to"}', f'--url={url}', '--what=baseline']) == 3
            error = capsys.readouterr().err
            assert (error.count('\n'), expected in error) == (1, True), error
        server.shutdown()
    assert {f.name for f in tmp_path.rglob('*')} == {'to'}

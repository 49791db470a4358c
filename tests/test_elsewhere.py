"""What is kept and exported, in other libraries: as a component of spaCy, as the backbone of GLiNER."""

import itertools
import re
import runpy
import sys

import pytest
import torch
import transformers
from toy_docs import DOCS, blocks_of
from toy_sets import OTHER, TYPES, load_tagger, save_encoder, save_set, settings

import bioptimus_jax as bx
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.finetuning.stored import save_model
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES


@pytest.fixture
def tagger(tmp_path):
    """The folder of a kept tagger with a chain that says anything, since it has learned nothing."""
    encoder = save_encoder(tmp_path / 'tiny', layers=1, initializer_range=0.5)
    tokenizer, head = load_tagger(encoder, [*TYPES, 'Dose'], settings(head='crf'), 0)
    for tensor in head.own_tensors.values():
        torch.nn.init.normal_(tensor, generator=torch.Generator().manual_seed(1))
    save_model(ENTITIES, tokenizer, head, Reads(64, 8), tmp_path / 'kept')
    return tmp_path / 'kept'


def written(page, folder):
    """The files that a page shows, in a folder."""
    for block in blocks_of((DOCS / 'howto' / f'{page}.md').read_text('utf-8')):
        if block.title:
            (folder / block.title).write_text(block.text)


# spaCy imports every package that offers it components; pysbd's first import is compiled with a warning.
@pytest.mark.filterwarnings('ignore:invalid escape sequence')
def test_the_component_of_the_page_says_in_spacy_what_predict_says(tagger, tmp_path, monkeypatch, capsys):
    spacy = pytest.importorskip('spacy', reason='spaCy is not installed (extra bench)')
    written('spacy', tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    script = (tmp_path / 'tag.py').read_text().replace('runs/first/finetune/0.4', str(tagger))
    (tmp_path / 'tag.py').write_text(script)
    runpy.run_path(str(tmp_path / 'tag.py'))
    assert capsys.readouterr().out.count('[') == 2
    nlp = spacy.blank('en')
    nlp.add_pipe('bioptimus_tagger', config={'model': str(tagger)})
    texts = [' '.join(words) for words in itertools.permutations(OTHER, 3)][:90]
    said = bx.predict(tagger, texts)
    tagged = list(nlp.pipe([' ', *texts[:70], '', *texts[70:]]))
    assert [doc.text for doc in tagged if doc.text.strip()] == texts
    assert not tagged[0].ents
    for one, doc in zip(said, (doc for doc in tagged if doc.text.strip()), strict=True):
        # Words of these texts are tokens of spaCy, so nothing is widened.
        assert [[e.start_char, e.end_char, e.label_] for e in doc.ents] == one['entities']
        assert doc.user_data['bioptimus'] == one['entities']
    assert sum(len(one['entities']) for one in said) > 90
    # A token of spaCy that is several words here: what was widened overlaps no more.
    doc = nlp('dose-2 p<0.05 IL-2 and/or')
    assert len(doc) == 4
    assert len(doc.user_data['bioptimus']) > len(doc.ents) > 0
    nlp.to_disk(tmp_path / 'pipeline')
    again = spacy.load(tmp_path / 'pipeline')
    assert again(texts[0]).to_json()['ents'] == nlp(texts[0]).to_json()['ents']
    sys.modules.pop('tagging')


@pytest.mark.filterwarnings('default')  # of another library, in a version that is not ours
@pytest.mark.parametrize('kind', ['bert', 'modernbert'])
def test_an_export_is_the_backbone_of_gliner(kind, tmp_path, monkeypatch, capsys):
    """The weights are the export's, words keep their spaces, and what the script of the page saves is loaded."""
    gliner = pytest.importorskip('gliner', reason='gliner is not installed: it needs an older transformers')
    written('gliner', tmp_path)
    folder = save_encoder(tmp_path / kind, kind, layers=1)
    data = save_set(tmp_path / 'drugs', (8, 8, 8))
    encoder = transformers.AutoModel.from_pretrained(folder).state_dict()
    config = gliner.GLiNERConfig(model_name=str(folder), max_len=20, max_width=4, hidden_size=32)
    begun = gliner.GLiNER.from_config(config).model.token_rep_layer.bert_layer.model.state_dict()
    for name, tensor in encoder.items():
        # It has rows for three tokens of its own, and no use for a pooler.
        assert name.startswith('pooler.') or torch.equal(begun[name][: len(tensor)], tensor), name
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'argv', ['zero_shot.py', str(folder), str(data), 'out', '1'])
    runpy.run_path('zero_shot.py')
    assert re.search(r'^\[.*\]$', capsys.readouterr().out, re.M)
    reader = gliner.GLiNER.from_pretrained('out').data_processor.transformer_tokenizer
    pieces = reader(['the', 'patient'], is_split_into_words=True, add_special_tokens=False)['input_ids']
    begins = {'bert': ['the', 'patient'], 'modernbert': ['Ġthe', 'Ġpatient']}[kind]
    assert reader.convert_ids_to_tokens(pieces) == begins

#!/usr/bin/env bash
# kindred 2.8.4: of a BioC file in which relations stand at the end of the document, `kindred.load('biocxml', path)` reads
# none, and what it reads of two passages it writes as two documents.
#   - BioC has relations in passages and in documents. Only those in passages are looked at. A relation of two mentions of
#     one sentence, which kindred can learn, is read where the file has it in the passage, and is left out where the file
#     has it behind the last passage.
#   - Each passage is a document of its own. `kindred.save(corpus, 'biocxml', path)` writes them so: title and abstract are
#     two documents with one identifier that both begin at 0, and mentions of the abstract have other numbers than before.
#   - `ignoreEntities=['Disease']` leaves these out of brat's files, as is documented for all formats; of BioC they all stay.
#   - `corpus.clone()`, which the README begins with, has no metadata: what is saved of it has an empty identifier.
# One would expect the relations of a file that bioc, by which kindred reads, has read whole. Nothing is raised; mentions
# are there and right, and a corpus without relations trains a model that finds none, or an error that names other things.
# Remedy: put the relations of a document into the passage that holds their mentions before loading, as below.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
# What kindred needs to load and to save; spaCy, which it imports to parse texts, is left out.
"$folder/env/bin/pip" --quiet install --no-compile --no-deps kindred==2.8.4
"$folder/env/bin/pip" --quiet install --no-compile bioc==2.1 future gdown intervaltree networkx \
  requests scikit-learn scipy six
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import bioc
import kindred

TITLE, ABSTRACT = 'Aspirin and headache.', 'Ibuprofen causes rash.'


def write(path, in_passage):
    """A document of two passages and one relation of two mentions of the second."""
    document = bioc.BioCDocument()
    document.id = '1'
    for text, offset, mentions in (
        (TITLE, 0, (('T1', 'Aspirin', 'Chemical'), ('T2', 'headache', 'Disease'))),
        (ABSTRACT, len(TITLE) + 1, (('T3', 'Ibuprofen', 'Chemical'), ('T4', 'rash', 'Disease'))),
    ):
        passage = bioc.BioCPassage()
        passage.text, passage.offset = text, offset
        for name, word, kind in mentions:
            mention = bioc.BioCAnnotation()
            mention.id, mention.text, mention.infons = name, word, {'type': kind}
            mention.add_location(bioc.BioCLocation(offset + text.index(word), len(word)))
            passage.add_annotation(mention)
        document.add_passage(passage)
    relation = bioc.BioCRelation()
    relation.id, relation.infons = 'R1', {'type': 'causes'}
    relation.add_node(bioc.BioCNode('T3', 'agent'))
    relation.add_node(bioc.BioCNode('T4', 'effect'))
    (document.passages[1] if in_passage else document).add_relation(relation)
    collection = bioc.BioCCollection()
    collection.add_document(document)
    with open(path, 'w') as file:
        bioc.dump(collection, file)


for path, in_passage in (('passage.bioc.xml', True), ('document.bioc.xml', False)):
    write(path, in_passage)
    with open(path) as file:
        (document,) = bioc.load(file).documents
    assert len(document.relations) + sum(len(passage.relations) for passage in document.passages) == 1
    corpus = kindred.load('biocxml', path)
    print(f'{path}: {len(corpus.documents)} documents, {len(corpus.getRelations())} relations')
    assert len(corpus.documents) == 2
    assert len(corpus.getRelations()) == int(in_passage), 'relations of documents are read now'
    fewer = kindred.load('biocxml', path, ignoreEntities=['Disease'])
    left = sum(entity.entityType == 'Disease' for document in fewer.documents for entity in document.entities)
    assert left == 2, 'ignoreEntities is looked at now'

kindred.save(kindred.load('biocxml', 'passage.bioc.xml'), 'biocxml', 'again.bioc.xml')
with open('again.bioc.xml') as file:
    again = bioc.load(file).documents
places = [passage.annotations[0].locations[0].offset for document in again for passage in document.passages]
print(f'written again: documents {[document.id for document in again]}, Aspirin and Ibuprofen at {places}')
assert [document.id for document in again] == ['1', '1'] and places == [0, 0], 'passages are kept together now'
kindred.save(kindred.load('biocxml', 'passage.bioc.xml').clone(), 'biocxml', 'clone.bioc.xml')
with open('clone.bioc.xml') as file:
    assert not any(document.id for document in bioc.load(file).documents), 'clones keep the identifier now'

# The remedy.
with open('document.bioc.xml') as file:
    collection = bioc.load(file)
for document in collection.documents:
    for relation in document.relations:
        wanted = {node.refid for node in relation.nodes}
        for passage in document.passages:
            if wanted <= {mention.id for mention in passage.annotations}:
                passage.add_relation(relation)
with open('moved.bioc.xml', 'w') as file:
    bioc.dump(collection, file)
assert len(kindred.load('biocxml', 'moved.bioc.xml').getRelations()) == 1
PYTHON
echo 'As stated: a relation that stands in the document is not read, and each passage becomes a document.'

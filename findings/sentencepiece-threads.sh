#!/usr/bin/env bash
# sentencepiece 0.2.3: the vocabulary that its unigram trainer makes depends on `num_threads`, whose default is 16 on any
# machine. Equal settings and text give the same file each time, but with one thread other scores than with 16, and so
# another file with another checksum; where two ways to cut a word are level, other pieces. So whoever writes num_threads=os.cpu_count() gets another tokenizer on another machine, and nothing
# in the documentation of the trainer says that speed is not all that it changes. Byte pairs do not depend on it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install sentencepiece==0.2.3
"$folder/env/bin/python" - <<'PYTHON'
import io
import random

import sentencepiece

draw = random.Random(0)
parts = ['nephr', 'cardi', 'hepat', 'itis', 'osis', 'opathy', 'al', 'ic', 'o', 'an', 'ti', 'kin', 'ase', 'in', 'e', 'logy']
words = [''.join(draw.choice(parts) for _ in range(draw.randint(1, 5))) for _ in range(3000)]
texts = [' '.join(draw.choice(words) for _ in range(20)) for _ in range(3000)]


def trained(kind, threads):
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=file, model_type=kind, vocab_size=1500, num_threads=threads,
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
    return [(model.id_to_piece(i), model.get_score(i)) for i in range(model.get_piece_size())]


for kind in ('unigram', 'bpe'):
    one, again, many = trained(kind, 1), trained(kind, 1), trained(kind, 16)
    other = len({piece for piece, _ in one} - {piece for piece, _ in many})
    moved = sum(dict(many).get(piece) != score for piece, score in one)
    print(f'{kind}: the same with one thread twice: {one == again}; with 16, {moved} of {len(one)} scores and {other} pieces differ')
    assert one == again
    assert (one != many) is (kind == 'unigram'), 'threads decide otherwise now'
PYTHON
echo 'As stated: unigram scores depend on the number of threads.'

#!/bin/sh
# The first hour of a new user, command by command, in an empty folder: fine-tune on own sentences, apply the tagger, adapt
# the model to own texts in so many hours, interrupt that, resume it, load the result in transformers, apply it.
#
#     SOURCE=model SETS=sets TEXTS='abstracts/*.jsonl.gz' HOURS=0.2 sh first_hour.sh [config.KEY=VALUE ...]
#
# SOURCE is a folder or a hub id. Keys are those of fine-tuning and adaptation alike. It prints what each step took, and ends
# with the first step that fails. tests/test_first_hour.py runs it in small; LOG.md has its minutes with a real model.
set -eu
began=$(date +%s)

step() {
    echo "== $(($(date +%s) - began)) s: $*"
}

keys=$(for key in "$@"; do printf ' --%s' "$key"; done)

step 'what is here'
bioptimus doctor > doctor.txt

step 'are the sets as I think they are'
bioptimus lint --sets="$SETS" --model="$SOURCE"

step 'a tagger, by the defaults'
# shellcheck disable=SC2086 -- a key is a word
bioptimus finetune --config=finetune --workdir=tagger --config.finetune.folder="$SETS" --config.finetune.models="$SOURCE" \
    --config.finetune.keep=best --config.finetune.seeds=0 --config.runtime.torch_threads=2 $keys

step 'applied to a sentence'
bioptimus predict tagger --text='Naloxone reverses the clonidine effect, not nephropathy.'

step "adaptation in $HOURS hours"
# shellcheck disable=SC2086
bioptimus init mine.py --source="$SOURCE" --texts="$TEXTS" --sets="$SETS" --hours="$HOURS" $keys
bioptimus plan --config=mine.py
adapting=$(date +%s)
bioptimus run --config=mine.py --workdir=mine &
running=$!

step 'interrupted in training'
until [ -s mine/pretrain/curriculum.json ] && grep -q '"kind": "train"' mine/metrics.jsonl; do
    kill -0 "$running"
    sleep 0.1
done
kill -TERM "$running"
code=0
wait "$running" || code=$?
[ "$code" -eq 75 ] || { echo "exit code $code, not 75, after SIGTERM"; exit 1; }
bioptimus status mine

step 'resumed'
bioptimus run --config=mine.py --workdir=mine
echo "adapted in $(($(date +%s) - adapting)) s of $HOURS h"

step 'loaded in transformers'
python -c "
from transformers import pipeline
for found in pipeline('fill-mask', 'mine/export/words')('Naloxone reverses opioid [MASK].', top_k=3):
    print(found['token_str'], round(found['score'], 3))
"

step 'applied'
bioptimus predict mine/export/words --text='Aspirin is a [MASK].'

step 'done'

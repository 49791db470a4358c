#!/usr/bin/env bash
# Every initialisation of the paper's Table 2, rescaled and literal, and the control, with one corpus, vocabulary, contexts and rows.
# Usage: launch/initialisations.sh BASE_RUN FOLDER [--config.key=value ...]
#   BASE_RUN  a finished `bioptimus run --config=small` (or as far as its stage `rows`)
#   FOLDER    holds one run folder per arm; start the same command again to go on
# Example: launch/initialisations.sh runs/small runs/arms --config.source.path=runs/small-source/export/0.1
set -euo pipefail

if [[ $# -lt 2 || $1 == -* ]]; then
  sed -n '2,6s/^# //p' "$0"
  exit 2
fi
base=$1 folder=$2
shift 2

for arm in contextualized averaged_last averaged_input random_rows copy scratch contextualized_literal averaged_last_literal; do
  extra=()
  # `copy` keeps the source's vocabulary: its hidden words must fit under the new one too.
  [[ $arm == copy ]] && extra+=(--config.analysis.reference_vocab="$base/vocab/vocab.txt")
  echo "== $arm"
  bioptimus run --config="ablations:$arm" --workdir="$folder/$arm" --config.runtime.base_run="$base" "${extra[@]}" "$@"
done
bioptimus compare --config=ablations:contextualized "$folder"/*/ "$@"

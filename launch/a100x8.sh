#!/usr/bin/env bash
# One host with eight GPUs, one process: jax sees all of them and the mesh spans them.
#
#   launch/a100x8.sh [--dry-run] --config=bioptimus --workdir=DIR [--config.key=value ...]
#
# Exit code 75 means stopped after saving: the same command is started again. Anything else ends the script.
set -euo pipefail

dry_run=false
if [[ "${1:-}" == --dry-run ]]; then
  dry_run=true
  shift
fi
command=("${BIOPTIMUS:-bioptimus}" run "$@")

# Eager allocation of GPU memory would starve PyTorch in the later stages of the same run.
export XLA_PYTHON_CLIENT_PREALLOCATE="${XLA_PYTHON_CLIENT_PREALLOCATE:-false}"
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0,1,2,3,4,5,6,7}"

if $dry_run; then
  echo "CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES ${command[*]}"
  exit 0
fi

child=
stopping=false
forward() {
  stopping=true
  [[ -n "$child" ]] && kill -TERM "$child" 2>/dev/null
}
trap forward TERM INT

while true; do
  "${command[@]}" &
  child=$!
  code=0
  wait "$child" || code=$?
  # A signal ends `wait` early; the program is still saving.
  while kill -0 "$child" 2>/dev/null; do
    code=0
    wait "$child" || code=$?
  done
  if [[ $code -ne 75 ]] || $stopping; then
    exit "$code"
  fi
  echo "stopped after saving; starting again" >&2
done

#!/usr/bin/env bash
#SBATCH --job-name=bioptimus-array
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@300
# Cells of fine-tuning, or arms of a sweep, on as many GPUs as the array has parts: each part is a dask worker with one
# GPU, and the first also distributes the work. They may begin one after the other, and any may be lost.
#
#   sbatch --array=0-7 launch/slurm_array.sh finetune --config=NAME --workdir=DIR [--config.key=value ...]
#   sbatch --array=0-7 launch/slurm_array.sh sweep --config=NAME:ARGUMENT --workdir=DIR [--config.key=value ...]
#
# Submit it from the root of the repository, with the environment of `bioptimus` active and its extra `distributed`; all
# nodes must see DIR. Before its time limit a part saves and is queued again; the same command continues with what is
# not finished.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
[[ -f $here/supervise.sh ]] || here=${SLURM_SUBMIT_DIR:-.}/launch # sbatch runs a copy of this file
[[ -f $here/supervise.sh ]] || { echo 'slurm_array.sh: submit it from the root of the repository' >&2 && exit 2; }
verb=finetune # unless another one is given
# shellcheck source-path=SCRIPTDIR source=supervise.sh
source "$here/supervise.sh"
read_flags "$@"

part=${SLURM_ARRAY_TASK_ID:-0} job=${SLURM_ARRAY_JOB_ID:-0} child='' helpers=() stopping=false code=75
meeting=$logs/scheduler-$job.json finished=$logs/finished-$job log=$logs/worker-$part.log
worker=(dask worker --scheduler-file="$meeting" --nthreads=1 --memory-limit=0 --death-timeout=60 --no-dashboard)
begin "${program[@]}" --config.runtime.cluster=SCHEDULER
trap 'stopping=true; [[ -z $child ]] || kill -TERM "$child" 2>/dev/null || true' TERM
trap '((${#helpers[@]} == 0)) || { kill -TERM "${helpers[@]}"; wait "${helpers[@]}"; } 2>/dev/null || true' EXIT
if ((part == ${SLURM_ARRAY_TASK_MIN:-0})); then
  rm -f "$meeting" "$finished" # left by this part, before it was queued again
  dask scheduler --scheduler-file="$meeting" --port=0 --no-dashboard >>"$logs/scheduler.log" 2>&1 & helpers+=($!)
  until [[ -s $meeting ]]; do
    kill -0 "${helpers[0]}" 2>/dev/null || refuse "dask has no scheduler here; see $logs/scheduler.log"
    sleep 0.2
  done
  "${worker[@]}" >>"$log" 2>&1 & helpers+=($!)
  address=$(sed -n 's/.*"address": *"\([^"]*\)".*/\1/p' "$meeting" | head -n 1)
  "${program[@]}" --config.runtime.cluster="$address" > >(keep "$logs/host-0.log") 2>&1 & child=$!
  ! $stopping || kill -TERM "$child" # the signal came before `child` was known
  wait_for "$child"
  ((code == 75)) || echo "$code" >"$finished"
else # this part may start before the scheduler, and loses it when the first part is queued again
  until [[ -f $finished ]] || $stopping; do
    [[ ! -s $meeting ]] || { "${worker[@]}" >>"$log" 2>&1 & child=$!; }
    while [[ -n $child ]] && kill -0 "$child" 2>/dev/null; do
      [[ ! -f $finished ]] || kill -TERM "$child" || true
      sleep 0.2
    done
    child='' && sleep 0.2
  done
  [[ ! -f $finished ]] || code=0
fi
((code == 75)) || exit "$code"
say 'stopped after saving; queued again' && scontrol requeue "$SLURM_JOB_ID"

#!/usr/bin/env bash
#SBATCH --job-name=bioptimus
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@300
# One process per node, for all of its GPUs; five minutes before the time limit the run saves and is queued again.
# With `sbatch --nodes=N` the processes train together; DIR must lie where all nodes see it.
#
#   sbatch launch/slurm.sh --config=bioptimus --workdir=DIR [--config.key=value ...]
#   bash launch/slurm.sh --dry-run --config=bioptimus --workdir=DIR      shows the command
#
# The environment of `bioptimus` must be active, or BIOPTIMUS must name the program.
set -euo pipefail

dry_run=false
if [[ "${1:-}" == --dry-run ]]; then
  dry_run=true
  shift
fi
nodes=${SLURM_NNODES:-1}
command=("${BIOPTIMUS:-bioptimus}" run "$@")
((nodes > 1)) && command+=(--config.runtime.distributed=auto)
export XLA_PYTHON_CLIENT_PREALLOCATE="${XLA_PYTHON_CLIENT_PREALLOCATE:-false}"

if $dry_run; then
  echo "srun --ntasks=$nodes --ntasks-per-node=1 ${command[*]}"
  exit 0
fi

# Without --kill-on-bad-exit=0 srun would turn exit code 75 into its own.
srun --ntasks="$nodes" --ntasks-per-node=1 --kill-on-bad-exit=0 "${command[@]}" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM
code=0
wait "$child" || code=$?
while kill -0 "$child" 2>/dev/null; do
  code=0
  wait "$child" || code=$?
done

if [[ $code -eq 75 ]]; then
  echo "stopped after saving; queued again" >&2
  scontrol requeue "$SLURM_JOB_ID"
  exit 0
fi
exit "$code"

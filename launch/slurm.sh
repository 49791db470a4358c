#!/usr/bin/env bash
#SBATCH --job-name=bioptimus
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@300
# One process per node, for all of its GPUs; with --nodes=N the N processes train together.
#
#   sbatch [--nodes=N] launch/slurm.sh --config=bioptimus --workdir=DIR [--config.key=value ...]
#   bash launch/slurm.sh --dry-run --config=bioptimus --workdir=DIR      shows the command
#
# Submit it from the root of the repository, with the environment of `bioptimus` active; all nodes must see DIR.
# Process I writes to DIR/logs/host-I.log. Five minutes before the time limit, and when the job is preempted with a
# grace time, the run saves and the job is queued again. Any other exit code is passed on.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
[[ -f $here/supervise.sh ]] || here=${SLURM_SUBMIT_DIR:-.}/launch # sbatch runs a copy of this file
[[ -f $here/supervise.sh ]] || { echo 'slurm.sh: submit it from the root of the repository' >&2 && exit 2; }
# shellcheck source-path=SCRIPTDIR source=supervise.sh
source "$here/supervise.sh"
read_flags "$@"

nodes=${SLURM_NNODES:-1}
[[ $nodes =~ ^[1-9][0-9]*$ ]] || refuse "SLURM_NNODES=$nodes: is no number of nodes"
((nodes == 1)) || program+=(--config.runtime.distributed=auto) # alone on its node, a process takes all GPUs
export XLA_PYTHON_CLIENT_PREALLOCATE="${XLA_PYTHON_CLIENT_PREALLOCATE:-false}"
# All end by themselves when one does; any that does not is ended two minutes after the first.
step=(srun --ntasks="$nodes" --ntasks-per-node=1 --kill-on-bad-exit=0 --wait=120
  --output="$logs/host-%t.log" --open-mode=append "${program[@]}")

begin "${step[@]}"
# SLURM signals the processes, not this script; if it signals the script, srun must not get it: it would kill them.
trap 'scancel --signal=TERM "$SLURM_JOB_ID" || true' TERM
"${step[@]}" &
wait_for $!

if ((code == 75)); then
  say 'stopped after saving; queued again'
  scontrol requeue "$SLURM_JOB_ID"
  exit 0
fi
((code == 0)) || say "ended with exit code $code; see $logs"
exit "$code"

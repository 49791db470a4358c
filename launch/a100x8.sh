#!/usr/bin/env bash
# One host with eight GPUs, one process: jax sees all of them and the mesh spans them.
#
#   launch/a100x8.sh [--dry-run] --config=bioptimus --workdir=DIR [--config.key=value ...]
#
# Its output is kept in DIR/logs/host-0.log. When the program stops after saving (exit code 75) it is restarted. On
# SIGTERM, SIGHUP or Ctrl-C to this script it saves, and the script ends with 75. Other exit codes are passed on.
#
# For several such hosts without SLURM, run the same on each, with a DIR that all of them see, and on host I of N add
#   --config.runtime.distributed=FIRST_HOST:12355,N,I
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=supervise.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervise.sh"
read_flags "$@"

# Eager allocation of GPU memory would starve PyTorch in the later stages of the same run.
export XLA_PYTHON_CLIENT_PREALLOCATE="${XLA_PYTHON_CLIENT_PREALLOCATE:-false}"
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0,1,2,3,4,5,6,7}"
host=0
for argument in "${arguments[@]}"; do
  [[ $argument != --config.runtime.distributed=*,*,* ]] || host=${argument##*,}
done

begin "${program[@]}"
supervise "$host" "${program[@]}"

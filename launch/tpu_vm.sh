#!/usr/bin/env bash
# A Cloud TPU VM, run on the VM itself. On a slice of several hosts start it on every host, with a DIR that all of them
# see and --config.runtime.distributed=auto: the first process leads, the others train with it.
#
#   launch/tpu_vm.sh [--dry-run] --config=bioptimus --workdir=DIR [--config.key=value ...]
#
# On the VM once: pip install -c constraints.txt 'jax[tpu]' .
# DIR lies on the VM's disk or on a persistent disk. A maintenance event sends SIGTERM: the run saves, exits with 75
# and is started again here when the VM stays up; after preemption start this script again, it goes on where it was.
set -euo pipefail

dry_run=false
if [[ "${1:-}" == --dry-run ]]; then
  dry_run=true
  shift
fi
command=("${BIOPTIMUS:-bioptimus}" run "$@")
export JAX_PLATFORMS="${JAX_PLATFORMS:-tpu,cpu}"

if $dry_run; then
  echo "JAX_PLATFORMS=$JAX_PLATFORMS ${command[*]}"
  exit 0
fi

while true; do
  code=0
  "${command[@]}" || code=$?
  [[ $code -eq 75 ]] || exit "$code"
  echo "stopped after saving; starting again in 20 s" >&2
  sleep 20
done

#!/usr/bin/env bash
# A Cloud TPU VM, run on the VM itself. For a slice of several hosts see tpu_pod.sh, which runs this on each of them.
#
#   launch/tpu_vm.sh [--dry-run] --config=bioptimus --workdir=DIR [--config.key=value ...]
#
# Once on the VM: pip install -c constraints.txt '.[tpu,remote]'. PyTorch leaves a TPU idle, so in fine-tuning jax computes
# the encoders (config.finetune.encoder).
# DIR is gs://BUCKET/FOLDER, or on a persistent disk or a share. Worker N writes to DIR/logs/host-N.log (for a bucket: to
# logs/ on this disk). A maintenance event sends SIGTERM: the run saves, and is restarted here if the VM stays up. After
# a preemption rerun this script: the run continues where it was. On SIGTERM, SIGHUP or Ctrl-C it saves and ends with 75.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=supervise.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervise.sh"
read_flags "$@"

export JAX_PLATFORMS="${JAX_PLATFORMS:-tpu,cpu}"
host=$(hostname)
[[ $host =~ -w-([0-9]+)$ ]] && host=${BASH_REMATCH[1]} || host=0 # the names of a slice's hosts end in their number

begin "${program[@]}"
supervise "$host" "${program[@]}"

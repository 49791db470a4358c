#!/usr/bin/env bash
# A Cloud TPU slice of several hosts, started from your own machine: runs tpu_vm.sh on every host, over gcloud's ssh.
#
#   launch/tpu_pod.sh --tpu=NAME --zone=ZONE [--project=PROJECT] [--folder=bioptimus_jax] [--dry-run]
#       --config=bioptimus --workdir=DIR [--config.key=value ...]
#
# Every host must have this repository in FOLDER with the program in its .venv (or on PATH); DIR is gs://BUCKET/FOLDER, or
# a share that all hosts mount. The script ends when the run does; on Ctrl-C or SIGTERM all hosts save and stop. The run
# does not need this connection: if it breaks, the hosts continue, and DIR/logs shows how far they are. After a
# preemption recreate the slice and rerun the same command: the run continues where it was.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=supervise.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervise.sh"

tpu='' folder=bioptimus_jax where=() rest=()
for argument in "$@"; do
  case $argument in
    --tpu=*) tpu=${argument#*=} ;;
    --zone=* | --project=*) where+=("$argument") ;;
    --folder=*) folder=${argument#*=} ;;
    *) rest+=("$argument") ;;
  esac
done
read_flags "${rest[@]}"
[[ -n $tpu ]] || refuse '--tpu=NAME is missing: the name of the slice'

on_all_hosts=(gcloud compute tpus tpu-vm ssh "$tpu" "${where[@]}" --worker=all)
printf -v arguments_quoted '%q ' "${arguments[@]}" --config.runtime.distributed=auto
# In a session of its own, so that it outlives a broken connection.
printf -v folder_quoted %q "${folder#\~/}" # ssh begins in the home folder
start="cd $folder_quoted && setsid -w launch/tpu_vm.sh $arguments_quoted</dev/null >/dev/null 2>&1"

show "${on_all_hosts[@]}" --command="$start"
trap '"${on_all_hosts[@]}" --command="pkill -TERM -f \"^bash launch/tpu_vm[.]sh\"" || true' TERM INT
"${on_all_hosts[@]}" --command="$start" &
wait_for $!
((code == 0)) || say "ended with exit code $code; see $logs on the hosts; the same command goes on from the last checkpoint"
exit "$code"

#!/usr/bin/env bash
# Several processes on this machine that train together: one for each GPU, or some to try it out on a laptop.
#
#   launch/local.sh [--processes=2] [--port=PORT] [--dry-run] --config=NAME --workdir=DIR [--config.key=value ...]
#
# Process I sees GPU number I, unless CUDA_VISIBLE_DEVICES is set, and writes to DIR/logs/host-I.log; number 0 is shown.
# When one fails or is killed, all end, and the script exits with its code (137: killed); the same command continues
# from the last checkpoint. On SIGTERM, SIGHUP or Ctrl-C all save, and the script ends with 75.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=supervise.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervise.sh"

processes=2 port=$((20000 + $$ % 20000)) rest=()
for argument in "$@"; do
  case $argument in
    --processes=*) processes=${argument#*=} ;;
    --port=*) port=${argument#*=} ;;
    *) rest+=("$argument") ;;
  esac
done
read_flags "${rest[@]}"
[[ $processes =~ ^[1-9][0-9]*$ ]] || refuse "--processes=$processes: give a number"
begin "${program[@]}" --config.runtime.distributed="localhost:$port,$processes,I"
running=() stopping=false
send() { for child in "${running[@]}"; do kill "-$1" "$child" 2>/dev/null || true; done; }
trap 'stopping=true; send TERM' TERM HUP INT

start() {
  local screen=/dev/null && (($1)) || screen=/dev/stdout
  CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-$1} \
    "${program[@]}" --config.runtime.distributed="localhost:$port,$processes,$1" \
    > >(keep "$logs/host-$1.log" >$screen) 2>&1 &
  running[$1]=$!
}
# Sets `result`: 0, 75, or the exit code of the process that failed; 69 is the code of those that lost it.
finish() {
  local deadline='' who='' && result=0
  while ((${#running[@]})); do
    for i in "${!running[@]}"; do
      kill -0 "${running[i]}" 2>/dev/null && continue
      wait_for "${running[i]}"
      unset "running[i]"
      ((code == 0 || (code == 75 && result))) && continue
      ((code == 75)) || deadline=${deadline:-$((SECONDS + 60))}
      ((result % 75 && result != 69)) || { result=$code && who=$i; }
    done
    [[ -z $deadline ]] || ((SECONDS < deadline)) || send KILL
    sleep 0.2 || true
  done 2>/dev/null # without bash's own notices
  ((result % 75 == 0)) || say "process $who ended with exit code $result, and the others with it ($logs/host-$who.log);" \
    'the same command goes on from the last checkpoint'
}
while true; do
  for ((i = 0; i < processes; i++)); do start "$i"; done
  ! $stopping || send TERM # the signal came before all were known
  finish
  ((result == 75)) && ! $stopping || exit "$result"
  say 'stopped after saving; starting again'
done

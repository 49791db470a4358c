# shellcheck shell=bash
# Shared by the scripts in this folder, which source it. Everything is logged in WORKDIR/logs: in host-N.log what process
# N printed, in launch.log what the script did. BIOPTIMUS_LOGS names another folder, BIOPTIMUS another program.

arguments=() workdir='' dry_run=false logs='' script=$(basename "$0")
PATH=$PATH:$(dirname "${BASH_SOURCE[0]}")/../.venv/bin # from `make setup`, if no environment is active

say() { # the terminal may be closed
  { echo "$script: $*" >&2 || true; } && { [[ ! -d $logs ]] || echo "$script: $*" >>"$logs/launch.log"; }
}
refuse() { say "$1" && exit 2; }
# The flags that all scripts know; the rest is for the program. --help prints the comment at the top of the script.
read_flags() {
  for argument in "$@"; do
    case $argument in
      --help) sed -n '/^#!/d; /^#SBATCH/d; /^#/!q; s/^# \{0,1\}//p' "$0" && exit 0 ;;
      --dry-run) dry_run=true && continue ;;
      finetune | sweep) [[ -z ${verb:-} ]] || { verb=$argument && continue; } ;; # for a script that takes a verb
      --workdir) refuse '--workdir takes its value after =: --workdir=DIR' ;;
      --workdir=*) workdir=${argument#*=} ;;
    esac
    arguments+=("$argument")
  done
  [[ -n $workdir ]] || refuse '--workdir=DIR is missing: it is where the run and its logs go'
  logs=$workdir/logs
  [[ $workdir != *://* ]] || logs=logs/${workdir##*/} # a bucket cannot be appended to
  logs=${BIOPTIMUS_LOGS:-$logs}
  # shellcheck disable=SC2034 # for the script that sources this
  program=("${BIOPTIMUS:-bioptimus}" "${verb:-run}" "${arguments[@]}")
}
show() { if $dry_run; then printf '%q ' "$@" && echo && exit 0; fi; } # what --dry-run does
begin() {
  show "$@"
  mkdir -p "$logs" || refuse "$logs: cannot be made; check its rights, or choose another --workdir"
}
# Sets `code` to the exit code of a process, once it has ended. Not by one long `wait`: the trap of a signal just before
# it would run only at the end. A signal during this short `wait` hides the code, and a second `wait` gets it.
wait_for() {
  while kill -0 "$1"; do sleep 0.2 || true; done
  code=0 last=0 && { wait "$1" || code=$?; }
  ((code < 128)) || { { wait "$1" || last=$?; } && ((last == 127)) || code=$last; }
} 2>/dev/null # without bash's own notices
keep() { trap '' TERM HUP && exec tee -ia "$1"; } # a log; signals to the whole process group may not end it first
# Runs a command as process number $1. SIGTERM, SIGHUP and Ctrl-C are passed on as SIGTERM: save and stop. After 75 it is
# restarted, unless this script received such a signal.
supervise() {
  local log=$logs/host-$1.log child='' stopping=false
  trap 'stopping=true; [[ -z $child ]] || kill -TERM "$child" 2>/dev/null || true' TERM HUP INT
  while true; do
    "${@:2}" > >(keep "$log") 2>&1 & child=$!
    ! $stopping || kill -TERM "$child" 2>/dev/null || true # the signal came before `child` was known
    wait_for "$child"
    ((code < 128)) || say "ended by signal $((code - 128)); the same command goes on from the last checkpoint"
    ((code == 75)) && ! $stopping || return "$code"
    say "stopped after saving; starting again in ${BIOPTIMUS_PAUSE:=10} s"
    sleep "$BIOPTIMUS_PAUSE" & child=$! && wait_for "$child" # a machine that is shutting down sends its signal in this time
    ! $stopping || return 75
  done
}

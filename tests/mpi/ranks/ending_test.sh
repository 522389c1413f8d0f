#!/bin/bash
# Tests how a job ends: ending_test.sh PROGRAM MPIRUN... Checks the exit codes and messages of
# ending_ranks.cc.
set -u
program=$1
shift
failures=0

# expect CODE TEXT COMMAND...: the command ends in time with this code and says this.
expect() {
  local code=$1 text=$2 output got
  shift 2
  output=$(timeout 50 "$@" 2>&1)
  got=$?
  if [ "$got" -ne "$code" ] || ! grep -qF -- "$text" <<<"$output"; then
    printf 'FAILED: %s\n  exit code %s, expected %s with "%s"; it said:\n%s\n' \
      "$*" "$got" "$code" "$text" "$output"
    failures=$((failures + 1))
  fi
}

expect 0 '' "$program" clean
expect 0 '' "$@" -n 3 "$program" clean
expect 65 'rank 2: shard 3 is damaged' "$@" -n 3 "$program" abort
expect 85 'rank 2 (host ' "$@" -n 3 "$program" unwind
expect 65 'outside: shard 3 is damaged' "$program" unwind
expect 85 'still waiting to' "$@" -n 2 "$program" hang
expect 2 'srun --mpi=pmix' env SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 "$program" clean
expect 2 'PMI_SIZE=2' env PMI_RANK=0 PMI_SIZE=2 "$program" clean

[ "$failures" -eq 0 ] && echo 'all endings as they should be'
exit "$((failures > 0))"

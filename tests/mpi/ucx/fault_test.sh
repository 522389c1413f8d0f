#!/bin/bash
# A rank dies or stops in the middle of an operation over UCX: fault_test.sh PROGRAM MPIRUN...
# The others have two seconds to say who it was: then mpirun ends them.
set -u
program=$1
shift
failures=0

# expect NAMED FAULT OPERATION DEADLINE: the ranks say this, and the job ends.
expect() {
  local named=$1 output
  shift
  output=$(timeout 50 "${launch[@]}" -n 3 "$program" "$@" 2>&1)
  if [ $? -eq 124 ] || ! grep -qE -- "$named" <<<"$output"; then
    printf 'FAILED: UCX_TLS=%s %s\n  expected "%s"; it said:\n%s\n' \
      "${UCX_TLS-}" "$*" "$named" "$output"
    failures=$((failures + 1))
  fi
}

launch=("$@")
for tls in '' tcp,self; do
  if [ -n "$tls" ]; then export UCX_TLS=$tls; else unset UCX_TLS; fi
  for operation in all_reduce small broadcast all_to_all barrier; do
    expect '^communication: .*rank 2 \(host [^)]*\) is gone' kill "$operation" 30
  done
  expect '^hang: .*rank 2 \(host ' stop all_reduce 1
done

# A fabric that is not there: what is set, what this host has, what to set.
export UCX_TLS=rc
expect '^config: .*UCX_TLS=rc, .* has .*tcp on .*For TCP alone: UCX_TLS=tcp,self' none barrier 5
unset UCX_TLS
export UCX_NET_DEVICES=mlx5_9:1
expect '^config: .*UCX_NET_DEVICES=mlx5_9:1; .* has .*tcp on .*interface that' none barrier 5

[ "$failures" -eq 0 ] && echo 'every fault was named'
exit "$((failures > 0))"

#!/usr/bin/env bash
# run.sh BUILD [ARG ...]: runs the tests in folder BUILD, except the long ones. Arguments are passed
# to ctest instead.
set -euo pipefail
build=$1
shift
log=$build/Testing/Temporary

run_ctest() {
  ctest --test-dir "$build" --output-on-failure --no-label-summary "$@" | tee "$build/ctest.log"
}

# ctest hides the output of programs that pass, including skipped cases and their reasons.
show_skips() {
  local skips
  skips=$(grep -E -A1 '^[^ ]+: Skipped$' "$1" | grep -vE ': Skipped$|^--$' || true)
  skips+=$(grep -oE "skipped '.*'|OK \(skipped=.*" "$1" | sed 's/^/\n/' || true)
  [[ -z $skips ]] || printf 'skipped:\n%s\n' "$(sort <<<"$skips" | uniq -c)"
}

# Returns whether the file $1, whose lines are NUMBER:NAME of failed tests, lists only tests with
# Slurm.
only_slurm_failed() {
  local slurm
  slurm=$(ctest --test-dir "$build" -N -L slurm | sed -nE 's/^ *Test +#([0-9]+): /\1:/p')
  [[ -s $1 ]] && ! grep -vxF "$slurm" "$1" >/dev/null
}

export OMP_WAIT_POLICY=passive # because tests share the cores
(($#)) || set -- -LE soak
status=0
run_ctest -j $((4 * $(nproc))) "$@" || status=$? # tests/CMakeLists.txt says what PROCESSORS counts
show_skips "$log/LastTest.log"
if ((status)) && only_slurm_failed "$log/LastTestsFailed.log"; then
  # Slurm's daemons lose a step now and then if all cores are busy. What fails again is a failure.
  echo "run.sh: running the failed tests with Slurm again, alone" >&2
  status=0
  run_ctest --rerun-failed || status=$?
  ((status)) || echo "run.sh: they failed beside other tests and passed alone" >&2
fi
grep 'tests passed,' "$build/ctest.log" || status=1
exit "$status"

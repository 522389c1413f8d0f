#!/usr/bin/env bash
# run.sh BUILD [--share I/N] [ARG ...]: runs the tests in folder BUILD, except the long ones (soak)
# and those that are only run by hand (offline). Arguments are passed to ctest instead. --share 0/3
# takes the first, fourth, seventh, ... of the tests that they choose. As root, the tests run where
# no route leads to a network, except the two that fetch Debian's packages.
set -euo pipefail
build=$1
shift
share=
if [[ ${1-} == --share ]]; then
  share=$2
  shift 2
fi
(($#)) || set -- -LE 'soak|offline'
with_network='^e2e\.(minimal_debian|mirror)$'
log=$build/Testing/Temporary

run_ctest() {
  "${without_route[@]}" ctest --test-dir "$build" --output-on-failure --no-label-summary "$@" |
    tee "$build/ctest.log"
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

# Runs the tests that ctest's arguments choose, and says which cases they skipped.
run() {
  local status=0
  # tests/CMakeLists.txt says what PROCESSORS counts.
  run_ctest -j $((4 * $(nproc))) "$@" || status=$?
  show_skips "$log/LastTest.log"
  if ((status)) && only_slurm_failed "$log/LastTestsFailed.log"; then
    # Slurm's daemons lose a step now and then if all cores are busy. What fails again is a failure.
    echo "run.sh: running the failed tests with Slurm again, alone" >&2
    status=0
    run_ctest --rerun-failed || status=$?
    ((status)) || echo "run.sh: they failed beside other tests and passed alone" >&2
  fi
  grep 'tests passed,' "$build/ctest.log" || status=1
  return "$status"
}

# Prints the names of the tests that ctest's arguments choose.
chosen() {
  ctest --test-dir "$build" -N "$@" | sed -nE 's/^ *Test +#[0-9]+: //p'
}

export OMP_WAIT_POLICY=passive # because tests share the cores
without_route=()
if ! ((EUID)) && unshare --net true 2>/dev/null; then
  # The host's own addresses stay its own, on a cable whose other end is loose.
  # shellcheck disable=SC2016  # the inner shell expands it
  without_route=(unshare --net bash -c 'ip link set lo up
    ip link add eth0 type veth peer name loose && ip link set eth0 up && ip link set loose up
    for address in $1; do ip address add "$address" dev eth0 || true; done
    exec "${@:2}"' bash "$(hostname -I)")
  echo "run.sh: the tests run without a route to any network" >&2
fi
if [[ $share ]]; then
  mine=$(chosen "$@" | awk -v i="${share%/*}" -v n="${share#*/}" '(NR - 1) % n == i' |
    sed 's/[.]/\\./g' | paste -sd '|')
  [[ $mine ]] || {
    echo "run.sh: no test is chosen by --share $share $*" >&2
    exit 2
  }
  echo "run.sh: share $share of the tests: ${mine//\\/}"
  set -- "$@" -R "^($mine)\$"
fi
status=0
outside=$(chosen "$@" | grep -E "$with_network" | paste -sd "|" || true)
if [[ -z $outside ]] || ((!${#without_route[@]})); then
  run "$@" || status=$?
else
  [[ -z $(chosen "$@" -E "$with_network") ]] || run "$@" -E "$with_network" || status=$?
  without_route=()
  run -R "^(${outside//./\\.})\$" || status=$?
fi
exit "$status"

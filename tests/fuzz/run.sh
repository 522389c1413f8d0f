#!/usr/bin/env bash
# Runs libFuzzer on each target, or on those that are named, for SECONDS (default: 60). Inputs that
# fail are written to build/fuzz/found/. The corpus in build/fuzz/corpus/ is kept between calls.
# Called from the repository's root, after the targets of the preset `fuzz` were built.
#
# usage: run.sh [SECONDS [TARGET ...]]
set -euo pipefail
seconds=${1:-60}
started=$SECONDS
targets=("${@:2}")
if ((${#targets[@]} == 0)); then
  for source in tests/fuzz/*_fuzz.cc; do
    targets+=("$(basename "$source" .cc)")
  done
fi

mkdir -p build/fuzz/found
for target in "${targets[@]}"; do
  program=build/fuzz/tests/fuzz/$target
  if [[ ! -x $program ]]; then
    echo "fuzz: $target is no target" >&2
    exit 2
  fi
  mkdir -p "build/fuzz/corpus/$target"
  "$program" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$target-" "build/fuzz/corpus/$target" \
    "tests/fuzz/corpus/$target" >"build/fuzz/$target.log" 2>&1 || {
    tail -n 40 "build/fuzz/$target.log" >&2
    echo "fuzz: $target failed; its input is in build/fuzz/found/" >&2
    exit 1
  }
  printf '%-24s %10d inputs\n' "$target" \
    "$(awk '/number_of_executed_units/ {print $2}' "build/fuzz/$target.log")"
done
echo "fuzz: no findings in $((SECONDS - started)) s"

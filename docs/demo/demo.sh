#!/usr/bin/env bash
# `./dev demo`: trains a small model on English prose that every Debian system has, with 2 MPI ranks
# under `trireme launch`. Then it trains the first part again and kills a rank on the way: the
# launch starts the ranks again by itself, and both runs have the same bits. Called from the
# repository's root, after the build. Durations are those of two idle cores.
set -euo pipefail

readonly trireme=${TRIREME:-build/release/trireme}
readonly demo=runs/demo
readonly config=configs/run/demo.yaml
readonly compared_step=${DEMO_COMPARED_STEP:-800}
readonly kill_after_step=${DEMO_KILL_AFTER_STEP:-400}

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
fail() {
  printf 'demo: %s\n' "$*" >&2
  exit 1
}
# field NAME FILE: the last value of a number in a file of JSON.
field() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "$2" | tail -n 1; }

train() { # RUN-DIRECTORY [KEY=VALUE ...]
  "$trireme" launch --ranks-per-node 2 -- train "$config" run.dir="$1" "${@:2}"
}

# Writes the licences of free software in Debian's base system, 180 KB of plain English, to one file
# each: a paragraph per line, without headings and tables.
# shellcheck disable=SC2016  # the fields are awk's, not the shell's
write_prose() { # FOLDER
  local licence
  mkdir -p "$1"
  for licence in /usr/share/common-licenses/* LICENSE; do
    [[ ! -f $licence || -L $licence ]] || LC_ALL=C awk '
      function end_paragraph() {
        gsub(/[ \t]+/, " ", text); sub(/^ /, "", text)
        if (length(text) > 60 && text ~ /[a-z].*[.:;,]$/ && text !~ /[^ -~]|[{}$@_<>\\|=]/) {
          print text "\n"
        }
        text = ""
      }
      /^[ \t]*$/ { end_paragraph(); next }
      { text = text " " $0 }
      END { end_paragraph() }' "$licence" >"$1/$(basename "$licence").txt"
  done
}

pack_prose() {
  say "1/5 Packing English prose (2 seconds)"
  rm -rf "$demo"
  write_prose "$demo/text"
  "$trireme" data pack --validation-fraction 0.1 --source "licences of free software" \
    --out "$demo/data" "$demo/text"
  "$trireme" data info --json "$demo/data/train" >"$demo/info.json"
}

# Waits until the run has logged the step and written a checkpoint, then kills its last rank.
kill_a_rank() { # RUN-DIRECTORY
  local step=0 pid
  until ((step >= kill_after_step)) && compgen -G "$1/checkpoints/step-*" >/dev/null; do
    kill -0 "$launch" 2>/dev/null || fail "the run ended before a rank could be killed"
    sleep 0.2
    [[ ! -s $1/metrics.jsonl ]] || step=$(field step "$1/metrics.jsonl")
  done
  pid=$(head -n 1 "$1/logs/rank-00001.jsonl" | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p')
  say "kill -KILL $pid: rank 1, after step $step"
  kill -KILL "$pid"
  killed_at=$step
}

train_with_a_kill() {
  train "$demo/killed" "train.steps=$compared_step" "optimizer.schedule.steps=$steps" &
  launch=$!
  kill_a_rank "$demo/killed"
  wait "$launch" || fail "the launch ended with code $? instead of finishing the run"
  "$trireme" launch report "$demo/killed"
}

compare() {
  say "4/5 Comparing"
  local straight resumed entropy loss
  straight=$("$trireme" ckpt digest "$demo/run/checkpoints/step-$(printf %08d "$compared_step")")
  resumed=$("$trireme" ckpt digest "$demo/killed/checkpoints")
  printf 'step %d, never stopped  %s\nstep %d, rank killed    %s\n' \
    "$compared_step" "$straight" "$compared_step" "$resumed"
  [[ $straight == "$resumed" ]] || fail "the digests differ: please report this"
  entropy=$(field unigram_entropy_nats "$demo/info.json")
  loss=$(field val_loss "$demo/run/metrics.jsonl")
  printf 'The bits are the same.\n\nunigram entropy of the text  %.3f nats per byte\n' "$entropy"
  printf 'validation loss              %.3f nats per byte\n' "$loss"
  awk -v loss="$loss" -v entropy="$entropy" 'BEGIN { exit !(loss < 0.7 * entropy) }' ||
    fail "the validation loss is too high: the model has learned too little"
  "$trireme" plot "$demo/run" "$demo/killed" --title "The demo, and the part with a killed rank" \
    --event "$killed_at:rank 1 killed" --level "$entropy:unigram entropy" -o "$demo/loss.svg"
}

write_text() {
  say "5/5 What the model writes (10 seconds)"
  "$trireme" generate --checkpoint "$demo/run/checkpoints" --prompt 'The ' --tokens 600 \
    --temperature 0.6 --seed 1 | fold -s -w 78
  cat <<TEXT

It has learned from 180 KB of licences, byte by byte, for a minute and a half.
The losses are drawn in $demo/loss.svg. Next:

  $trireme generate --checkpoint $demo/run/checkpoints --prompt 'You may ' --temperature 0.6
  $trireme ckpt show $demo/run/checkpoints
  $trireme launch --ranks-per-node 2 -- train $config run.dir=$demo/longer train.steps=10000
  $trireme --help, and docs/getting-started.md
TEXT
}

main() {
  [[ -x $trireme ]] || fail "$trireme does not exist: build it with ./dev build"
  steps=$(sed -n 's/^  steps: *\([0-9]*\).*/\1/p' "$config")
  pack_prose
  say "2/5 Training with 2 ranks (90 seconds)"
  train "$demo/run"
  say "3/5 Training the first $compared_step steps again, and killing a rank (30 seconds)"
  train_with_a_kill
  compare
  write_text
}

main

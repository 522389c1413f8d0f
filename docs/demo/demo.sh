#!/usr/bin/env bash
# `./dev demo`: trains the same small model twice on this repository's own text, with 2 MPI ranks;
# the second run loses a rank to SIGKILL on its way and goes on from its checkpoint. Both end with
# the same bits. Called from the repository's root, after the build.
set -euo pipefail

readonly trireme=${TRIREME:-build/release/trireme}
readonly demo=runs/demo
readonly config=configs/run/demo.yaml
readonly kill_after_step=${DEMO_KILL_AFTER_STEP:-240}
readonly ranks=2

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
fail() {
  printf 'demo: %s\n' "$*" >&2
  exit 1
}
# field NAME FILE: the last value of a number in a file of JSON.
field() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "$2" | tail -n 1; }

train() { # RUN-DIRECTORY [KEY=VALUE ...]
  mpirun -n "$ranks" --bind-to none "$trireme" train "$config" run.dir="$1" "${@:2}"
}

pack_own_text() {
  say "1/6 Packing the text of this repository"
  rm -rf "$demo"
  mkdir -p "$demo"
  if ! git -c safe.directory="$PWD" ls-files >"$demo/files.txt" 2>/dev/null; then
    find . -type f -not -path './build/*' -not -path './runs/*' -not -path './.*' >"$demo/files.txt"
  fi
  sort -o "$demo/files.txt" "$demo/files.txt"
  "$trireme" data pack --files-from "$demo/files.txt" --validation-fraction 0.1 \
    --source "the text of this repository" --out "$demo/data"
  "$trireme" data info --json "$demo/data/train" >"$demo/info.json"
}

# Waits until the run has logged the step and written a checkpoint, then kills its last rank.
kill_a_rank() { # RUN-DIRECTORY
  local step=0 pid
  until ((step >= kill_after_step)) && compgen -G "$1/checkpoints/step-*" >/dev/null; do
    kill -0 "$launcher" 2>/dev/null || fail "the run ended before a rank could be killed"
    sleep 0.2
    [[ ! -s $1/metrics.jsonl ]] || step=$(field step "$1/metrics.jsonl")
  done
  pid=$(head -n 1 "$1/logs/rank-00001.jsonl" | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p')
  say "SIGKILL to rank 1 (pid $pid) after step $step"
  kill -KILL "$pid"
  killed_at=$step
}

train_with_a_kill() {
  train "$demo/killed" &
  launcher=$!
  kill_a_rank "$demo/killed"
  local code=0
  wait "$launcher" || code=$?
  ((code != 0)) || fail "the run did not notice that its rank was killed"
  printf 'demo: the job ended with code %d; the same command goes on\n' "$code"
  say "4/6 Resuming"
  train "$demo/killed"
}

compare() {
  say "5/6 Comparing"
  local straight resumed entropy loss
  straight=$("$trireme" ckpt digest "$demo/run/checkpoints")
  resumed=$("$trireme" ckpt digest "$demo/killed/checkpoints")
  printf 'never stopped       %s\nkilled and resumed  %s\n' "$straight" "$resumed"
  [[ $straight == "$resumed" ]] || fail "the digests differ: please report this"
  entropy=$(field unigram_entropy_nats "$demo/info.json")
  loss=$(field val_loss "$demo/run/metrics.jsonl")
  printf 'the same bits.\n\nunigram entropy of the data  %.3f nats a byte\n' "$entropy"
  printf 'validation loss              %.3f nats a byte\n' "$loss"
  awk -v loss="$loss" -v entropy="$entropy" 'BEGIN { exit !(loss < 0.9 * entropy) }' ||
    fail "the model learned too little"
  "$trireme" plot "$demo/killed" --title "The demo: killed, resumed, finished" \
    --event "$killed_at:rank 1 killed" --level "$entropy:unigram entropy" -o "$demo/loss.svg"
}

say_what_next() {
  cat <<TEXT

The loss over the steps is drawn in $demo/loss.svg. Next:

  $trireme generate --checkpoint $demo/run/checkpoints --prompt 'namespace ' --temperature 0.7
  $trireme ckpt show $demo/run/checkpoints
  $trireme config show $config train.steps=2000
  mpirun -n 2 $trireme train $config run.dir=$demo/longer train.steps=2000
  tensorboard --logdir $demo        (if you have it)
  $trireme --help
TEXT
}

main() {
  [[ -x $trireme ]] || fail "$trireme is not built: ./dev build"
  pack_own_text
  say "2/6 Training with $ranks ranks, never stopped"
  train "$demo/run"
  say "3/6 Training the same again, and killing a rank"
  train_with_a_kill
  compare
  say "6/6 What the model writes"
  "$trireme" generate --checkpoint "$demo/run/checkpoints" --prompt 'The ' --tokens 300 \
    --temperature 0.7 --seed 1
  say_what_next
}

main

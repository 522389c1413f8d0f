#!/usr/bin/env bash
# A site that keeps its keys: data and checkpoints are encrypted with a key in a token (SoftHSM
# stands in for the hardware), everything is signed and recorded, a rank is killed, recipients
# change, an auditor checks it all offline, and at the end nobody can read data or model any more.
# Takes a minute. Called from the repository's root, after `./dev build`; needs the Debian package
# softhsm2.
set -euo pipefail

readonly trireme=${TRIREME:-build/release/trireme}
demo=$(realpath -m "${SOVEREIGN_FOLDER:-runs/sovereign}")
readonly demo
readonly module=${SOFTHSM_MODULE:-/usr/lib/softhsm/libsofthsm2.so}
readonly token="pkcs11:token=site;object=checkpoints"
readonly token_key="$token?module-path=$module&pin-source=file:$demo/pin"
export SOFTHSM2_CONF=$demo/softhsm2.conf
export TRIREME_SITE_DIR=$demo/site # what a real site keeps in /etc/trireme

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
fail() {
  printf 'sovereign: %s\n' "$*" >&2
  exit 1
}
# refused CODE COMMAND...: the command must end with this code; prints why.
refused() {
  local code=0
  "${@:2}" >"$demo/refusal" 2>&1 || code=$?
  tail -n 3 "$demo/refusal"
  [[ $code == "$1" ]] || fail "'${*:2}' ended with code $code instead of $1"
}

make_keys() {
  say "1/6 Keys: one in a token, one in a safe, one for signatures"
  rm -rf "$demo"
  mkdir -p "$demo/tokens" "$demo/site"
  printf 'directories.tokendir = %s\nobjectstore.backend = file\n' "$demo/tokens" >"$SOFTHSM2_CONF"
  install -m 600 /dev/null "$demo/pin"
  od -An -N4 -tu4 /dev/urandom | tr -d ' ' >"$demo/pin"
  softhsm2-util --init-token --free --label site --so-pin "$(<"$demo/pin")" \
    --pin "$(<"$demo/pin")" >/dev/null
  "$trireme" keys create --pkcs11 "$token_key"
  "$trireme" keys create --out "$demo/safe.key" --name 'safe, 2026'
  "$trireme" audit keygen --out "$demo/evidence.key" --name 'the site'
  cat >"$demo/site/site.yaml" <<TEXT
audit: {log: $demo/audit.jsonl, key: $demo/evidence.key}
encryption: {keys: ['$token_key', 'file:$demo/safe.key']}
TEXT
}

# Waits for a checkpoint, then kills the last rank.
kill_a_rank() {
  until compgen -G "$demo/run/checkpoints/step-*" >/dev/null; do
    kill -0 "$launch" 2>/dev/null || fail "the run ended before a rank could be killed"
    sleep 0.1
  done
  pid=$(head -n 1 "$demo/run/logs/rank-00001.jsonl" | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p')
  say "kill -KILL $pid: rank 1"
  kill -KILL "$pid"
}

train() {
  say "2/6 Pack and train, encrypted and signed; a rank is killed, and the launch goes on"
  "$trireme" data pack --out "$demo/data" LICENSE README.md docs/*.md
  cat >"$demo/run.yaml" <<TEXT
model: {family: gpt2, layers: 2, hidden: 64, heads: 2, vocab: 259, context: 64}
data: {train: $demo/data, sequence: 64}
train: {steps: 300, global_batch: 16, micro_batch: 4, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 10}}
checkpoint: {every: 50, keep: 10}
TEXT
  "$trireme" launch --ranks-per-node 2 -- train "$demo/run.yaml" run.dir="$demo/run" &
  launch=$!
  kill_a_rank
  wait "$launch" || fail "the launch ended with code $? instead of finishing the run"
}

compare() {
  say "3/6 The same bits as a plain run on one rank, and no plain text"
  "$trireme" data pack --plain --out "$demo/plain-data" LICENSE README.md docs/*.md
  "$trireme" train "$demo/run.yaml" run.dir="$demo/plain" data.train="$demo/plain-data" \
    encryption.keys=[] 2>/dev/null
  sealed=$("$trireme" ckpt digest "$demo/run/checkpoints")
  plain=$(TRIREME_ENCRYPTION__KEYS='[]' "$trireme" ckpt digest "$demo/plain/checkpoints")
  printf 'encrypted, two ranks, one killed  %s\nplain, one rank                   %s\n' \
    "$sealed" "$plain"
  [[ $sealed == "$plain" ]] || fail "the digests differ: please report this"
  grep -q tokenizer "$demo"/plain-data/shards/* || fail "a plain shard has attributes"
  ! grep -q tokenizer "$demo"/data/shards/* || fail "the data is not encrypted"
  grep -rq '"dtype"' "$demo"/plain/checkpoints/*/*.safetensors || fail "a plain shard has a header"
  ! grep -rq '"dtype"' "$demo"/run/checkpoints/*/*.safetensors || fail "a shard is not encrypted"
}

change_keys() {
  say "4/6 Without a key nothing opens; the key in the safe is replaced"
  refused 77 env TRIREME_ENCRYPTION__KEYS='[]' "$trireme" generate \
    --checkpoint "$demo/run/checkpoints" --prompt 'The '
  refused 77 "$trireme" train "$demo/run.yaml" run.dir="$demo/never" data.train="$demo/plain-data"
  "$trireme" keys create --out "$demo/next.key" --name 'safe, 2027'
  for folder in "$demo/run/checkpoints" "$demo/data"; do
    "$trireme" keys rotate "$folder" --to "$token_key" --to "file:$demo/next.key"
  done
  refused 77 "$trireme" ckpt digest "$demo/run/checkpoints" --key "file:$demo/safe.key"
  refused 77 "$trireme" data verify "$demo/data" --key "file:$demo/safe.key"
  "$trireme" ckpt verify "$demo/run/checkpoints" --all --key "file:$demo/next.key"
  "$trireme" data verify "$demo/data" --key "file:$demo/next.key"
}

audit() {
  say "5/6 What an auditor sees, with public keys alone"
  "$trireme" verify "$demo/run" --trust "$demo/evidence.key.pub"
  "$trireme" audit verify "$demo/audit.jsonl" --trust "$demo/evidence.key.pub"
  "$trireme" audit show "$demo/audit.jsonl" --event keys
}

destroy() {
  say "6/6 The keys are destroyed"
  "$trireme" keys destroy "$demo/run/checkpoints" --confirm checkpoints --confirm checkpoints
  "$trireme" keys destroy "$demo/data" --confirm data --confirm data
  refused 65 "$trireme" generate --checkpoint "$demo/run/checkpoints" --prompt 'The '
  refused 65 "$trireme" data verify "$demo/data"
  printf '\nSee docs/encryption.md and docs/evidence.md. The files are in %s.\n' "$demo"
}

main() {
  [[ -x $trireme ]] || fail "$trireme does not exist: build it with ./dev build"
  [[ -e $module ]] || fail "$module does not exist: install the package softhsm2"
  make_keys
  train
  compare
  change_keys
  audit
  destroy
}

main

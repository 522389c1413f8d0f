#!/usr/bin/env bash
# A site that keeps its keys: data, checkpoints and logs are encrypted with a key in a token
# (SoftHSM stands in for hardware) and labelled, each deed has its role, everything is signed and
# recorded. A rank is killed, the run goes on with another layout, recipients change, two people
# release the model, another country is refused, an auditor checks it all offline, and at the end
# nobody can read data or model any more. Takes a minute. Called from the repository's root after
# `./dev build`; needs the Debian package softhsm2. Only root is shown the policy, in a mount
# namespace with an /etc/trireme of its own.
set -euo pipefail

readonly trireme=${TRIREME:-build/release/trireme}
demo=$(realpath -m "${SOVEREIGN_FOLDER:-runs/sovereign}")
readonly demo
readonly module=${SOFTHSM_MODULE:-/usr/lib/softhsm/libsofthsm2.so}
readonly token="pkcs11:token=site;object=checkpoints"
readonly token_key="$token?module-path=$module&pin-source=file:$demo/pin"
export SOFTHSM2_CONF=$demo/softhsm2.conf OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
readonly label=(--label classification=secret --label jurisdiction=AE --label owner=health)
declare -rA group=([data_steward]=news [trainer]=adm [key_custodian]=mail [auditor]=lp
  [releaser]=tty)

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
fail() {
  printf 'sovereign: %s\n' "$*" >&2
  exit 1
}
# as ROLE COMMAND...: runs the command as a member of the group that has the role.
as() {
  local role=(setpriv --regid "${group[$1]}" --clear-groups --)
  [[ -n ${SOVEREIGN_POLICY:-} ]] || role=()
  "${role[@]}" "${@:2}"
}
# refused CODE COMMAND...: the command must end with this code; prints why.
refused() {
  local code=0
  "${@:2}" >"$demo/refusal" 2>&1 || code=$?
  tail -n 3 "$demo/refusal"
  [[ $code == "$1" ]] || fail "'${*:2}' ended with code $code instead of $1"
}

make_keys() {
  say "1/8 Keys: one in a token, one in a safe, one for signatures, two for releases"
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
  for name in sara omar; do
    "$trireme" audit keygen --out "$demo/$name.key" --name "$name" >/dev/null
  done
  cat "$demo"/{sara,omar}.key.pub >"$demo/site/releasers.pem"
  # This is what a real site keeps in /etc/trireme.
  cat >"$demo/site/site.yaml" <<TEXT
audit: {log: $demo/audit.jsonl, key: $demo/evidence.key}
encryption: {keys: ['$token_key', 'file:$demo/safe.key'], logs: true}
TEXT
  sed "s#DEMO#$demo#" docs/demo/policy.yaml >"$demo/site/policy.yaml"
  chmod 755 "$demo/site"
  chmod 644 "$demo"/site/*
}

# Waits for a checkpoint, then kills the last rank.
kill_a_rank() {
  until compgen -G "$demo/run/checkpoints/step-*" >/dev/null; do
    kill -0 "$launch" 2>/dev/null || fail "the run ended before a rank could be killed"
    sleep 0.1
  done
  pid=$(as trainer "$trireme" log "$demo/run" --rank 1 | sed -n '1s/.*"pid": *\([0-9]*\).*/\1/p')
  say "kill -KILL $pid: rank 1"
  kill -KILL "$pid"
}

train() {
  say "2/8 Pack and train, encrypted and signed; a rank is killed, and the launch goes on"
  as data_steward "$trireme" data pack --out "$demo/data" "${label[@]}" LICENSE README.md docs/*.md
  cat >"$demo/run.yaml" <<TEXT
model: {family: gpt2, layers: 2, hidden: 64, heads: 2, vocab: 259, context: 64}
data: {train: $demo/data, sequence: 64}
train: {steps: 300, global_batch: 16, micro_batch: 4, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 10, steps: 300}}
checkpoint: {every: 50, keep: 10}
TEXT
  as trainer "$trireme" policy check "$demo/run.yaml" run.dir="$demo/run"
  as trainer "$trireme" launch --ranks-per-node 2 -- train "$demo/run.yaml" \
    run.dir="$demo/run" train.steps=200 &
  launch=$!
  kill_a_rank
  wait "$launch" || fail "the launch ended with code $? instead of reaching step 200"
  say "3/8 The run goes on with another layout: two pipeline stages instead of two replicas"
  as trainer "$trireme" launch --ranks-per-node 2 -- train "$demo/run.yaml" \
    run.dir="$demo/run" parallel.pp=2
}

compare() {
  say "4/8 The same bits as a plain run on one rank, and no plain text"
  as data_steward "$trireme" data pack --plain --out "$demo/plain-data" "${label[@]}" LICENSE \
    README.md docs/*.md
  as trainer "$trireme" train "$demo/run.yaml" run.dir="$demo/plain" data.train="$demo/plain-data" \
    encryption.keys=[] encryption.logs=false 2>/dev/null
  sealed=$(as auditor "$trireme" ckpt digest "$demo/run/checkpoints")
  plain=$(TRIREME_ENCRYPTION__KEYS='[]' as auditor "$trireme" ckpt digest "$demo/plain/checkpoints")
  printf 'encrypted, two layouts, a rank killed  %s\nplain, one rank                        %s\n' \
    "$sealed" "$plain"
  [[ $sealed == "$plain" ]] || fail "the digests differ: please report this"
  grep -q tokenizer "$demo"/plain-data/shards/* || fail "a plain shard has attributes"
  ! grep -q tokenizer "$demo"/data/shards/* || fail "the data is not encrypted"
  grep -rq '"dtype"' "$demo"/plain/checkpoints/*/*.safetensors || fail "a plain shard has a header"
  ! grep -rq '"dtype"' "$demo"/run/checkpoints/*/*.safetensors || fail "a shard is not encrypted"
  ! grep -rq '"loss"' "$demo/run" --include='*.jsonl' || fail "the metrics are not encrypted"
}

change_keys() {
  say "5/8 Without a key nothing opens; the key in the safe is replaced"
  refused 77 as trainer env TRIREME_ENCRYPTION__KEYS='[]' "$trireme" generate \
    --checkpoint "$demo/run/checkpoints" --prompt 'The '
  refused 77 as trainer "$trireme" train "$demo/run.yaml" run.dir="$demo/never" \
    data.train="$demo/plain-data"
  "$trireme" keys create --out "$demo/next.key" --name 'safe, 2027'
  for folder in "$demo"/run/{checkpoints,log-keys} "$demo/data"; do
    as key_custodian "$trireme" keys rotate "$folder" --to "$token_key" --to "file:$demo/next.key"
  done
  refused 77 as auditor "$trireme" ckpt digest "$demo/run/checkpoints" --key "file:$demo/safe.key"
  refused 77 as auditor "$trireme" data verify "$demo/data" --key "file:$demo/safe.key"
  refused 77 as auditor "$trireme" log "$demo/run" --key "file:$demo/safe.key"
  as auditor "$trireme" ckpt verify "$demo/run/checkpoints" --all --key "file:$demo/next.key"
  as auditor "$trireme" data verify "$demo/data" --key "file:$demo/next.key"
}

release() {
  say "6/8 The model leaves the site only if two people have signed"
  local export=("$trireme" ckpt export "$demo/run/checkpoints" --out "$demo/model.safetensors"
    --release "$demo/release.json" --key "file:$demo/next.key" --plain)
  "$trireme" release request "$demo/run/checkpoints" --out "$demo/release.json" \
    --recipient 'University X' --reason 'joint paper'
  "$trireme" release sign "$demo/release.json" --key "$demo/sara.key" >/dev/null
  if [[ -n ${SOVEREIGN_POLICY:-} ]]; then
    refused 77 as releaser "${export[@]}"
    refused 77 as trainer "${export[@]}"
  fi
  "$trireme" release sign "$demo/release.json" --key "$demo/omar.key" >/dev/null
  as releaser "${export[@]}"
}

leave_the_country() {
  [[ -n ${SOVEREIGN_POLICY:-} ]] || return 0
  say "7/8 The same files on a site in another country"
  sed -i 's/jurisdiction: AE/jurisdiction: SA/' /etc/trireme/policy.yaml
  refused 77 as trainer "$trireme" policy check "$demo/run.yaml" run.dir="$demo/run"
  refused 77 as trainer "$trireme" train "$demo/run.yaml" run.dir="$demo/abroad"
  refused 77 as trainer "$trireme" generate --checkpoint "$demo/run/checkpoints" --prompt 'The '
  sed -i 's/jurisdiction: SA/jurisdiction: AE/' /etc/trireme/policy.yaml
}

audit() {
  say "8/8 What an auditor sees, with public keys alone, and what the key in the safe adds"
  local verify=(as auditor "$trireme" verify "$demo/run" --trust "$demo/evidence.key.pub")
  "${verify[@]}" --audit "$demo/audit.jsonl"
  "${verify[@]}" --key "file:$demo/next.key" | grep '^ok  *logs '
  "$trireme" audit verify "$demo/audit.jsonl" --trust "$demo/evidence.key.pub"
  "$trireme" audit show "$demo/audit.jsonl" --event keys
  "$trireme" audit show "$demo/audit.jsonl" --event policy.refused
}

destroy() {
  say "At the end, the keys are destroyed"
  for folder in "$demo"/run/{log-keys,checkpoints} "$demo/data"; do
    as key_custodian "$trireme" keys destroy "$folder" --confirm "${folder##*/}" \
      --confirm "${folder##*/}"
    [[ $folder != *log-keys ]] || refused 65 as auditor "$trireme" log "$demo/run"
  done
  refused 65 as trainer "$trireme" generate --checkpoint "$demo/run/checkpoints" --prompt 'The '
  refused 65 as auditor "$trireme" data verify "$demo/data"
  printf '\nSee docs/encryption.md, docs/access.md and docs/evidence.md.\n'
  printf 'The files are in %s.\n' "$demo"
}

main() {
  [[ -x $trireme ]] || fail "$trireme does not exist: build it with ./dev build"
  [[ -e $module ]] || fail "$module does not exist: install the package softhsm2"
  if [[ -z ${SOVEREIGN_POLICY:-} ]]; then
    make_keys
    if ((EUID == 0)) && tests/support/own_mounts.sh true 2>/dev/null; then
      mkdir "$demo/etc"
      exec env -u TRIREME_SITE_DIR SOVEREIGN_POLICY=1 tests/support/own_mounts.sh \
        tests/e2e/with_policy.sh "$demo/etc" "$demo/site" "$0"
    fi
    export TRIREME_SITE_DIR=$demo/site
  fi
  for part in train compare change_keys release leave_the_country audit destroy; do
    "$part"
  done
}

main

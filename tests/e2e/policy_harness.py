"""Runs the program under a policy in /etc/trireme, in a mount namespace, as a member of one group.
The tests run as root; a role depends on the group alone."""
import hashlib
import json
import os
import pathlib
import subprocess

import harness

# A group that every Debian has, for each role.
GROUPS = {"trainer": "adm", "data_steward": "news", "key_custodian": "mail", "auditor": "lp",
          "releaser": "tty"}

POLICY = """
version: 1
site: {name: north, jurisdiction: AE}
classifications: [public, internal, secret]
roles:
  trainer:
    groups: [adm]
    read: {highest: internal, folders: [FOLDER]}
    write: {highest: internal, folders: [FOLDER]}
  data_steward:
    groups: [news]
    read: {highest: secret, folders: [FOLDER]}
    write: {highest: secret, folders: [FOLDER]}
    export: {highest: internal, folders: [FOLDER]}
  key_custodian: {groups: [mail], keys: {highest: secret, folders: [FOLDER]}}
  auditor: {groups: [lp], read: {highest: secret, folders: [/]}}
  releaser: {groups: [tty], read: {highest: secret, folders: [FOLDER]}, \
export: {highest: secret, folders: [FOLDER]}}
"""

CONFIG = """
model: {family: gpt2, layers: 1, hidden: 16, heads: 2, vocab: 257, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 4, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 2}
run: {dir: %s}
audit: {log: %s}
"""
INTERNAL = ["--label", "classification=internal", "--label", "jurisdiction=AE,SA",
            "--label", "owner=health"]


def pack(folder, name, *words):
    """Packs a dataset into folder/name."""
    harness.must(harness.run("data", "pack", harness.SOURCE / "LICENSE", "--out", folder / name,
                             *words))
    return folder / name


def config(folder, name, data, run):
    """Writes the configuration of a run that is recorded in folder/audit.jsonl."""
    path = folder / name
    path.write_text(CONFIG % (data, folder / run, folder / "audit.jsonl"))
    return path


def events(folder):
    return [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]


def edit_sealed(path, edit):
    """Changes the body of a file, and gives it the seal of src/base/sealed_json.h again."""
    body = edit(path.read_text().rsplit(',\n "seal"', 1)[0])
    digest = hashlib.sha256(body.encode()).hexdigest()
    path.chmod(0o644)
    path.write_text(f'{body},\n "seal": "sha256:{digest}"\n}}\n')


def can_mount():
    tried = subprocess.run([harness.OWN_MOUNTS, "true"], capture_output=True, check=False)
    return os.geteuid() == 0 and tried.returncode == 0


class Site:
    """A site with a policy. `change` may edit the files before they become /etc/trireme."""

    def __init__(self, folder, policy=POLICY, change=None):
        self.folder = pathlib.Path(folder)
        self.files = harness.workspace() / "etc"
        self.files.mkdir(mode=0o755)
        self.policy = self.files / "policy.yaml"
        self.write(policy)
        if change:
            change(self.files)

    def write(self, policy):
        self.policy.write_text(policy.replace("FOLDER", str(self.folder.resolve())))
        self.policy.chmod(0o644)

    def run(self, role, *arguments, ranks=0, env=None, input=None, program=None):
        original = harness.workspace()
        group = GROUPS.get(role, role)
        words = [harness.OWN_MOUNTS,
                 harness.SOURCE / "tests/e2e/with_policy.sh", original, self.files,
                 "setpriv", "--regid", group, "--clear-groups",
                 *(program or harness.command(arguments, ranks))]
        return subprocess.run([str(word) for word in words],
                              env={**harness.ENVIRONMENT, **(env or {})}, input=input,
                              stdin=None if input else subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=240, check=False)

#!/usr/bin/python3
"""Checks that no file names the machine on which it was written or contains a secret."""
import re

import sources

FOREIGN_PATH = re.compile(r"(?<![\w.])/(home|Users|root|work)/[A-Za-z0-9_]")
SECRET = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY|\bgh[pousr]_\w{30}|\bAKIA[0-9A-Z]{16}\b")
LARGEST_BYTES = 1 << 20


def main():
    top = sources.root()
    problems = []
    checked = [path for path in sources.files(top) if path.name != "paths_test.py"]
    for path in checked:
        data = (top / path).read_bytes()
        if len(data) > LARGEST_BYTES:
            problems.append(f"{path}: {len(data)} bytes: too large for a repository")
            continue
        if b"\0" in data:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if FOREIGN_PATH.search(line):
                problems.append(f"{path}:{number}: a path of somebody's machine: {line.strip()}")
            if SECRET.search(line):
                problems.append(f"{path}:{number}: looks like a secret")
    sources.finish("paths", problems, len(checked))


if __name__ == "__main__":
    main()

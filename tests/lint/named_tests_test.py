#!/usr/bin/python3
"""Checks that every row of the tables of attacks in docs/security.md names a test, and that all of
them exist: a test or a suite of GoogleTest, a test, a class or a file in Python, or a fuzz
target."""
import re

import sources

PAGE = "docs/security.md"
TEST = re.compile(r"^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
PYTHON = re.compile(r"^(?:class|    def) (\w+)", re.MULTILINE)


def tests_in(top, path):
    """Returns the names by which the documents call a file of tests and what is in it."""
    names = {path.name, path.as_posix()}
    text = (top / path).read_text(encoding="utf-8")
    if path.suffix == ".py":
        return names | set(PYTHON.findall(text))
    for suite, name in TEST.findall(text):
        names |= {suite, name, f"{suite}.{name}"}
    return names | ({path.stem} if path.stem.endswith("_fuzz") else set())


def rows_of(text):
    """Returns (line, last cell) for the rows of tables whose last heading begins with `test`."""
    rows, is_wanted, is_table = [], False, False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            is_table = False
            continue
        cell = line.rstrip("| ").split("|")[-1].strip()
        if not is_table:
            is_wanted = cell.startswith("test")
        elif is_wanted and not set(line) <= set("|- "):
            rows.append((number, cell))
        is_table = True
    return rows


def main():
    top = sources.root()
    known = set()
    for path in sources.files(top, ".cc", ".py"):
        if path.parts[0] == "tests" and path.stem.endswith(("_test", "_fuzz")):
            known |= tests_in(top, path)
    rows = rows_of((top / PAGE).read_text(encoding="utf-8"))
    problems = []
    for number, cell in rows:
        names = re.findall(r"`([^`]+)`", cell)
        if not names:
            problems.append(f"{PAGE}:{number}: this attack names no test")
        problems += [f"{PAGE}:{number}: the test '{name}' does not exist"
                     for name in names if name not in known]
    sources.finish("named_tests", problems, len(rows))


if __name__ == "__main__":
    main()

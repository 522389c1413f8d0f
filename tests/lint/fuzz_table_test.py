#!/usr/bin/python3
"""Checks that the table of fuzz targets in docs/security.md has one row for each target in
tests/fuzz, with the number of inputs that were tried, and that each target has first inputs."""
import re

import sources

PAGE = "docs/security.md"
ROW = re.compile(r"^\| (\w+_fuzz) \|.*\| ([\d,]+) \|$", re.MULTILINE)


def main():
    top = sources.root()
    targets = [path for path in sources.files(top, ".cc")
               if path.parent.as_posix() == "tests/fuzz" and path.stem.endswith("_fuzz")]
    rows = [name for name, _ in ROW.findall((top / PAGE).read_text(encoding="utf-8"))]
    corpora = {path.parts[3] for path in sources.files(top)
               if path.parts[:3] == ("tests", "fuzz", "corpus") and len(path.parts) > 4}
    problems = [f"{path}: no row in the table of {PAGE}: try it with fuzz_test and write down how "
                "many inputs it has run" for path in targets if path.stem not in rows]
    problems += [f"{PAGE}: the table names {name}, which is no target of tests/fuzz"
                 for name in rows if name not in [path.stem for path in targets]]
    problems += [f"{PAGE}: the table names {name} twice"
                 for name in sorted(set(rows)) if rows.count(name) > 1]
    problems += [f"{path}: no first inputs in tests/fuzz/corpus/{path.stem}"
                 for path in targets if path.stem not in corpora]
    sources.finish("fuzz_table", problems, len(targets))


if __name__ == "__main__":
    main()

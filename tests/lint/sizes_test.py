#!/usr/bin/python3
"""Checks that sources and functions are short enough to be read at once."""
import re

import sources

LIMITS = {".h": 400, ".cc": 400, ".cu": 500, ".cuh": 400, ".py": 400, ".sh": 200, ".cmake": 200,
          "": 200}
WIDTH = 100
FUNCTION_LINES = 60
NO_FUNCTION = re.compile(
    r" *(namespace|class|struct|enum|union|extern|using|//|#|}|\w+:$)|.*= ?\{$")


def long_functions(path, lines):
    """Yields a problem for each long function at the outer level or in a class. The formatter
    aligns the closing brace with the first line of the signature."""
    for indent in ("", "  "):
        start = 0
        for number, line in enumerate(lines, 1):
            if not re.match(indent + r"\S", line):
                continue
            length = number - start + 1
            if line.startswith(indent + "}") and start and length > FUNCTION_LINES:
                yield f"{path}:{start}: a function of {length} lines, at most {FUNCTION_LINES}"
            start = 0 if NO_FUNCTION.match(line) else number


def main():
    top = sources.root()
    problems = []
    checked = [path for path in sources.files(top)
               if path.suffix in LIMITS and (path.suffix or path.name in ("dev", "run"))]
    for path in checked:
        lines = (top / path).read_text(encoding="utf-8").splitlines()
        limit = LIMITS[path.suffix]
        if len(lines) > limit:
            problems.append(f"{path}: {len(lines)} lines, at most {limit}: split it")
        if path.suffix in (".h", ".cc", ".cu", ".cuh"):
            problems += long_functions(path, lines)
        for number, line in enumerate(lines, 1):
            if len(line) > WIDTH and "http" not in line:
                problems.append(f"{path}:{number}: {len(line)} columns, at most {WIDTH}")
            if line != line.rstrip():
                problems.append(f"{path}:{number}: blanks at the end of the line")
    sources.finish("sizes", problems, len(checked))


if __name__ == "__main__":
    main()

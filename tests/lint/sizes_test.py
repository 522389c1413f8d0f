#!/usr/bin/python3
"""Sources stay short enough to be read at once."""
import sources

LIMITS = {".h": 400, ".cc": 400, ".cu": 500, ".cuh": 400, ".py": 400, ".sh": 200, ".cmake": 200,
          "": 200}
WIDTH = 100


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
        for number, line in enumerate(lines, 1):
            if len(line) > WIDTH and "http" not in line:
                problems.append(f"{path}:{number}: {len(line)} columns, at most {WIDTH}")
            if line != line.rstrip():
                problems.append(f"{path}:{number}: blanks at the end of the line")
    sources.finish("sizes", problems, len(checked))


if __name__ == "__main__":
    main()

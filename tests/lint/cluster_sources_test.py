#!/usr/bin/python3
"""Checks that every figure of configs/cluster/*.yaml has a comment that names a source of
docs/planner.md, or says that the figure is an assumption."""
import re

import sources

FIGURE = re.compile(r" *(\w+): *[0-9.]+\w*\b[^#]*(?:# *(.*))?$")
WITHOUT_FIGURES = ("version", "name", "type")
INVENTED = "test.yaml"  # describes a cluster that does not exist


def names_of_sources(page):
    """Returns the first column of the table of sources, in which commas separate names."""
    table = ("\n" + page).partition("\n## Sources\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)[1:]
    return [name for row in rows for name in row.split(", ")]


def problem_of(comment, names):
    if comment is None:
        return "has no comment: name its source, or call it an assumption"
    # "The same" is the source of the figure above, which is checked as well.
    known = any(word in comment for word in [*names, "assumption", "the same", "docs/"])
    return None if known else f"its comment names no source of docs/planner.md: {comment}"


def main():
    top = sources.root()
    names = names_of_sources((top / "docs/planner.md").read_text(encoding="utf-8"))
    files = [path for path in sources.files(top, ".yaml")
             if path.parts[:2] == ("configs", "cluster") and path.name != INVENTED]
    problems = []
    for path in files:
        for number, line in enumerate((top / path).read_text(encoding="utf-8").splitlines(), 1):
            found = FIGURE.match(line)
            if found and found[1] not in WITHOUT_FIGURES:
                problem = problem_of(found[2], names)
                if problem:
                    problems.append(f"{path}:{number}: {found[1]} {problem}")
    if not names:
        problems.append("docs/planner.md has no table of sources")
    sources.finish("cluster_sources", problems, len(files))


if __name__ == "__main__":
    main()

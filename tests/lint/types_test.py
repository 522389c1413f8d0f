#!/usr/bin/python3
"""Checks that no two types of the program share a name within a namespace. Two such definitions in
one program are undefined behaviour, which neither the compiler nor the linker reports."""
import collections
import re

import sources

ROOMS = ("src", "mpi", "io", "slurm", "benchmarks")
# Comments, literals, preprocessor lines (with their continuations), then words and punctuation.
TOKEN = re.compile(r"""
    (?P<skip> //[^\n]* | /\*.*?\*/ | \#(?:[^\n\\]|\\.)* | R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"
            | "(?:[^"\\\n]|\\.)*" | (?<!\w)'(?:[^'\\\n]|\\.)*' )
  | (?P<word> [A-Za-z_]\w* ) | (?P<mark> ::|[{}();<>=:] )""", re.VERBOSE | re.DOTALL)
KINDS = ("class", "struct", "union", "enum")


def opened_by(head):
    """Returns what a brace after these tokens opens: ("namespace", name), ("type", name), None."""
    if "namespace" in head:
        return "namespace", "".join(head[head.index("namespace") + 1:]) or "(anonymous)"
    kinds = [word for word in head if word in KINDS]
    if not kinds or "(" in head:
        return None
    name = head[head.index(kinds[-1]) + 1:]
    if ":" in name:
        name = name[:name.index(":")]
    name = [word for word in name if word not in ("final", "alignas")]
    return ("type", name[0]) if len(name) == 1 else None  # not X::Y, X<int> or an unnamed one


def without_template(head):
    """Drops `template <...>` in front of a declaration."""
    while head[:1] == ["template"]:
        depth = 0
        for at, token in enumerate(head[1:], 1):
            depth += {"<": 1, ">": -1}.get(token, 0)
            if depth == 0:
                head = head[at + 1:]
                break
        else:
            return head
    return head


def types_of(text):
    """Yields (namespace, name, line) of each type that the text defines in a namespace's scope."""
    stack = []
    head = []
    for found in TOKEN.finditer(text):
        if found["skip"]:
            continue
        token = found[0]
        line = text.count("\n", 0, found.start()) + 1
        namespace = "::".join(name for _, name in stack)
        at_namespace = all(kind == "namespace" for kind, _ in stack)
        if token == "{":
            opened = opened_by(without_template(head)) or ("other", "")
            if at_namespace and opened[0] == "type":
                yield namespace, opened[1], line
            stack.append(opened)
            head = []
        elif token == "}":
            if stack:
                stack.pop()
            head = []
        elif token == ";":
            if at_namespace and head[:1] == ["using"] and head[2:3] == ["="]:
                yield namespace, head[1], line
            head = []
        else:
            head.append(token)


def main():
    top = sources.root()
    places = collections.defaultdict(list)
    checked = [path for path in sources.files(top, ".h", ".cc", ".cu", ".cuh")
               if path.parts[0] in ROOMS]
    for path in checked:
        for namespace, name, line in types_of((top / path).read_text(encoding="utf-8")):
            if "(anonymous)" not in namespace:
                places[namespace, name].append(f"{path}:{line}")
    problems = [f"{' and '.join(where)}: {namespace}::{name} is defined more than once: rename one"
                for (namespace, name), where in sorted(places.items()) if len(where) > 1]
    sources.finish("types", problems, len(checked))


if __name__ == "__main__":
    main()

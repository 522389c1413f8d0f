#!/usr/bin/python3
"""Checks that no two types of the program share a name within a namespace, and no two constants of
different headers. Two such definitions in one program are undefined behaviour, which neither the
compiler nor the linker reports.

It also checks that constants of headers are inline. Without that, each source has a constant of its
own, and an inline function or a template that refers to it has a different definition in each."""
import collections
import re

import sources

ROOMS = ("src", "mpi", "io", "slurm", "benchmarks")
# Comments, literals, preprocessor lines (with their continuations), then words and punctuation.
TOKEN = re.compile(r"""
    (?P<skip> //[^\n]* | /\*.*?\*/ | \#(?:[^\n\\]|\\.)* | R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"
            | "(?:[^"\\\n]|\\.)*" | (?<!\w)'(?:[^'\\\n]|\\.)*' )
  | (?P<word> [A-Za-z_]\w* ) | (?P<mark> ::|[][{}();<>=:,] )""", re.VERBOSE | re.DOTALL)
KINDS = ("class", "struct", "union", "enum")
HEADERS = (".h", ".cuh")
CONSTANT = ("inline", "static", "constexpr", "constinit", "const", "extern")  # begin a declaration
SHARED = ("inline", "extern")  # in a declaration: one constant for all sources
PAIRS = {"<": ">", "[": "]", "(": ")"}


def outside(opening, tokens):
    """Returns the tokens that no pair of this kind of brackets encloses."""
    depth = 0
    kept = []
    for token in tokens:
        depth += token == opening
        if depth == 0:
            kept.append(token)
        depth -= token == PAIRS[opening]
    return kept


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
    name = [word for word in outside("[", name) if word not in ("final", "alignas")]
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


def constants_in(head):
    """Returns the names of the variables that a declaration defines, if these tokens are one."""
    if not head or head[0] not in CONSTANT or "operator" in head:
        return []
    end = head.index("=") if "=" in head else len(head)
    first = outside("<", outside("[", head[:end]))
    if "(" in first or any(kind in first for kind in KINDS) or len(first) < 3:
        return []  # a function or a type
    rest = outside("(", head[end:])  # each name after the first follows a comma and has a value
    return first[-1:] + [word for comma, word, sign in zip(rest, rest[1:], rest[2:])
                         if comma == "," and sign == "="]


def constants_at(head, namespace, line):
    """Yields what names_of() does about the constants that these tokens define."""
    what = "constant" if any(word in SHARED for word in head) else "copied constant"
    yield from ((what, namespace, name, line) for name in constants_in(head))


def names_of(text):
    """Yields (what, namespace, name, line) of each type and each constant that the text defines in
    a namespace's scope. A copied constant is one that is not inline."""
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
                yield "type", namespace, opened[1], line
            elif at_namespace and opened[0] == "other":
                yield from constants_at(head, namespace, line)
            stack.append(opened)
            head = []
        elif token == "}":
            if stack:
                stack.pop()
            head = []
        elif token == ";":
            if at_namespace and head[:1] == ["using"] and head[2:3] == ["="]:
                yield "type", namespace, head[1], line
            elif at_namespace:
                yield from constants_at(head, namespace, line)
            head = []
        else:
            head.append(token)


def alternative(path):
    """Returns what two headers share if no program includes both of them: the include path chooses
    a header of CUDA or its namesake of the simulated device."""
    chosen = str(path).startswith(("src/device/cuda/", "src/device/sim/include/"))
    return path.name if chosen else path


def main():
    top = sources.root()
    problems = []
    types = collections.defaultdict(list)
    constants = collections.defaultdict(dict)
    checked = [path for path in sources.files(top, *HEADERS, ".cc", ".cu")
               if path.parts[0] in ROOMS]
    for path in checked:
        for what, namespace, name, line in names_of((top / path).read_text(encoding="utf-8")):
            if "(anonymous)" in namespace:
                continue
            if what == "type":
                types[namespace, name].append(f"{path}:{line}")
            elif path.suffix in HEADERS:  # each source's constants are its own
                constants[namespace, name].setdefault(alternative(path), f"{path}:{line}")
                if what == "copied constant":
                    problems.append(f"{path}:{line}: {namespace}::{name} is not inline: write "
                                    "inline constexpr")
    places = [*types.items(), *((key, list(where.values())) for key, where in constants.items())]
    problems += [f"{' and '.join(where)}: {namespace}::{name} is defined more than once: rename one"
                 for (namespace, name), where in sorted(places) if len(where) > 1]
    sources.finish("types", problems, len(checked))


if __name__ == "__main__":
    main()

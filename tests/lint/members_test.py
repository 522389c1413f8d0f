#!/usr/bin/python3
"""Checks that a class stands where a reader looks for it. A header that declares one class and no
function has the name of the class, without words that its folder says (io/checkpoint/writer.h holds
CheckpointWriter). The member functions of a class are defined beside its header, x.h, in x.cc, or
in x_<part>.cc if they are too many for one file."""
import collections
import re

import sources

ROOMS = ("src", "mpi", "io", "slurm", "benchmarks")
TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:class|struct)\s+(\w+)(?:\s+final)?\s*(?::[^;{]*)?\{",
                  re.MULTILINE)
# A definition at the outer level begins at the first column: "type Class::member(",
# "Class::Class(" or "Class::~Class(". Parentheses stand in a type only as in function<void(int)>.
MEMBER = re.compile(r"^[A-Za-z](?:[\w:<>,&* \[\]]|\([\w:&*, ]*\)>)*?(?<![\w:])(\w+)(?:<[\w, ]*>)?::"
                    r"(?:\w+::)*(?:~?\w+|operator\W{1,3})\(|^(\w+)::~?\2\(", re.MULTILINE)


CLASS = re.compile(r"^class (\w+)[^;{]*\{", re.MULTILINE)
FUNCTION = re.compile(r"^[a-zA-Z][\w:<>,&* ]*? \*?\w+\(", re.MULTILINE)
WORD = re.compile(r"[A-Z][a-z0-9]*|[a-z0-9]+")


def misnamed(path, text):
    """Yields the class of a header that has another name."""
    classes = CLASS.findall(text)
    if len(classes) != 1 or FUNCTION.search(text):
        return
    folders = {word for folder in path.parts[:-1] for word in folder.split("_")}

    def told_by_folders(word):
        return word in folders or f"{word}s" in folders

    def rest(words):
        return "".join(word for word in words if not told_by_folders(word))

    own = [word.lower() for word in WORD.findall(classes[0])]
    stem = path.stem.split("_")
    others = {name.lower() for name in TYPE.findall(text)}
    # A word before the name says whom the class stands for: sim/nccl_communicator.h.
    fits = rest(own) == rest(stem) or "".join(stem).endswith("".join(own))
    if not fits and "".join(stem) not in others:
        yield f"{path}: declares {classes[0]} and nothing else: give the header its name"


def members_of(text):
    """Yields the class and line of each member function that a source defines."""
    for found in MEMBER.finditer(text):
        yield found[1] or found[2], text.count("\n", 0, found.start()) + 1


def problems_of(path, text, homes):
    own = set(TYPE.findall(text))  # classes of this source alone
    for name, line in members_of(text):
        headers = homes.get(name, ()) if name not in own else ()
        fits = [h for h in headers if path.parent == h.parent
                and (path.stem == h.stem or path.stem.startswith(h.stem + "_"))]
        if headers and not fits:
            yield (f"{path}:{line}: a member of {name}, whose header is {headers[0]}: define it in "
                   f"{headers[0].stem}.cc or {headers[0].stem}_<part>.cc")


def main():
    top = sources.root()
    checked = {path: (top / path).read_text(encoding="utf-8")
               for path in sources.files(top, ".h", ".cuh", ".cc", ".cu")
               if path.parts[0] in ROOMS}
    homes = collections.defaultdict(list)
    for path, text in checked.items():
        if path.suffix in (".h", ".cuh"):
            for name in TYPE.findall(text):
                homes[name].append(path)
    problems = [problem for path, text in checked.items() if path.suffix in (".cc", ".cu")
                for problem in problems_of(path, text, homes)]
    problems += [problem for path, text in checked.items() if path.suffix == ".h"
                 for problem in misnamed(path, text)]
    sources.finish("members", problems, len(checked))


if __name__ == "__main__":
    main()

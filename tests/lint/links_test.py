#!/usr/bin/python3
"""Checks that each library of ours links exactly the libraries whose headers it includes: PUBLIC
those that its own headers include, PRIVATE those that only its sources include. With --write,
corrects the lists."""
import os
import re
import sys

import sources

CALL = re.compile(r"(trireme_library|target_link_libraries)\((?:trireme_)?(\w+)([^)]*)\)")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)/[^"/]+"', re.MULTILINE)
# These libraries have several folders.
FOLDERS = {"kernels": ["src/kernels", "src/kernels/cpu", "src/kernels/reference"]}
# These libraries replace another one, whose headers they implement, or parts of CUDA.
STAND_INS = {"ucx_absent", "cuda_device_absent", "cuda_kernels_absent", "nccl_absent", "sim"}
# The back end of CUDA implements these headers. A library that includes one links the library that
# throws instead, whose place the objects of a back end take in programs that have one.
REPLACED = {"src/device/cuda_device.h": "cuda_device_absent",
            "src/kernels/cuda_kernels.h": "cuda_kernels_absent",
            "mpi/nccl/nccl_world.h": "nccl_absent"}


def libraries_of(top):
    """Returns the CMakeLists.txt and folders of each library of ours, by name."""
    found = {}
    for path in sources.files(top, ".txt"):
        if path.name != "CMakeLists.txt":
            continue
        text = (top / path).read_text(encoding="utf-8")
        for call in CALL.finditer(text):
            name = call[2]
            declares = call[1] == "trireme_library" or f"add_library(trireme_{name} STATIC" in text
            if declares and name not in STAND_INS and not str(path).startswith("tests"):
                found[name] = (path, FOLDERS.get(name, [os.path.dirname(path)]))
    return found


def expected_links(top, folders, owner):
    """Returns our libraries that the headers and the sources of the folders include."""
    used = {".h": set(), ".cc": set()}
    for folder in folders:
        for entry in sorted(os.listdir(top / folder)):
            suffix = os.path.splitext(entry)[1]
            if suffix in used:
                text = (top / folder / entry).read_text(encoding="utf-8")
                used[suffix] |= {owner[f] for f in INCLUDE.findall(text) if f in owner}
                used[".cc"] |= {lib for h, lib in REPLACED.items() if f'#include "{h}"' in text}
    own = {owner[folder] for folder in folders}
    return used[".h"] - own, used[".cc"] - used[".h"] - own


def call_text(call, public, private):
    """Returns the call with our libraries sorted by name and the foreign ones where they were."""
    kinds = {"PUBLIC": [], "PRIVATE": []}
    kind = "PUBLIC"
    for word in call[3].split():
        if word in kinds:
            kind = word
        elif not word.startswith("trireme_"):
            kinds[kind].append(word)
    words = [f"trireme_{name}" for name in sorted(public)] + kinds["PUBLIC"]
    hidden = [f"trireme_{name}" for name in sorted(private)] + kinds["PRIVATE"]
    words += (["PRIVATE"] + hidden) if hidden else []
    if call[1] == "target_link_libraries":
        words = [f"trireme_{call[2]}", "PUBLIC"] + words
    else:
        words = [call[2]] + words
    lines, line = [], f"{call[1]}("
    for word in words:
        if len(line) + 1 + len(word) > 99:
            lines.append(line)
            line = "  " + word
        else:
            line += word if line.endswith("(") else " " + word
    return "\n".join(lines + [line + ")"])


def main():
    write = "--write" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--write"]
    top = sources.root()
    libraries = libraries_of(top)
    owner = {folder: name for name, (_, folders) in libraries.items() for folder in folders}
    problems = []
    for name, (path, folders) in sorted(libraries.items()):
        text = (top / path).read_text(encoding="utf-8")
        call = next(c for c in CALL.finditer(text) if c[2] == name)
        fixed = text.replace(call[0], call_text(call, *expected_links(top, folders, owner)), 1)
        if fixed != text and write:
            (top / path).write_text(fixed, encoding="utf-8")
        elif fixed != text:
            problems.append(f"{path}:1: the links of trireme_{name} are not what it includes: "
                            "run tests/lint/links_test.py --write")
    sources.finish("links", problems, len(libraries))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Lets libraries load where the C library is older than the one that they were linked with.

usage: drop_versions.py FLOOR ADDITIONS FILE...

The dynamic loader refuses a file that needs, say, GLIBC_2.36 of an older C library, even if only
one symbol is that new. ADDITIONS is a shared library that defines such symbols. Where it defines
all symbols of a version above FLOOR (2.34) that a FILE needs, this need is removed: the symbols
lose their version in the section .gnu.version, and .gnu.version_r no longer lists it. The file must
then load ADDITIONS.

Prints the version of the C library that all files together still need, and in further lines the
names of the files that it changed.

ELF, 64 bits, little endian: https://refspecs.linuxbase.org/LSB_5.0.0/LSB-Core-generic
(symbol versioning).
"""

import functools
import pathlib
import re
import struct
import subprocess
import sys

SHT_GNU_VERNEED = 0x6FFFFFFE
SHT_GNU_VERSYM = 0x6FFFFFFF
VER_NDX_GLOBAL = 1  # a symbol without a version


def number(version):
    """Returns (2, 36) for GLIBC_2.36, or None for other names."""
    found = re.fullmatch(r"GLIBC_([0-9.]+)", version)
    return tuple(map(int, found[1].split("."))) if found else None


class Elf:
    def __init__(self, path):
        self.data = bytearray(pathlib.Path(path).read_bytes())
        self.sections = []
        if self.data[:6] == b"\x7fELF\x02\x01":
            [first] = self.get("<Q", 0x28)
            entry_bytes, entries = self.get("<HH", 0x3A)
            self.sections = [self.get("<IIQQQQIIQQ", first + i * entry_bytes)
                             for i in range(entries)]

    def get(self, form, offset):
        return struct.unpack_from(form, self.data, offset)

    def put(self, form, offset, value):
        struct.pack_into(form, self.data, offset, value)

    def text_at(self, offset):
        return self.data[offset:self.data.index(b"\0", offset)].decode()

    def needs(self):
        """Yields (name, index, drop) for each needed version; drop() removes it."""
        for section in self.sections:
            if section[1] != SHT_GNU_VERNEED:
                continue
            names = self.sections[section[6]][4]
            at = section[4]
            for _ in range(section[7]):
                _, count, _, first, next_need = self.get("<HHIII", at)
                chain = [at + first]  # offsets of the entries of this library
                while (step := self.get("<I", chain[-1] + 12)[0]) != 0:
                    chain.append(chain[-1] + step)
                for i in range(count):
                    _, _, index, name, _ = self.get("<IHHII", chain[i])
                    yield (self.text_at(names + name), index,
                           functools.partial(self.drop, at, chain, chain[i]))
                at += next_need

    def drop(self, need, chain, entry):
        """Takes an entry out of the chain of a library, which keeps at least one."""
        i = chain.index(entry)
        if i == 0:
            self.put("<I", need + 8, chain[1] - need)
        else:
            after = chain[i + 1] - chain[i - 1] if i + 1 < len(chain) else 0
            self.put("<I", chain[i - 1] + 12, after)
        chain.remove(entry)
        self.put("<H", need + 2, len(chain))

    def clear_versions(self, index):
        for section in self.sections:
            if section[1] == SHT_GNU_VERSYM:
                for at in range(section[4], section[4] + section[5], 2):
                    if self.get("<H", at)[0] & 0x7FFF == index:
                        self.put("<H", at, VER_NDX_GLOBAL)


def dynamic_symbols(path):
    """Returns the lines of objdump for the dynamic symbols of a file."""
    return subprocess.run(["objdump", "-T", path], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def defined_symbols(path):
    return {line.split()[-1] for line in dynamic_symbols(path) if " .text" in line}


def undefined_symbols(path, version):
    return {line.split()[-1] for line in dynamic_symbols(path)
            if "*UND*" in line and f"({version})" in line}


def main():
    needed = floor = tuple(map(int, sys.argv[1].split(".")))
    additions = defined_symbols(sys.argv[2])
    changed = []
    for path in sys.argv[3:]:
        elf = Elf(path)
        for name, index, drop in list(elf.needs()):
            version = number(name)
            if not version or version <= floor:
                continue
            if undefined_symbols(path, name) <= additions:
                elf.clear_versions(index)
                drop()
                changed.append(path)
            else:
                needed = max(needed, version)
        if path in changed:
            pathlib.Path(path).write_bytes(elf.data)
    print(".".join(map(str, needed)), *dict.fromkeys(changed), sep="\n")


if __name__ == "__main__":
    main()

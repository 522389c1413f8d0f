#!/usr/bin/env python3
"""Makes the initial corpus of hdf5_fuzz: small HDF5 files of every layout, a shard, and a loop.

    tests/fuzz/make_hdf5_corpus.py build/release/trireme     needs python3-h5py
"""
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus/hdf5_fuzz"
TOKENS = (numpy.arange(300) * 7) % 256


def tokens(name, version="earliest", **layout):
    with h5py.File(CORPUS / name, "w", libver=version) as file:
        file.create_dataset("tokens", data=TOKENS.astype("u2"), **layout)
        file["doc_offsets"] = numpy.array([0, 10, 300])


def elsewhere():
    with h5py.File(CORPUS / "external-link", "w") as file:
        file["tokens"] = h5py.SoftLink("/there/tokens")
        file["there"] = h5py.ExternalLink("other.h5", "/")
    with h5py.File(CORPUS / "virtual", "w") as file:
        layout = h5py.VirtualLayout(shape=(300,), dtype="u2")
        layout[:] = h5py.VirtualSource("other.h5", "tokens", shape=(300,))
        file.create_virtual_dataset("tokens", layout)


def heap_loop():
    """An object of no length in the global heap, behind which libhdf5 1.10 looks for the next one
    for ever. The list of a virtual dataset's sources is in that heap."""
    file = bytearray((CORPUS / "virtual").read_bytes())
    first = file.index(b"GCOL") + 16  # index, references, reserved: 2 + 2 + 4 bytes; length: 8
    length = int.from_bytes(file[first + 8:first + 16], "little")
    free = first + 16 + (length + 7) // 8 * 8
    assert file[free:free + 2] == bytes(2), "free space has index 0"
    file[free + 8:free + 16] = bytes(8)
    (CORPUS / "heap-loop").write_bytes(file)


def shard(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text.txt").write_text("The ship sails.")
        subprocess.run([program, "data", "pack", folder / "text.txt", "--out", folder / "out",
                        "--alignment", "8"], check=True, stdout=subprocess.DEVNULL)
        (CORPUS / "shard").write_bytes((folder / "out/shards/00000.h5").read_bytes())


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    tokens("contiguous")
    tokens("chunks", chunks=(64,))
    tokens("gzip", chunks=(64,), compression="gzip", shuffle=True, fletcher32=True)
    tokens("gzip-growing", "latest", chunks=(64,), maxshape=(None,), compression="gzip")
    tokens("gzip-latest", "latest", chunks=(64,), compression="gzip", shuffle=True)
    elsewhere()
    heap_loop()
    shard(pathlib.Path(sys.argv[1]).resolve())


if __name__ == "__main__":
    main()

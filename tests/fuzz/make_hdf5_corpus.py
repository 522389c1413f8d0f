#!/usr/bin/env python3
"""Makes the initial corpus of hdf5_fuzz: small HDF5 files of every layout, and a shard.

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
    shard(pathlib.Path(sys.argv[1]).resolve())


if __name__ == "__main__":
    main()

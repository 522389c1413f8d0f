"""Reads what `data export` wrote, with struct and NumPy alone, and compares it with the shards of
the dataset, which h5py reads.

    read_exported.py DATASET megatron|npy NAME
"""
import json
import pathlib
import struct
import sys

try:
    import h5py
    import numpy
except ImportError:
    sys.exit(77)


def read_megatron(name):
    """Returns the documents: sequences between the borders of documents, joined."""
    index = pathlib.Path(name + ".idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, borders = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1, version
    kind = {4: "<i4", 8: "<u2"}[code]
    lengths = numpy.frombuffer(index, "<i4", sequences, 34)
    offsets = numpy.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
    documents = numpy.frombuffer(index, "<i8", borders, 34 + 12 * sequences)
    assert len(index) == 34 + 12 * sequences + 8 * borders
    data = pathlib.Path(name + ".bin").read_bytes()
    texts = [numpy.frombuffer(data, kind, length, offset)
             for length, offset in zip(lengths, offsets)]
    assert sum(t.nbytes for t in texts) == len(data)
    return [numpy.concatenate(texts[a:b]) for a, b in zip(documents, documents[1:])]


def read_npy(name):
    tokens = numpy.load(name + ".npy", mmap_mode="r", allow_pickle=False)
    offsets = numpy.load(name + ".offsets.npy", allow_pickle=False)
    assert tokens.ndim == 1 and offsets.dtype == numpy.int64
    assert offsets[0] == 0 and offsets[-1] == len(tokens)
    return [tokens[a:b] for a, b in zip(offsets, offsets[1:])]


def main():
    folder = pathlib.Path(sys.argv[1])
    found = (read_megatron if sys.argv[2] == "megatron" else read_npy)(sys.argv[3])
    wanted = []
    for entry in json.loads((folder / "manifest.json").read_text())["shards"]:
        with h5py.File(folder / entry["path"], "r") as shard:
            tokens, offsets = shard["tokens"][:], shard["doc_offsets"][:]
            wanted += [tokens[a:b] for a, b in zip(offsets, offsets[1:])]
    assert len(found) == len(wanted), (len(found), len(wanted))
    for ours, theirs in zip(found, wanted):
        assert numpy.array_equal(ours, theirs)
    print(len(found), "documents")


if __name__ == "__main__":
    main()

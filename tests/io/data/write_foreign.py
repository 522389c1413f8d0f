"""Writes HDF5 files as other programs, including unfinished or hostile ones, might leave them.

    write_foreign.py FOLDER     Makes FOLDER/NAME.h5 for each function below. Exits with 77 if
                                h5py is not installed.
"""
import ctypes
import pathlib
import sys
import zlib

try:
    import h5py
    import numpy
except ImportError as error:
    print(f"skipped: {error}: install python3-h5py (./dev install-deps)")
    sys.exit(77)

TOKENS = (numpy.arange(100_000, dtype="i8") * 7919) % 50_000
GZIP = {"compression": "gzip", "shuffle": True, "fletcher32": True}


# The functions below write complete files.
def gzip(file):
    file.create_dataset("tokens", data=TOKENS.astype(">i8"), chunks=(1000,), **GZIP)
    file["doc_offsets"] = numpy.array([0, 10, 10, 40_000, 99_999, 100_000])


def plain(file):
    file.create_dataset("group/ids", data=TOKENS[:5000].astype("u4"))
    file["tokens_by_soft_link"] = h5py.SoftLink("/group/ids")


def one_chunk(file):
    file.create_dataset("tokens", data=TOKENS.astype("u2"), chunks=(100_000,), compression="gzip")


def odd_checksum(file):
    file.create_dataset("tokens", data=(TOKENS % 200).astype("u1"), chunks=(1001,), **GZIP)


def chunks_without_filters(file):
    file.create_dataset("tokens", data=TOKENS.astype("i4"), chunks=(999,))


def growing(file):
    file.create_dataset("tokens", data=TOKENS.astype("u2"), chunks=(999,), maxshape=(None,), **GZIP)


def growing_latest(file):
    growing(file)


def plain_edges_latest(file):
    space = h5py.h5s.create_simple((100_000,))
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk((999,))
    creation.set_deflate(1)
    # h5py has no interface for H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS.
    maps = pathlib.Path("/proc/self/maps").read_text().split()
    library = ctypes.CDLL(next(word for word in maps if "/libhdf5_serial.so" in word))
    if library.H5Pset_chunk_opts(ctypes.c_int64(creation.id), ctypes.c_uint(2)) < 0:
        raise RuntimeError("H5Pset_chunk_opts")
    dataset = h5py.h5d.create(file.id, b"tokens", h5py.h5t.STD_U16LE, space, creation)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, TOKENS.astype("u2"))


def compact(file):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.COMPACT)
    dataset = h5py.h5d.create(file.id, b"tokens", h5py.h5t.STD_U16LE,
                              h5py.h5s.create_simple((1000,)), creation)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, TOKENS[:1000].astype("u2"))


# The functions below write files that lack values they claim to hold.
def negative(file):
    file.create_dataset("tokens", data=numpy.array([1, 2, -3], dtype="i4"))


def floats(file):
    file.create_dataset("tokens", data=numpy.array([1.0, 2.0]))


def matrix(file):
    file.create_dataset("tokens", data=numpy.zeros((3, 4), dtype="u2"))


def unfinished(file, **kinds):
    dataset = file.create_dataset("tokens", shape=(100_000,), dtype="u2", chunks=(1000,), **kinds)
    dataset[:5000] = TOKENS[:5000]


def unfinished_latest(file):
    unfinished(file, **GZIP)


def unfinished_growing_latest(file):
    unfinished(file, maxshape=(None,))


def one_chunk_never_written_latest(file):
    file.create_dataset("tokens", shape=(1000,), dtype="u2", chunks=(1000,))


def never_written(file):
    file.create_dataset("tokens", shape=(100_000,), dtype="u2", fillvalue=7)


def huge(file):
    file.create_dataset("tokens", shape=(2**62,), dtype="u1", chunks=(2**31,))


def offsets(file, values, dtype="i8"):
    file["tokens"] = TOKENS[:100].astype("u2")
    file["doc_offsets"] = numpy.array(values, dtype=dtype)


def offsets_beyond(file):
    offsets(file, [0, 50, 101])


def offsets_beyond_63_bits(file):
    offsets(file, [0, 50, 2**63 + 5], "u8")


def offsets_begin_beyond_63_bits(file):
    offsets(file, [2**64 - 1, 100], "u8")


def offsets_descend(file):
    offsets(file, [0, 60, 50, 100])


def offsets_negative(file):
    offsets(file, [-1, 50, 100])


def offsets_begin_late(file):
    offsets(file, [10, 50, 100])


def offsets_end_early(file):
    offsets(file, [0, 10, 50])


def offsets_empty(file):
    offsets(file, [])


def offsets_huge(file):
    file["tokens"] = TOKENS[:100].astype("u2")
    file.create_dataset("doc_offsets", shape=(2**34,), dtype="i8", chunks=(2**20,))


def offsets_unfinished(file):
    file["tokens"] = TOKENS[:100].astype("u2")
    file.create_dataset("doc_offsets", shape=(3,), dtype="i8")


# The functions below write damaged files, and files that refer to other files.
def secret(file):
    file["tokens"] = numpy.arange(1000, dtype="u2")


def virtual(file):
    layout = h5py.VirtualLayout(shape=(1000,), dtype="u2")
    layout[:] = h5py.VirtualSource("secret.h5", "tokens", shape=(1000,))
    file.create_virtual_dataset("tokens", layout)


def virtual_of_itself(file):
    layout = h5py.VirtualLayout(shape=(1000,), maxshape=(None,), dtype="u2")
    layout[:] = h5py.VirtualSource(".", "tokens", shape=(1000,), maxshape=(None,))[:]
    file.create_virtual_dataset("tokens", layout)


def external_storage(file):
    file.create_dataset("tokens", shape=(100,), dtype="u1", external=[("/etc/passwd", 0, 100)])


def external_link(file):
    file["tokens"] = h5py.ExternalLink("secret.h5", "/tokens")


def soft_link_to_itself(file):
    file["tokens"] = h5py.SoftLink("/tokens")


def beyond_63_bits(file):
    file.create_dataset("tokens", data=numpy.array([1, 2**64 - 1], dtype="u8"))


def empty(file):
    file.create_dataset("tokens", data=numpy.array([], dtype="u2"))


def soft_link_out(file):
    file["out"] = h5py.ExternalLink("secret.h5", "/")
    file["tokens"] = h5py.SoftLink("/out/tokens")


def offsets_by_dangling_link(file):
    file["tokens"] = TOKENS
    file["doc_offsets"] = h5py.SoftLink("/missing")


def offsets_are_a_group(file):
    file["tokens"] = TOKENS
    file.create_group("doc_offsets")


def foreign_filter(file):
    file.create_dataset("tokens", data=TOKENS.astype("u2"), chunks=(1000,), compression="lzf")


def bad_chunk(file, stored, mask=0):
    dataset = file.create_dataset("tokens", shape=(100_000,), dtype="i4", chunks=(100_000,),
                                  compression="gzip")
    dataset.id.write_direct_chunk((0,), stored, filter_mask=mask)


def chunk_inflates_short(file):
    bad_chunk(file, zlib.compress(b"\1" * 40_000))


def chunk_inflates_long(file):
    bad_chunk(file, zlib.compress(b"\1" * 4_000_000))


def chunk_is_no_deflate(file):
    bad_chunk(file, b"\1" * 4000)


def chunk_without_filter_is_short(file):
    bad_chunk(file, b"\1" * 4000, 1)


def chunk_checksum(file):
    dataset = file.create_dataset("tokens", data=TOKENS.astype("u2"), chunks=(1000,), **GZIP)
    mask, stored = dataset.id.read_direct_chunk((5000,))
    packed = bytearray(zlib.decompress(stored[:-4]))
    packed[7] ^= 1
    dataset.id.write_direct_chunk((5000,), zlib.compress(bytes(packed)) + stored[-4:], mask)


def main():
    folder = pathlib.Path(sys.argv[1])
    helpers = {"main", "offsets", "bad_chunk"}
    for name, write in list(globals().items()):
        if callable(write) and getattr(write, "__module__", "") == __name__ and name not in helpers:
            version = "latest" if name.endswith("_latest") else "earliest"
            with h5py.File(folder / f"{name}.h5", "w", libver=version) as file:
                write(file)


if __name__ == "__main__":
    main()

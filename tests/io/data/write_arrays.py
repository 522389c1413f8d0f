"""Writes files of tokens as NumPy and Megatron-LM do, for foreign_formats_test. Token i of each is
i * 7919 % 50000, or % 100 where the type is short.

    write_arrays.py FOLDER
"""
import pathlib
import struct
import sys

try:
    import numpy
except ImportError:
    sys.exit(77)

TOKENS = numpy.arange(6000, dtype=numpy.int64) * 7919 % 50000
LENGTHS = [1000, 0, 4999, 1]
CODES = {"u1": 1, "i1": 2, "i2": 3, "i4": 4, "i8": 5, "u2": 8}


def fitting(kind):
    return TOKENS if numpy.iinfo(kind).max >= 50000 else TOKENS % 100


def write_megatron(path, kind, lengths, borders):
    tokens = fitting(kind).astype("<" + kind)
    path.with_suffix(".bin").write_bytes(tokens.tobytes())
    offsets = [sum(lengths[:i]) * tokens.itemsize for i in range(len(lengths))]
    index = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, CODES[kind], len(lengths), len(borders))
    index += struct.pack(f"<{len(lengths)}i", *lengths)
    index += struct.pack(f"<{len(offsets)}q", *offsets) + struct.pack(f"<{len(borders)}q", *borders)
    path.with_suffix(".idx").write_bytes(index)


def main():
    folder = pathlib.Path(sys.argv[1])
    for kind in CODES:
        write_megatron(folder / f"megatron-{kind}", kind, LENGTHS, [0, 1, 2, 3, 4])
        for order in "<>":
            numpy.save(folder / f"{kind}{'be' if order == '>' else 'le'}.npy",
                       fitting(kind).astype(order + kind))
    write_megatron(folder / "megatron-two", "i4", LENGTHS, [0, 3, 4])
    numpy.save(folder / "u4.npy", TOKENS.astype("<u4"))
    numpy.save(folder / "u8.npy", TOKENS.astype("<u8"))
    matrix = TOKENS.astype("<u2").reshape(60, 100)
    numpy.save(folder / "rows.npy", matrix)
    numpy.save(folder / "columns.npy", numpy.asfortranarray(matrix))
    numpy.save(folder / "wide.npy", numpy.asfortranarray(matrix.reshape(2, 3000)))
    for major in (2, 3):
        with open(folder / f"version{major}.npy", "wb") as file:
            numpy.lib.format.write_array(file, TOKENS, version=(major, 0))
    numpy.save(folder / "cut.npy", TOKENS.astype("<u2"))
    numpy.save(folder / "cut.offsets.npy", numpy.cumsum([0] + LENGTHS))
    numpy.save(folder / "cube.npy", TOKENS.reshape(10, 20, 30))
    numpy.save(folder / "floats.npy", TOKENS.astype("<f4"))
    numpy.save(folder / "objects.npy", numpy.array([{}, 5], dtype=object), allow_pickle=True)
    numpy.save(folder / "negative.npy", numpy.array([5, -1]))
    numpy.save(folder / "wrong.npy", TOKENS.astype("<u2"))
    numpy.save(folder / "wrong.offsets.npy", numpy.array([0, 7000]))


if __name__ == "__main__":
    main()

"""Writes what another program might have: chunked, compressed, of another integer type.

    write_foreign.py FILE CHOICE     Exits with 77 where h5py is not installed.
"""
import sys

try:
    import h5py
    import numpy
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)


def main():
    name, choice = sys.argv[1:]
    tokens = (numpy.arange(100_000, dtype="i8") * 7919) % 50_000
    with h5py.File(name, "w") as file:
        if choice == "gzip":
            file.create_dataset("tokens", data=tokens.astype(">i8"), chunks=(1000,),
                                compression="gzip", shuffle=True, fletcher32=True)
            file["doc_offsets"] = numpy.array([0, 10, 10, 40_000, 99_999, 100_000])
        elif choice == "plain":
            file.create_dataset("group/ids", data=tokens[:5000].astype("u4"))
        elif choice == "negative":
            file.create_dataset("tokens", data=numpy.array([1, 2, -3], dtype="i4"))
        elif choice == "floats":
            file.create_dataset("tokens", data=numpy.array([1.0, 2.0]))
        elif choice == "matrix":
            file.create_dataset("tokens", data=numpy.zeros((3, 4), dtype="u2"))


if __name__ == "__main__":
    main()

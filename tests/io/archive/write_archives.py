"""Writes archives with Python's tarfile, in the three formats that it knows, for tar_reader_test.

    write_archives.py FOLDER
"""
import io
import pathlib
import sys
import tarfile

LONG = "folder/" * 20 + "long name.txt"
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def add(archive, name, contents=b"", kind=tarfile.REGTYPE, target="", **headers):
    member = tarfile.TarInfo(name)
    member.size = len(contents)
    member.type = kind
    member.linkname = target
    member.pax_headers = headers
    archive.addfile(member, io.BytesIO(contents))


def write(path, kind):
    with tarfile.open(path, "w", format=FORMATS[kind]) as archive:
        add(archive, "folder", kind=tarfile.DIRTYPE)
        add(archive, "folder/a.txt", b"first")
        add(archive, "folder/link", kind=tarfile.SYMTYPE, target="/etc/passwd")
        add(archive, "folder/hard", kind=tarfile.LNKTYPE, target="folder/a.txt")
        add(archive, "folder/fifo", kind=tarfile.FIFOTYPE)
        add(archive, "../above.txt", b"x" * 512)
        add(archive, LONG, b"long")
        add(archive, "empty.txt")
        if kind != "ustar":
            add(archive, "n\u00e4me" * 60 + ".txt", b"y" * 513)
        if kind == "pax":
            add(archive, "mtime.txt", b"z", mtime="1700000000.5", comment="with a comment")
        else:
            add(archive, "mtime.txt", b"z")


def main():
    folder = pathlib.Path(sys.argv[1])
    for kind in FORMATS:
        write(folder / f"{kind}.tar", kind)


if __name__ == "__main__":
    main()

"""Reads a packed dataset with h5py alone and compares it with the texts it was packed from.

    read_with_h5py.py DATASET TEXT...     the documents, in order
Exits with 77 if h5py is not installed.
"""
import json
import pathlib
import sys

try:
    import h5py
    import numpy
except ImportError as error:
    print(f"skipped: {error}: install python3-h5py (./dev install-deps)")
    sys.exit(77)


def documents(dataset):
    manifest = json.loads((dataset / "manifest.json").read_text())
    for shard in manifest["shards"]:
        with h5py.File(dataset / shard["path"], "r") as file:
            tokens, offsets = file["tokens"], file["doc_offsets"]
            assert file.attrs["format"].decode() == "trireme-tokens"
            assert file.attrs["version"] == 1
            assert file.attrs["n_tokens"] == shard["n_tokens"] == tokens.shape[0]
            assert file.attrs["n_docs"] == shard["n_docs"] == offsets.shape[0] - 1
            assert file.attrs["tokenizer_digest"].decode() == manifest["tokenizer"]["digest"]
            assert file.attrs["source"].decode() == manifest["source"]
            assert tokens.dtype == numpy.dtype("<u2") and tokens.chunks is None
            assert offsets.dtype == numpy.dtype("<u8") and offsets.chunks is None
            assert tokens.id.get_offset() == shard["data_offset"]
            assert offsets.id.get_offset() == shard["docs_offset"]
            assert shard["data_offset"] % 4096 == 0 or shard["data_bytes"] < 1024
            for begin, end in zip(offsets[:-1], offsets[1:]):
                yield tokens[begin:end]


def main():
    texts = [pathlib.Path(name).read_bytes() for name in sys.argv[2:]]
    found = list(documents(pathlib.Path(sys.argv[1])))
    assert len(found) == len(texts), (len(found), len(texts))
    for text, tokens in zip(texts, found):
        assert tokens[-1] == 256
        assert tokens[:-1].astype("u1").tobytes() == text and (tokens[:-1] < 256).all()
    print("ok:", len(texts), "documents")


if __name__ == "__main__":
    main()

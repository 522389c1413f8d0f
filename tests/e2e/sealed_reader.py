#!/usr/bin/python3
"""Decrypts checkpoints and datasets without Trireme: an independent reader, which knows the formats
from docs/encryption.md alone. It needs the Python package cryptography.

    sealed_reader.py KEY_FILE DIR FILE OUT     writes the plain bytes of one shard, such as
                                               shard-00000.safetensors or shards/00000.h5.sealed
"""
import base64
import json
import pathlib
import sys

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives import hashes, hmac
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError:  # pragma: no cover
    AESGCM = InvalidTag = None

MIB = 1 << 20


def derived(key, info, length=32):
    return HKDF(hashes.SHA256(), length, None, info.encode()).derive(key)


def key_of(file):
    return base64.b64decode(pathlib.Path(file).read_text().split("TRIREME-KEY-1 ")[1])


def check_mac(keys, key):
    """Raises InvalidSignature unless the key vouches for the recipients and the manifest."""
    def encoded(data):
        return base64.b64encode(data).decode()

    text = f"{keys['data_key']} {keys['contents']}\n"
    for one in keys["recipients"]:
        parameters = json.dumps(one["parameters"], sort_keys=True, separators=(",", ":"))
        text += (f"{one['kind']} {one['key']} {encoded(base64.b64decode(one['wrapped']))} "
                 f"{encoded(one['name'].encode())} {encoded(parameters.encode())}\n")
    mac = hmac.HMAC(derived(key, "trireme mac keys"), hashes.SHA256())
    mac.update(text.encode())
    mac.verify(bytes.fromhex(keys["mac"]))


def data_key(folder, wrapping):
    """Returns the data key of a checkpoint or dataset, after checking its manifest."""
    keys = json.loads((folder / "keys.json").read_text())
    identity = derived(wrapping, "trireme id", 16).hex()
    for recipient in keys["recipients"]:
        if recipient["kind"] == "file" and recipient["key"] == identity:
            wrapped = base64.b64decode(recipient["wrapped"])
            key = AESGCM(wrapping).decrypt(
                wrapped[:12], wrapped[12:], f"trireme recipient {keys['data_key']}".encode())
            check_mac(keys, key)
            manifest = json.loads((folder / "manifest.json").read_text())
            assert keys["contents"] == manifest["seal"], "keys.json is of another manifest"
            return key
    raise KeyError("no recipient")


def opened(key, name, sealed, tags):
    """Returns the plain bytes of what was encrypted in blocks under a name."""
    cipher = AESGCM(derived(key, f"trireme file {name}"))
    plain = b""
    blocks = len(tags) // 16
    assert blocks == (len(sealed) + MIB - 1) // MIB
    for block in range(blocks):
        nonce = block.to_bytes(11, "big") + bytes([block + 1 == blocks])
        part = sealed[block * MIB:(block + 1) * MIB] + tags[16 * block:16 * block + 16]
        plain += cipher.decrypt(nonce, part, None)
    return plain


def decrypt(folder, shard, key):
    """Returns the plain bytes of a shard, which is an entry of the manifest."""
    tags = bytes.fromhex(shard["tags"])
    if "file" in shard:  # of a checkpoint
        return opened(key, shard["file"], (folder / shard["file"]).read_bytes(), tags)
    name = f"{shard['path']} {shard['salt']}"
    return opened(key, name, (folder / shard["path"]).read_bytes(), tags)


def plain_xxh3(shard, key):
    """Returns the digest of a dataset's plain shard, as 16 hexadecimal digits."""
    sealed = bytes.fromhex(shard["plain_xxh3"])
    name = f"{shard['path']} {shard['salt']} digest"
    return opened(key, name, sealed[:8], sealed[8:])[::-1].hex()


def main():
    key_file, folder, name, out = sys.argv[1:]
    folder = pathlib.Path(folder)
    key = data_key(folder, key_of(key_file))
    for shard in json.loads((folder / "manifest.json").read_text())["shards"]:
        if name in (shard.get("file"), shard.get("path")):
            pathlib.Path(out).write_bytes(decrypt(folder, shard, key))
            return 0
    print(f"the manifest does not list {name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

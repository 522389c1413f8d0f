#!/usr/bin/python3
"""Decrypts checkpoints, datasets and logs without Trireme: an independent reader, which knows the
formats from docs/encryption.md alone. It needs the Python package cryptography.

    sealed_reader.py KEY_FILE DIR FILE OUT     writes the plain bytes of one shard, such as
                                               shard-00000.safetensors or shards/00000.h5.sealed
    sealed_reader.py KEY_FILE RUN FILE OUT     writes the plain text of a file of a run, such as
                                               metrics.jsonl or logs/rank-00000.jsonl
"""
import base64
import hashlib
import json
import pathlib
import re
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


def unwrapped(keys, wrapping):
    """Returns the data key of a keys.json, after checking its recipients."""
    identity = derived(wrapping, "trireme id", 16).hex()
    for recipient in keys["recipients"]:
        if recipient["kind"] == "file" and recipient["key"] == identity:
            wrapped = base64.b64decode(recipient["wrapped"])
            key = AESGCM(wrapping).decrypt(
                wrapped[:12], wrapped[12:], f"trireme recipient {keys['data_key']}".encode())
            check_mac(keys, key)
            return key
    raise KeyError("no recipient")


def data_key(folder, wrapping):
    """Returns the data key of a checkpoint or dataset, after checking its manifest."""
    keys = json.loads((folder / "keys.json").read_text())
    manifest = json.loads((folder / "manifest.json").read_text())
    assert keys["contents"] == manifest["seal"], "keys.json is of another manifest"
    return unwrapped(keys, wrapping)


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


def start_of(keys):
    """Returns the run's identity and the number of the start to which a key of logs belongs."""
    found = re.fullmatch(r"logs(?: ([0-9a-f]{32}) ([1-9][0-9]{0,8})(?: \{.*\})?)?",
                         keys["contents"])
    assert found, "not the key of logs"
    return found[1] or "", int(found[2] or 0)


def check_end(run, names, contents, first, wrapping):
    """Compares a file with what the last start that ended in good order has left. names: its path
    in the run, and that which it had before it was rotated. first: the start that began it."""
    starts = sorted((*start_of(keys), file.parent, keys)
                    for file in (run / "log-keys").glob("*/keys.json")
                    for keys in [json.loads(file.read_text())])
    assert len({identity for identity, *_ in starts}) == 1, "keys of several runs"
    closed = [each for each in starts if (each[2] / "closed.json").exists()]
    if not closed:
        return
    _, number, folder, keys = closed[-1]
    record = json.loads((folder / "closed.json").read_text())
    assert (record["data_key"], record["contents"]) == (folder.name, keys["contents"])
    check = hmac.HMAC(derived(unwrapped(keys, wrapping), "trireme mac closed"), hashes.SHA256())
    check.update(f"{record['data_key']} {record['contents']}\n".encode())
    for file in record["files"]:
        check.update(f"{file['name']} {file['bytes']} {file['last']}\n".encode())
    check.verify(bytes.fromhex(record["mac"]))
    left = [(contents[:file["bytes"]], file) for file in record["files"] if file["name"] in names]
    assert not left or first > number or any(
        len(part) == file["bytes"]
        and hashlib.sha256(part.split(b"\n")[-2]).hexdigest() == file["last"]
        for part, file in left), "its end was cut off"


def opened_log(run, name, wrapping):
    """Returns the plain text of an encrypted file of a run, as bytes."""
    is_log = name.startswith("logs/rank-")
    is_rotated = is_log and name.endswith(".1.jsonl")
    counted_as = name.replace(".1.jsonl", ".jsonl") if is_rotated else name
    rotated = run / name.replace(".jsonl", ".1.jsonl")
    last = rotated.read_text().split("\n")[-2] if is_log and rotated.exists() else ""
    text, cipher, number, first = b"", None, 0, 0
    for line in (run / name).read_text().split("\n")[:-1]:
        if line.startswith("TRIREME-SEALED-1 "):
            fields, mac = line.rsplit(" ", 1)
            _, identity, salt, previous = fields.split(" ")
            known = hashlib.sha256(last.encode()).hexdigest() if last else "0" * 64
            assert previous == known or (is_rotated and not last), "a section is missing"
            keys = json.loads((run / "log-keys" / identity / "keys.json").read_text())
            first = first or start_of(keys)[1]
            key = unwrapped(keys, wrapping)
            check = hmac.HMAC(derived(key, "trireme mac section"), hashes.SHA256())
            check.update(f"{counted_as}\n{fields}".encode())
            check.verify(bytes.fromhex(mac))
            cipher, number = AESGCM(derived(key, f"trireme file {counted_as} {salt}")), 0
        else:
            sealed = base64.b64decode(line, validate=True)
            nonce = number.to_bytes(11, "big") + bytes([len(sealed) == 16])
            text += cipher.decrypt(nonce, sealed, None)
            number += 1
        last = line
    check_end(run, {name, counted_as}, (run / name).read_bytes(), first, wrapping)
    return text


def main():
    key_file, folder, name, out = sys.argv[1:]
    folder = pathlib.Path(folder)
    if (folder / "log-keys").is_dir():
        pathlib.Path(out).write_bytes(opened_log(folder, name, key_of(key_file)))
        return 0
    key = data_key(folder, key_of(key_file))
    for shard in json.loads((folder / "manifest.json").read_text())["shards"]:
        if name in (shard.get("file"), shard.get("path")):
            pathlib.Path(out).write_bytes(decrypt(folder, shard, key))
            return 0
    print(f"the manifest does not list {name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

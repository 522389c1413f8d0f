#!/usr/bin/python3
"""Computes what a power cut could leave on the disk after every change recorded by call_recorder.c.

Bytes of a file are safe once the file has been synced after they were written. A name is safe once
its folder has been synced after the name was added or removed. Everything else may or may not
survive, independently of each other: of a file's unsafe writes all, none, only the last one, all
but the second half of the last one, or their length without their bytes (zeros, or old contents of
the disk); of unsafe changes of names any subset, in their order. That includes more than ext4 and
XFS allow, which keep the order of names, and sync a file's own name with the file."""
import dataclasses
import itertools
import os
import pathlib
import random
import struct

HEAD = struct.Struct("<IIQQIIQ")
MAGIC = 0x54524543
CREATE, WRITE, SYNC, RESIZE, REMOVE, RENAME, LINK = range(1, 8)
ROOT = 0
ALL_SUBSETS = 4  # up to this many names, all subsets are tried
POLICIES = ["all", "none", "zeros", "noise", "torn", "last"]


@dataclasses.dataclass
class Change:
    kind: int
    inode: int
    number: int
    path: str
    second: str
    data: bytes


def read_log(path):
    """Returns the recorded changes in their order."""
    changes = []
    raw = pathlib.Path(path).read_bytes()
    at = 0
    while at < len(raw):
        magic, kind, inode, number, first, second, size = HEAD.unpack_from(raw, at)
        assert magic == MAGIC, f"byte {at} of {path} begins no record"
        at += HEAD.size
        texts = raw[at:at + first].decode(), raw[at + first:at + first + second].decode()
        at += first + second
        changes.append(Change(kind, inode, number, *texts, raw[at:at + size]))
        at += size
    return changes


def resized(data, size):
    return data[:size] + bytes(max(0, size - len(data)))


def written(data, offset, new):
    return resized(data, max(len(data), offset))[:offset] + new + data[offset + len(new):]


def apply(data, operation):
    offset, new = operation
    return resized(data, offset) if new is None else written(data, offset, new)


def after(safe, pending, policy):
    """Returns the bytes of a file whose `pending` operations were not synced."""
    if policy == "none" or not pending:
        return safe
    if policy == "last":
        return apply(safe, pending[-1])
    if policy == "torn":
        data = safe
        for operation in pending[:-1]:
            data = apply(data, operation)
        offset, new = pending[-1]
        if new is None:
            return data
        half = len(new) // 2 // 4096 * 4096 or len(new) // 2
        return written(data, offset, new[:half])
    data = safe
    for operation in pending:
        data = apply(data, operation)
    if policy in ("zeros", "noise"):
        # The new length is on the disk, but only the safe bytes are.
        lost = bytes(len(data)) if policy == "zeros" else random.Random(7).randbytes(len(data))
        kept = safe[:len(data)]
        data = kept + lost[len(kept):]
    return data


class Disk:
    """Replays the changes. `seen` has the names that programs see; `folders` and `bytes` have what
    is safe."""

    def __init__(self):
        self.folders = {ROOT: {}}  # safe names: folder -> name -> node
        self.bytes = {}  # safe bytes: file -> bytes
        self.seen = {ROOT: {}}  # names as programs see them
        self.pending_names = []  # (folder, ((name, node or None), ...))
        self.pending_bytes = {}  # file -> [(offset, bytes or None)]
        self.nodes = {}  # the recorder's inode -> node
        self.versions = {}  # file -> number of its changes and syncs
        self.count = 0

    def node_at(self, path):
        node = ROOT
        for part in filter(None, path.split("/")):
            node = self.seen[node][part]
        return node

    def split(self, path):
        folder, _, name = path.rpartition("/")
        return self.node_at(folder), name

    def change_names(self, folder, *changes):
        for name, node in changes:
            if node is None:
                self.seen[folder].pop(name, None)
            else:
                self.seen[folder][name] = node
        self.pending_names.append((folder, changes))

    def create(self, change):
        self.count += 1
        node = self.count
        folder, name = self.split(change.path)
        self.nodes[change.inode] = node
        if change.number == 1:
            self.folders[node], self.seen[node] = {}, {}
        else:
            self.bytes[node], self.versions[node] = b"", 0
        self.change_names(folder, (name, node))

    def sync(self, change):
        node = ROOT if not change.path else self.nodes[change.inode]
        if node in self.bytes:
            for operation in self.pending_bytes.pop(node, []):
                self.bytes[node] = apply(self.bytes[node], operation)
            self.versions[node] += 1
            return
        rest = []
        for folder, changes in self.pending_names:
            if folder == node:
                give_names(self.folders[folder], changes)
            else:
                rest.append((folder, changes))
        self.pending_names = rest

    def follow(self, change):
        if change.kind == CREATE:
            self.create(change)
        elif change.kind in (WRITE, RESIZE):
            new = change.data if change.kind == WRITE else None
            node = self.nodes[change.inode]
            self.pending_bytes.setdefault(node, []).append((change.number, new))
            self.versions[node] += 1
        elif change.kind == SYNC:
            self.sync(change)
        elif change.kind == REMOVE:
            folder, name = self.split(change.path)
            self.change_names(folder, (name, None))
        else:
            folder, name = self.split(change.path)
            node = self.seen[folder][name]
            other, second = self.split(change.second)
            assert folder == other, "names move within their folder"
            gone = ((name, None),) if change.kind == RENAME else ()
            self.change_names(folder, *gone, (second, node))

    def image(self, kept, policy_of):
        """Returns {path: (file, version, policy), or None for a folder} with those pending changes
        of names whose numbers are in `kept`."""
        folders = {folder: dict(names) for folder, names in self.folders.items()}
        for number in kept:
            folder, changes = self.pending_names[number]
            give_names(folders[folder], changes)
        image = {}
        self.walk(folders, ROOT, "", policy_of, image)
        return image

    def walk(self, folders, folder, path, policy_of, image):
        for name, node in folders[folder].items():
            if node in folders:
                image[path + name] = None
                self.walk(folders, node, path + name + "/", policy_of, image)
            else:
                policy = policy_of(node) if node in self.pending_bytes else "all"
                image[path + name] = (node, self.versions[node], policy)

    def safe_names(self, path):
        """Returns the names in a folder, or nothing if the folder itself is not safe."""
        node = ROOT
        for part in path.split("/"):
            node = self.folders[node].get(part)
            if node is None:
                return {}
        return self.folders[node]

    def contents(self, node, policy):
        return after(self.bytes[node], self.pending_bytes.get(node, []), policy)

    def images(self, chance):
        """Returns the images that a cut may leave now; with many pending changes, a selection."""
        count = len(self.pending_names)
        everything = tuple(range(count))
        if count <= ALL_SUBSETS:
            subsets = [kept for size in range(count + 1)
                       for kept in itertools.combinations(everything, size)]
        else:
            subsets = [(), everything]
            subsets += [everything[:size] for size in range(1, count)]
            subsets += [tuple(n for n in everything if n != one) for one in everything]
            subsets += [(one,) for one in everything]
            subsets += [tuple(n for n in everything if chance.random() < 0.5) for _ in range(8)]
        for kept in subsets:
            policies = POLICIES if kept == everything or count <= 2 else ["all", "none"]
            for policy in policies:
                yield self.image(kept, lambda _, policy=policy: policy)
        if len(self.pending_bytes) > 1:
            for _ in range(4):
                mixed = {node: chance.choice(POLICIES) for node in self.pending_bytes}
                yield self.image(everything, mixed.get)


def give_names(names, changes):
    for name, node in changes:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class ImageWriter:
    """Writes images into folders. Contents that several images share are written once and linked,
    so nobody may write into the files of an image."""

    def __init__(self, folder):
        self.folder = folder
        self.blobs = {}
        os.makedirs(folder / "blobs")

    def blob(self, disk, entry):
        if entry not in self.blobs:
            path = self.folder / "blobs" / str(len(self.blobs))
            path.write_bytes(disk.contents(entry[0], entry[2]))
            self.blobs[entry] = path
        return self.blobs[entry]

    def write(self, disk, image, name):
        place = self.folder / name
        place.mkdir()
        for path, entry in image.items():
            if entry is None:
                (place / path).mkdir()
            else:
                os.link(self.blob(disk, entry), place / path)
        return place

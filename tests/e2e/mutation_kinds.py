"""The kinds of changes that mutations_test.py makes: each is a function that changes a folder, as
somebody can who may write all files and compute digests and seals, but has no key."""
import base64
import ctypes
import hashlib
import json
import shutil

import harness

FOLDER = harness.workspace()
MIB = 1 << 20
KINDS = {}  # name: what makes the change


def kind(name):
    def add(change):
        assert name not in KINDS, name
        KINDS[name] = change
        return change
    return add


def xxh3(data):
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_64bits.restype = ctypes.c_uint64
    library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return f"{library.XXH3_64bits(data, len(data)):016x}"


def sealed(fields):
    """Returns JSON with the seal that fits, which needs no key."""
    body = json.dumps({name: value for name, value in fields.items() if name != "seal"},
                      indent=1)[:-2]
    return f'{body},\n "seal": "sha256:{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def edit(path, change):
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(sealed(fields))


def edited(name, change):
    """A change of the fields of a sealed file, such as manifest.json."""
    return lambda folder: edit(folder / name, change)


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def cut(path, size):
    with path.open("r+b") as file:
        file.truncate(size)


def other_digit(text, at=5):
    return text[:at] + ("1" if text[at] == "0" else "0") + text[at + 1:]


def shards(folder):
    """Returns the paths of the shards of a checkpoint or dataset."""
    return [folder / (each.get("file") or each["path"])
            for each in json.loads((folder / "manifest.json").read_text())["shards"]]


def change_shard(folder, change, number=0):
    """Changes the bytes of a shard, and the digests in the manifest with them."""
    path = shards(folder)[number]
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)

    def fit(manifest):
        entry = manifest["shards"][number]
        blocks = [bytes(data[at:at + MIB]) for at in range(0, len(data), MIB)]
        entry.update(bytes=len(data), xxh3=xxh3(bytes(data)),
                     blocks="".join(xxh3(block) for block in blocks),
                     tags=entry["tags"][:32 * len(blocks)])
    edit(folder / "manifest.json", fit)


def swap_blocks(data):
    data[:MIB], data[MIB:2 * MIB] = data[MIB:2 * MIB], data[:MIB]


def exchange(one, other):
    one.rename(one.parent / "x")
    other.rename(one)
    (one.parent / "x").rename(other)


def exchange_entries(manifest):
    """Exchanges two shards, but leaves their names in place."""
    first, second = manifest["shards"][:2]
    name = "file" if "file" in first else "path"
    first[name], second[name] = second[name], first[name]
    manifest["shards"][:2] = [second, first]


def exchange_with(folder, other, name):
    shutil.copy(other / name, folder / name)


def recipient(change):
    return edited("keys.json", lambda keys: change(keys["recipients"][0]))


def change_wrapped(at):
    def change(one):
        wrapped = bytearray(base64.b64decode(one["wrapped"]))
        wrapped[at] ^= 1
        one["wrapped"] = base64.b64encode(wrapped).decode()
    return recipient(change)


def strip(manifest, version=1):
    """What is left looks like the manifest of something plain."""
    manifest.pop("encryption")
    manifest["version"] = version
    for shard in manifest["shards"]:
        for name in ("tags", "salt", "plain_xxh3"):
            shard.pop(name, None)


def newer(fields):
    fields["version"] = 99


def twice(folder):
    """A field that stands twice could mean one thing to one reader, and another to the next."""
    path = folder / "manifest.json"
    body = path.read_text().split(',\n "seal"')[0] + ',\n "version": 1'
    seal = hashlib.sha256(body.encode()).hexdigest()
    path.write_text(f'{body},\n "seal": "sha256:{seal}"\n}}\n')


class Kinds:
    """The kinds that checkpoints (C) and datasets (D) have in common, by the file."""
    MANIFEST = [
        lambda folder: flip(folder / "manifest.json", 100),
        lambda folder: cut(folder / "manifest.json", 200),
        lambda folder: cut(folder / "manifest.json", 0),
        lambda folder: (folder / "manifest.json").unlink(),
        twice,
        edited("manifest.json", newer),
        edited("manifest.json", lambda m: m.update(version=1)),
        edited("manifest.json", strip),
        edited("manifest.json", lambda m: m.pop("encryption")),
        edited("manifest.json", lambda m: m["shards"][0].pop("tags")),
        edited("manifest.json", lambda m: m["encryption"].update(cipher="AES-128-GCM")),
        edited("manifest.json", lambda m: m["encryption"].pop("cipher")),
        edited("manifest.json", lambda m: m["encryption"].update(data_key="0" * 32)),
        edited("manifest.json", lambda m: m["encryption"].update(data_key="none")),
        edited("manifest.json", lambda m: m["shards"][0].update(
            tags=other_digit(m["shards"][0]["tags"]))),
        edited("manifest.json", lambda m: m["shards"][0].update(
            tags=m["shards"][0]["tags"][:-2])),
        edited("manifest.json", lambda m: m["shards"][0].update(
            xxh3=other_digit(m["shards"][0]["xxh3"]))),
        edited("manifest.json", exchange_entries),
        edited("manifest.json", lambda m: m["shards"].pop()),
    ]
    KEYS = [
        lambda folder: flip(folder / "keys.json", 60),
        lambda folder: cut(folder / "keys.json", 100),
        lambda folder: (folder / "keys.json").unlink(),
        edited("keys.json", newer),
        edited("keys.json", lambda k: k.update(format="another")),
        edited("keys.json", lambda k: k.update(mac=other_digit(k["mac"]))),
        edited("keys.json", lambda k: k.update(contents="sha256:0")),
        edited("keys.json", lambda k: k.update(data_key="0" * 32)),
        change_wrapped(0),    # the nonce
        change_wrapped(20),   # the encrypted key
        change_wrapped(-1),   # the tag
        recipient(lambda one: one.update(wrapped="AAAA")),
        recipient(lambda one: one.update(name="another")),
        recipient(lambda one: one.update(parameters={"n": 1})),
        recipient(lambda one: one.update(key="0" * 32)),
        edited("keys.json", lambda k: k["recipients"].pop()),
        edited("keys.json", lambda k: k["recipients"].clear()),
        edited("keys.json", lambda k: k["recipients"].append(k["recipients"][0])),
    ]
    SHARD = [
        lambda folder: flip(shards(folder)[0], 0),
        lambda folder: flip(shards(folder)[0], MIB + 7),
        lambda folder: flip(shards(folder)[0], -1),
        lambda folder: change_shard(folder, lambda data: data.__setitem__(9, data[9] ^ 1)),
        lambda folder: change_shard(folder, lambda data: data.__setitem__(-1, data[-1] ^ 1)),
        lambda folder: cut(shards(folder)[0], MIB + 1000),
        lambda folder: cut(shards(folder)[0], MIB),
        lambda folder: change_shard(folder, lambda data: data.pop()),
        lambda folder: change_shard(folder, lambda data: data.__delitem__(slice(MIB, None))),
        lambda folder: change_shard(folder, lambda data: data.append(0)),
        lambda folder: change_shard(folder, swap_blocks),
        lambda folder: exchange(*shards(folder)[:2]),
        lambda folder: shards(folder)[1].unlink(),
        lambda folder: cut(shards(folder)[1], 0),
    ]


for letter in "CD":
    for first, changes in ((1, Kinds.MANIFEST), (31, Kinds.KEYS), (61, Kinds.SHARD)):
        for offset, each in enumerate(changes):
            kind(f"{letter}{first + offset}")(each)
STEP_FIELDS = {"C20": {"step": 5, "samples": 20}, "C21": {"samples": 1}, "C22": {"generation": 1},
               "C23": {"created": "2020-01-01T00:00:00Z"}, "C24": {"numerics": {}}}
for label, fields in STEP_FIELDS.items():
    kind(label)(edited("manifest.json", lambda m, fields=fields: m.update(fields)))
kind("C25")(edited("manifest.json", lambda m: m["config"].update(name="another")))
kind("C26")(edited("manifest.json", lambda m: m["tensors"][0].update(dtype="I32")))
kind("C27")(edited("manifest.json", lambda m: m["tensors"].pop()))
kind("C28")(lambda step: exchange_with(step, FOLDER / "run/checkpoints/step-00000002",
                                       "manifest.json"))
kind("C29")(lambda step: exchange_with(step, FOLDER / "foreign/checkpoints/step-00000004",
                                       "manifest.json"))
kind("C49")(lambda step: exchange_with(step, FOLDER / "run/checkpoints/step-00000002", "keys.json"))
kind("C50")(lambda step: exchange_with(step, FOLDER / "foreign/checkpoints/step-00000004",
                                       "keys.json"))
kind("C75")(lambda step: exchange_with(step, FOLDER / "run/checkpoints/step-00000002",
                                       "shard-00000.safetensors"))
kind("C76")(lambda step: exchange_with(step, FOLDER / "plain/checkpoints/step-00000004",
                                       "shard-00000.safetensors"))
DATA_FIELDS = {"D20": {"source": "another"}, "D21": {"vocab": 1004}, "D22": {"n_docs": 1}}
for label, fields in DATA_FIELDS.items():
    kind(label)(edited("manifest.json", lambda m, fields=fields: m.update(fields)))
kind("D23")(edited("manifest.json", lambda m: m["tokenizer"].update(name="another")))
kind("D24")(edited("manifest.json", lambda m: m["shards"][0].update(
    salt=other_digit(m["shards"][0]["salt"]))))
kind("D25")(edited("manifest.json", lambda m: m["shards"][0].update(
    salt=m["shards"][1]["salt"])))
kind("D26")(edited("manifest.json", lambda m: m["shards"][0].update(
    plain_xxh3=other_digit(m["shards"][0]["plain_xxh3"]))))
kind("D28")(lambda data: exchange_with(data, FOLDER / "other-data", "manifest.json"))
kind("D49")(lambda data: exchange_with(data, FOLDER / "other-data", "keys.json"))
kind("D75")(lambda data: exchange_with(data, FOLDER / "other-data", "shards/00000.h5.sealed"))
kind("D76")(lambda data: shutil.copy(FOLDER / "plain-data/shards/00000.h5",
                                     data / "shards/00000.h5.sealed"))


@kind("C77")
def older_step_under_a_newer_name(step):
    shutil.rmtree(step)
    shutil.copytree(FOLDER / "run/checkpoints/step-00000002", step)


def lines(change):
    """A change of the lines of metrics.jsonl: two sections of a line, 4 or 2 records and an end."""
    def apply(run):
        path = run / "metrics.jsonl"
        found = path.read_text().splitlines(keepends=True)
        change(found)
        path.write_text("".join(found))
    return apply


def head(number, part, text):
    """Changes one of the five words with which section `number` begins."""
    def change(found):
        at = [i for i, line in enumerate(found) if line.startswith("TRIREME")][number]
        words = found[at].split()
        words[part] = text if text is not None else other_digit(words[part])
        found[at] = " ".join(words) + "\n"
    return lines(change)


kind("L1")(lines(lambda found: found.__setitem__(2, "BA"[found[2][0] == "B"] + found[2][1:])))
kind("L2")(lines(lambda found: found.pop(2)))
kind("L3")(lines(lambda found: found.insert(3, found[2])))
kind("L4")(lines(lambda found: found.__setitem__(slice(1, 3), found[2:0:-1])))
kind("L5")(lines(lambda found: found.pop(0)))
kind("L6")(head(0, 0, "TRIREME-SEALED-2"))
kind("L7")(head(0, 1, "0" * 32))
kind("L8")(head(0, 2, None))
kind("L9")(head(1, 3, None))
kind("L10")(head(0, 4, None))
kind("L11")(lines(lambda found: found.__delitem__(
    slice(0, [i for i, line in enumerate(found) if line.startswith("TRIREME")][1]))))
kind("L12")(lines(lambda found: found.__delitem__(slice(-2, None))))
kind("L13")(lines(lambda found: found.append('{"step": 9}\n')))
kind("L14")(lines(lambda found: found.clear()))
kind("L15")(lambda run: (run / "metrics.jsonl").write_text('{"step": 1, "loss": 0.1}\n'))
kind("L16")(lambda run: shutil.copy(FOLDER / "foreign/metrics.jsonl", run / "metrics.jsonl"))
kind("L17")(lambda run: shutil.copy(run / "logs/rank-00001.jsonl", run / "metrics.jsonl"))


def key_folder(run, section=0):
    """Returns the folder of the key of a section."""
    found = (run / "metrics.jsonl").read_text().splitlines()
    heads = [line for line in found if line.startswith("TRIREME")]
    return run / "log-keys" / heads[section].split(" ")[1]


kind("L18")(lambda run: shutil.rmtree(key_folder(run)))
kind("L19")(lambda run: flip(key_folder(run) / "keys.json", 60))
kind("L20")(lambda run: edit(key_folder(run) / "keys.json",
                             lambda k: k.update(mac=other_digit(k["mac"]))))
kind("L21")(lambda run: edit(key_folder(run, -1) / "closed.json",
                             lambda c: c["files"][0].update(bytes=1)))
kind("L22")(lambda run: edit(key_folder(run, -1) / "closed.json",
                             lambda c: c.update(mac=other_digit(c["mac"]))))

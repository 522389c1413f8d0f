"""Builds the program in a second folder, with another language, time zone and umask, and compares
its objects with those of the first one bit for bit. Compiling everything again takes a quarter of
an hour of a core: a sample of the sources is compiled anew, without a cache, and the other objects
are those of the first build. TRIREME_SAMPLE=SEED:COUNT repeats a sample or makes a larger one.
`./dev reproduce` compiles everything, twice; here, it finds all objects in the first build, and
links, packages, bundles and compares them as always."""
import json
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import unittest

import harness

BUILD = pathlib.Path(harness.PROGRAM).resolve().parent
SURROUNDINGS = {"TZ": "Asia/Dubai", "LC_ALL": "C.UTF-8", "CCACHE_DISABLE": "1"}
UNUSUAL = ("SOURCE_DATE_EPOCH", "CFLAGS", "CXXFLAGS", "LDFLAGS")
SAMPLE = 6
# Stands in the place of ccache: copies an object of the first build unless it is in the sample.
LAUNCHER = """#!/bin/sh
for word; do
  [ "$before" = -o ] && object=$word
  before=$word
done
if ! grep -qxF "$object" '{sample}' && [ -e '{first}'/"$object" ]; then
  exec cp '{first}'/"$object" "$object"
fi
exec "$@"
"""


def must(*words, **more):
    return harness.must(subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL,
                                       capture_output=True, text=True, errors="replace",
                                       timeout=1500, check=False, **more)).stdout


def copy_of_sources(folder):
    """Clones the commit, and repeats the changes to it that are not committed."""
    must("git", "-c", "safe.directory=*", "clone", "-q", harness.SOURCE, folder)
    git = ["git", "-c", "safe.directory=*", "-C", harness.SOURCE]
    changed = must(*git, "diff", "--name-only", "-z", "HEAD")
    added = must(*git, "ls-files", "--others", "--exclude-standard", "-z")
    for name in filter(None, (changed + added).split("\0")):
        (folder / name).unlink(missing_ok=True)
        if (harness.SOURCE / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(harness.SOURCE / name, folder / name)
    return folder


@unittest.skipUnless(BUILD == harness.SOURCE / "build/release",
                     "needs the preset release, which is installed")
class Reproducible(unittest.TestCase):
    def test_program_has_no_path_of_its_build(self):
        self.assertNotIn(os.fsencode(harness.SOURCE) + b"/", (BUILD / "trireme").read_bytes())

    def test_second_folder_gives_the_same_bytes(self):
        folder = harness.workspace()
        copy = copy_of_sources(folder / "a longer name of a folder" / "copy")
        plain = {k: v for k, v in os.environ.items() if k not in UNUSUAL}
        environment = {**plain, **SURROUNDINGS}
        sample, launcher = folder / "sample", folder / "launcher"
        launcher.write_text(LAUNCHER.format(sample=sample, first=BUILD))
        launcher.chmod(0o755)
        must("cmake", "--preset", "release", f"-DCCACHE={launcher}", cwd=copy, env=environment,
             umask=0o027)
        second = copy / "build/release"
        inputs = must("ninja", "-C", second, "-t", "inputs", "trireme").split("\n")
        objects = [name for name in inputs if name.endswith(".o")]
        self.assertGreater(len(objects), 50)
        usual = f"{random.randrange(10**6)}:{SAMPLE}"
        seed, count = os.environ.get("TRIREME_SAMPLE", usual).split(":")
        chosen = random.Random(seed).sample(sorted(objects), min(int(count), len(objects)))
        print(f"sample {seed}:{count} of {len(objects)} objects: {' '.join(chosen)}")
        sample.write_text("\n".join(chosen) + "\n")
        must("cmake", "--build", second, "--target", "trireme", env=environment, umask=0o027)
        differing = [name for name in objects
                     if (second / name).read_bytes() != (BUILD / name).read_bytes()]
        self.assertEqual(differing, [])
        self.assertIn(b"a longer name of a folder", (second / "CMakeCache.txt").read_bytes())

    def test_what_is_delivered_from_two_folders_is_the_same(self):
        folder = harness.workspace()
        (folder / "none").touch()
        launcher = folder / "bin/ccache"
        launcher.parent.mkdir()
        launcher.write_text(LAUNCHER.format(sample=folder / "none", first=BUILD))
        launcher.chmod(0o755)
        environment = {**os.environ, "PATH": f"{launcher.parent}:{os.environ['PATH']}"}
        told = must(harness.SOURCE / "src/packaging/reproduce.sh", folder / "builds",
                    env=environment).splitlines()
        self.assertEqual([line.split()[0] for line in told], ["same"] * len(told), told)
        names = sorted(line.split()[-1] for line in told)
        self.assertIn("trireme", names)
        self.assertTrue(any(name.endswith("-bundle.tar.gz") for name in names), names)
        debs = [name for name in names if name.endswith(".deb")]
        self.assertEqual(len(debs), 2 if shutil.which("dh") else 0, names)

    def test_time_of_the_build_is_refused(self):
        commands = json.loads((BUILD / "compile_commands.json").read_text())
        command = next(c for c in commands if "/trireme_base.dir/" in c["command"])
        folder = harness.workspace()
        for word in ("__TIME__", "__DATE__", "__TIMESTAMP__", "__FILE__"):
            planted = folder / "planted.cc"
            planted.write_text(f"const char* planted() {{ return {word}; }}\n")
            words = [planted if each == command["file"] else each
                     for each in shlex.split(command["command"]) if "ccache" not in each]
            words[words.index("-o") + 1] = folder / "planted.o"
            compiled = subprocess.run(words, cwd=command["directory"], capture_output=True,
                                      text=True, check=False)
            if word == "__FILE__":
                harness.must(compiled)
            else:
                self.assertNotEqual(compiled.returncode, 0)
                self.assertIn("-Werror=date-time", compiled.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

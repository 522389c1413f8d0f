"""Installs the packages on a minimal Debian 12 with run-time packages only: no compiler and no
development files. Needs root, debootstrap and a Debian mirror; skips with a message otherwise."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import urllib.error
import urllib.request

import harness

BUILD = pathlib.Path(harness.PROGRAM).resolve().parent
SUITE = "bookworm"
MOUNTS = 'mount --bind /proc "$1/proc" && mount --rbind /dev "$1/dev" && shift 1'
TEXT = "/usr/share/common-licenses/GPL-3"
TRAINING = ["/run/train.yaml", "model.preset=tiny-gpt2", "data.sequence=64", "train.steps=4",
            "train.global_batch=4", "train.micro_batch=1", "train.log_every=1",
            "data.train=/run/data", "run.dir=/run/out"]


def mirror():
    """Returns the mirror that this system gets its packages from, or None."""
    policy = subprocess.run(["apt-cache", "policy", "base-files"], capture_output=True, text=True,
                            check=False).stdout
    found = [url for url in re.findall(r"https?://\S+", policy) if "security" not in url]
    return found[0] if found else None


def why_not():
    """Returns what is missing here, or nothing."""
    if os.geteuid() != 0:
        return "needs chroot: run as root"
    if not shutil.which("debootstrap"):
        return "needs debootstrap: apt-get install debootstrap"
    if not shutil.which("dh"):
        return "needs debhelper: apt-get install debhelper"
    if not mirror():
        return "apt knows no Debian mirror: add one to /etc/apt/sources.list"
    try:
        urllib.request.urlopen(f"{mirror()}/dists/{SUITE}/Release", timeout=20).close()
    except (urllib.error.URLError, OSError) as error:
        return f"the mirror {mirror()} can't be reached: {error}"
    return ""


class MinimalDebian(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if reason := why_not():
            raise unittest.SkipTest(reason)
        cls.folder = harness.workspace()
        cls.must(["cpack", "-G", "TGZ", "-B", cls.folder], cwd=BUILD)
        cls.must([harness.SOURCE / "src/packaging/deb.sh", BUILD.name, cls.folder])
        cls.root = cls.folder / "root"
        cls.must(["debootstrap", "--variant=minbase", SUITE, cls.root, mirror()])
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", cls.root / "etc" / name)
        (cls.root / "run/train.yaml").write_text("")
        cls.inside("apt-get", "update")

    @staticmethod
    def must(command, **more):
        return harness.must(subprocess.run(
            [str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=1200, check=False, **more))

    @classmethod
    def inside(cls, *command):
        """Runs a command in the minimal system, with mounts in the command's own namespace."""
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8", "HOME": "/tmp", "DEBIAN_FRONTEND": "noninteractive",
            **{k: v for k, v in os.environ.items() if k.endswith(("_proxy", "_PROXY"))},
            **{k: v for k, v in harness.ENVIRONMENT.items() if k.startswith("OMPI_")}}
        return cls.must(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                         f'root=$1; {MOUNTS} && exec chroot "$root" "$@"', "sh", cls.root,
                         *command], env=environment).stdout

    def files(self):
        """Returns all files except those that apt and dpkg keep for themselves and those that a run
        wrote."""
        own = re.compile(
            r"^/(proc|dev|sys|run|tmp|var/(lib/(apt|dpkg)|cache|log)|opt/trireme)(/|$)")
        found = subprocess.run(["find", self.root, "-printf", "/%P\n"], capture_output=True,
                               text=True, check=True).stdout.splitlines()
        return {name for name in found if not own.match(name)}

    def check_it_works(self, program, mpirun="mpirun"):
        self.assertRegex(self.inside(program, "--version"), r"^trireme \d")
        self.inside("rm", "-rf", "/run/data", "/run/out")
        self.inside(program, "data", "pack", "--out", "/run/data", TEXT)
        self.inside(mpirun, "-n", "2", program, "train", *TRAINING)
        self.assertTrue((self.root / "run/out/DONE").exists())
        self.inside(program, "launch", "--ranks-per-node", "2", "--", "train", *TRAINING,
                    "train.steps=6", "checkpoint.allow_change=[optimizer.schedule.steps]")
        self.assertEqual(json.loads((self.root / "run/out/DONE").read_text())["step"], 6)

    # Runs before the other tests install packages.
    def test_bundle(self):
        installed = self.inside("dpkg-query", "--show", "--showformat", "${Package}\n")
        self.assertNotRegex(installed, "openmpi|libhdf5|libdnnl|openssh")
        self.must([harness.SOURCE / "src/packaging/bundle.sh", BUILD, self.folder])
        [archive] = self.folder.glob("trireme-*-bundle.tar.gz")
        (self.root / "srv/any where").mkdir()
        self.must(["tar", "-xzf", archive, "-C", self.root / "srv/any where"])
        needs = self.inside("cat", f"/srv/any where/{archive.name.removesuffix('.tar.gz')}"
                            "/share/trireme/bundle")
        self.assertIn("Needs the C library GLIBC 2.34 or newer", needs)
        self.check_bills_of_materials(
            self.root / "srv/any where" / archive.name.removesuffix(".tar.gz"))
        harness.check_bundle(self, self.root / "srv/any where"
                             / archive.name.removesuffix(".tar.gz"))
        folder = f"/srv/any where/{archive.name.removesuffix('.tar.gz')}/bin"
        self.check_it_works(f"{folder}/trireme", f"{folder}/mpirun")
        self.check_it_starts_with_an_older_c_library(f"{folder}/trireme")

    def check_bills_of_materials(self, bundle):
        """Compares the files of the bundle with the digests in its bills."""
        spdx = json.loads((bundle / "share/trireme/sbom.spdx.json").read_text())
        own = [p for p in spdx["packages"] if not p["packageFileName"].startswith("/")]
        self.assertEqual(own[0]["packageFileName"], f"{bundle.name}/bin/trireme")
        self.assertGreater(len(own), 10)
        for package in own:
            data = (bundle.parent / package["packageFileName"]).read_bytes()
            self.assertEqual(package["checksums"][0]["checksumValue"],
                             hashlib.sha256(data).hexdigest())
        bom = json.loads((bundle / "share/trireme/sbom.cyclonedx.json").read_text())
        self.assertEqual(len(bom["components"]), len(spdx["packages"]) - 1)

    def check_it_starts_with_an_older_c_library(self, program):
        """Hides that the C library of the system has the symbols of 2.36."""
        libc = (self.root / "usr/lib/x86_64-linux-gnu/libc.so.6").read_bytes()
        self.assertEqual(libc.count(b"GLIBC_2.36\0"), 1)
        (self.root / "srv/older").mkdir()
        (self.root / "srv/older/libc.so.6").write_bytes(
            libc.replace(b"GLIBC_2.36\0", b"GLIBC_9.99\0"))
        version = self.inside("env", "LD_LIBRARY_PATH=/srv/older", "LD_BIND_NOW=1", program,
                              "--version")
        self.assertRegex(version, r"^trireme \d")

    def test_debian_package(self):
        before = self.files()
        [package] = self.folder.glob("trireme_*.deb")
        shutil.copy(package, self.root / "tmp/trireme.deb")
        self.inside("apt-get", "install", "-y", "--no-install-recommends", "/tmp/trireme.deb")
        for tool in ("cc", "g++", "c++", "cmake"):
            self.assertFalse((self.root / "usr/bin" / tool).exists(), tool)
        self.check_it_works("trireme")
        self.inside("apt-get", "purge", "-y", "--autoremove", "trireme")
        left = {name for name in self.files() - before if "trireme" in name}
        self.assertEqual(left, set())

    def test_tarball(self):
        [archive] = [p for p in self.folder.glob("trireme-*.tar.gz")
                     if not re.search("debug|bundle", p.name)]
        document = (harness.SOURCE / "docs/install.md").read_text()
        [packages] = re.findall(
            r"apt install --no-install-recommends ((?:[^\n]*\\\n)*[^\n]*)", document)
        self.inside("apt-get", "install", "-y", "--no-install-recommends",
                    *packages.replace("\\", " ").split())
        (self.root / "opt/trireme").mkdir()
        self.must(["tar", "-xzf", archive, "--strip-components=1", "-C", self.root / "opt/trireme"])
        self.check_it_works("/opt/trireme/bin/trireme")


if __name__ == "__main__":
    unittest.main(verbosity=2)

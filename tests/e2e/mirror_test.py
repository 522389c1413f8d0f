"""Makes the repository of `./dev mirror` and installs two minimal Debians from it in folders, which
have no network. In one, a clone builds the program with `./dev demo`, runs some tests and makes the
Debian package; in the other one, this package is installed, and trains on two ranks. Needs root,
debootstrap, a Debian mirror for the repository, 6 GB of disk, and half an hour of two cores."""
import shutil
import subprocess
import time
import unittest

import harness
from minimal_debian_test import SUITE, TEXT, TRAINING, why_not

INSIDE = """
ip link set lo up
mount --bind /proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --rbind /sys "$1/sys"
exec chroot "$1" /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -ec "$2"
"""

# These need four test programs and the program, instead of half an hour of compilation for all.
TARGETS = ["base_test", "keys_test", "evidence_test", "policy_test"]
TESTS = "^(base|keys|evidence|policy|e2e[.]encryption|e2e[.]network)$"


def must(*words, **more):
    return harness.must(subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL,
                                       capture_output=True, text=True, errors="replace",
                                       timeout=3600, check=False, **more)).stdout


class Mirror(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if reason := why_not():
            raise unittest.SkipTest(reason)
        cls.folder = harness.workspace()
        cls.builder, cls.node = cls.folder / "builder", cls.folder / "node"
        cls.began = time.monotonic()
        mirror = cls.folder / "mirror"
        must(harness.SOURCE / "dev", "mirror", mirror)
        must("git", "-c", "safe.directory=*", "clone", "-q", "--bare", harness.SOURCE,
             mirror / "trireme.git")
        cls.passed("the mirror is made")
        must("debootstrap", "--variant=minbase", "--no-check-gpg", SUITE, cls.builder,
             f"file:{mirror}")
        (cls.builder / "etc/apt/sources.list").write_text(
            f"deb [trusted=yes] file:/mnt/mirror {SUITE} main\n")
        (cls.builder / "etc/dpkg/dpkg.cfg.d/no-sync").write_text("force-unsafe-io\n")
        # As Debian's installer writes it. Without it, mpirun's hwloc asks a DNS server for
        # localhost.
        (cls.builder / "etc/hosts").write_text("127.0.0.1 localhost\n")
        must("cp", "-a", cls.builder, cls.node)
        must("cp", "-al", mirror, cls.node / "mnt/mirror")
        mirror.rename(cls.builder / "mnt/mirror")
        cls.passed("two machines are installed")

    @classmethod
    def passed(cls, what):
        print(f"{time.monotonic() - cls.began:.0f} s: {what}", flush=True)

    @staticmethod
    def inside(root, script):
        return must("unshare", "--net", "--mount", "--propagation", "private", "bash", "-ec",
                    INSIDE, "bash", root, script)

    def build(self):
        """Follows docs/install.md on the machine that builds."""
        self.inside(self.builder, "apt-get update && apt-get install -y git && "
                                  "git clone -q /mnt/mirror/trireme.git /srv/trireme")
        self.inside(self.builder, "cd /srv/trireme && ./dev install-deps")
        self.passed("what building needs is installed")
        self.inside(self.builder, "cd /srv/trireme && ./dev build")
        self.passed("the program is built")
        self.assertIn("The bits are the same.",
                      self.inside(self.builder, "cd /srv/trireme && ./dev demo"))
        self.passed("the demo has ended")

    def test_without_a_network(self):
        self.assertIn("Network is unreachable",
                      self.inside(self.builder, "(: </dev/tcp/192.0.2.1/80) 2>&1 || true"))
        self.build()
        self.inside(self.builder, "cd /srv/trireme && "
                    f"for target in {' '.join(TARGETS)}; do ./dev build release $target; done")
        self.passed("four test programs are built")
        tests = self.inside(self.builder,
                            f"cd /srv/trireme && tests/run.sh build/release -R '{TESTS}'")
        self.assertIn("100% tests passed, 0 tests failed out of 6", tests)
        self.passed("the tests have passed")
        self.inside(self.builder, "cd /srv/trireme && ./dev deb")
        [package] = (self.builder / "srv/trireme/build/release").glob("trireme_*.deb")
        shutil.copy(package, self.node / "srv/trireme.deb")
        self.inside(self.node, "apt-get update && "
                               "apt-get install -y --no-install-recommends /srv/trireme.deb")
        self.assertFalse((self.node / "usr/bin/c++").exists())
        self.inside(self.node, f"trireme data pack --out /run/data {TEXT} && "
                    f"touch /run/train.yaml && mpirun -n 2 trireme train {' '.join(TRAINING)}")
        self.assertTrue((self.node / "run/out/DONE").exists())
        self.passed("the package has trained a model on the other machine")


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Makes the repository of `./dev mirror`, installs a minimal Debian from it in a folder, and there,
without any network: installs what building needs, builds a part of the sources, installs the Debian
package, and trains on two ranks. Needs root, debootstrap, apt-ftparchive and a Debian mirror."""
import shutil
import subprocess
import unittest

import harness
from minimal_debian_test import BUILD, SUITE, TEXT, TRAINING, why_not

INSIDE = """
ip link set lo up
mount --bind /proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --rbind /sys "$1/sys"
exec chroot "$1" /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -ec "$2"
"""


def must(*words, **more):
    return harness.must(subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL,
                                       capture_output=True, text=True, errors="replace",
                                       timeout=1800, check=False, **more)).stdout


class Mirror(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = why_not()
        for tool, package in (("apt-ftparchive", "apt-utils"), ("dh", "debhelper")):
            if not reason and not shutil.which(tool):
                reason = f"needs {tool}: apt-get install {package}"
        if reason:
            raise unittest.SkipTest(reason)
        cls.folder = harness.workspace()
        cls.root = cls.folder / "root"
        must(harness.SOURCE / "dev", "mirror", cls.folder / "mirror")
        must("debootstrap", "--variant=minbase", "--no-check-gpg", SUITE, cls.root,
             f"file:{cls.folder / 'mirror'}")
        (cls.folder / "mirror").rename(cls.root / "mnt/mirror")
        (cls.root / "etc/apt/sources.list").write_text(
            f"deb [trusted=yes] file:/mnt/mirror {SUITE} main\n")
        must(harness.SOURCE / "src/packaging/deb.sh", BUILD.name, cls.root / "srv")
        must("git", "-c", "safe.directory=*", "clone", "-q", harness.SOURCE, cls.root / "src")

    @classmethod
    def inside(cls, script):
        return must("unshare", "--net", "--mount", "--propagation", "private", "bash", "-ec",
                    INSIDE, "bash", cls.root, script)

    def test_without_a_network(self):
        self.assertIn("Network is unreachable",
                      self.inside("(: </dev/tcp/192.0.2.1/80) 2>&1 || true"))
        self.inside("cd /src && ./dev install-deps")
        self.inside("cd /src && ./dev build release base_test && "
                    "build/release/tests/base/base_test --gtest_brief")
        self.inside("apt-get install -y --no-install-recommends /srv/trireme_*.deb")
        self.inside(f"trireme data pack --out /run/data {TEXT} && touch /run/train.yaml && "
                    f"mpirun -n 2 trireme train {' '.join(TRAINING)}")
        self.assertTrue((self.root / "run/out/DONE").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Makes the Debian package and installs it into a folder. Needs debhelper; also root for dpkg;
lintian and systemd-analyze look at it where they are installed."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness

BUILD = pathlib.Path(harness.PROGRAM).resolve().parent
SCRIPT = harness.SOURCE / "src/packaging/deb.sh"


def must(*words, **more):
    return harness.must(subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL,
                                       capture_output=True, text=True, timeout=300, check=False,
                                       **more)).stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("dh"):
            raise unittest.SkipTest("needs debhelper: apt-get install debhelper")
        cls.folder = harness.workspace()
        must(SCRIPT, BUILD.name, cls.folder)
        [cls.package] = cls.folder.glob("trireme_*_*.deb")

    def contents(self, package=None):
        """Returns the files of a package, without the leading dot."""
        lines = must("dpkg-deb", "--contents", package or self.package).splitlines()
        return {re.split(r" +", line, maxsplit=5)[5].removeprefix("."): line for line in lines}

    def field(self, name):
        return must("dpkg-deb", "--field", self.package, name).strip()

    def test_contents(self):
        found = self.contents()
        for name in ["/usr/bin/trireme", "/usr/share/man/man1/trireme.1.gz",
                     "/usr/share/man/man1/trireme-train.1.gz",
                     "/usr/share/man/man5/trireme.yaml.5.gz",
                     "/usr/share/bash-completion/completions/trireme",
                     "/usr/share/zsh/vendor-completions/_trireme",
                     "/usr/share/fish/vendor_completions.d/trireme.fish",
                     "/lib/systemd/system/trireme-health.service",
                     "/lib/systemd/system/trireme-health.timer",
                     "/etc/trireme/site.yaml", "/etc/default/trireme-health",
                     "/usr/share/trireme/run/demo.yaml", "/usr/share/doc/trireme/copyright",
                     "/usr/share/doc/trireme/docs/getting-started.md"]:
            self.assertIn(name, found)
        for name, line in found.items():
            self.assertRegex(line, r"^[-dl]\S{9} root/root ", name)

    def test_fields(self):
        version = harness.run("--version").stdout.split()[1]
        self.assertEqual(self.field("Version"), version)
        for needed in ("openmpi-bin", "libopenmpi3", "libhdf5-103-1", "libdnnl2", "libssl3"):
            self.assertIn(needed, self.field("Depends"))
        files = must("dpkg-deb", "--info", self.package, "conffiles").split()
        self.assertEqual(sorted(files), ["/etc/default/trireme-health", "/etc/trireme/site.yaml"])

    def test_debug_information(self):
        [debug] = self.folder.glob("trireme-dbgsym_*.deb")
        notes = must("readelf", "--notes", BUILD / "trireme")
        identity = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
        self.assertIn(f"/usr/lib/debug/.build-id/{identity[:2]}/{identity[2:]}.debug",
                      self.contents(debug))

    def test_lintian_finds_nothing(self):
        if not shutil.which("lintian"):
            self.skipTest("needs lintian: apt-get install lintian")
        result = subprocess.run(["lintian", "--allow-root", "--fail-on=error,warning",
                                 "--tag-display-limit=0", *self.folder.glob("*.deb")],
                                capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_units(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("needs systemd-analyze: apt-get install systemd")
        must("dpkg-deb", "--extract", self.package, self.folder / "units")
        units = self.folder / "units/lib/systemd/system"
        service = (units / "trireme-health.service").read_text()
        # The program is not installed here.
        (units / "trireme-health.service").write_text(
            service.replace("/usr/bin/trireme", str(BUILD / "trireme")))
        result = subprocess.run(["systemd-analyze", "verify", "--man=no",
                                 *sorted(units.glob("trireme-*"))],
                                capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_site_files_are_read(self):
        """The file as it is sets nothing; each of its suggestions is a valid setting."""
        site = self.folder / "site"
        site.mkdir()
        text = (harness.SOURCE / "src/packaging/debian/site/site.yaml").read_text()
        suggestions = re.findall(r"^#(\w+: \{.*)$", text, re.MULTILINE)
        self.assertEqual(len(suggestions), 4)
        run = harness.SOURCE / "configs/run/demo.yaml"
        plain = harness.must(harness.run("config", "show", run)).stdout
        (site / "site.yaml").write_text(text)
        shown = harness.run("config", "show", run, env={"TRIREME_SITE_DIR": str(site)})
        self.assertEqual(harness.must(shown).stdout, plain)
        (site / "site.yaml").write_text("\n".join(suggestions) + "\n")
        shown = harness.run("config", "show", run, env={"TRIREME_SITE_DIR": str(site)})
        self.assertIn("site.yaml:4", harness.must(shown).stdout)

    def test_install_change_remove(self):
        if os.geteuid() != 0:
            self.skipTest("dpkg needs root")
        root = self.folder / "root"
        (root / "var/lib/dpkg/info").mkdir(parents=True)
        (root / "var/lib/dpkg/updates").mkdir()
        (root / "var/lib/dpkg/status").touch()

        def dpkg(*words):
            must("dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless",
                 "--force-confold", f"--log={root}/log", *words,
                 env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})

        dpkg("--install", self.package)
        program = root / "usr/bin/trireme"
        self.assertEqual(must(program, "--version"), harness.run("--version").stdout)
        self.assertLess(program.stat().st_size, (BUILD / "trireme").stat().st_size / 2)
        self.assertFalse(list(root.glob("etc/systemd/system/*.wants/*")))  # nothing is enabled
        (root / "etc/trireme/site.yaml").write_text("# ours\n")
        dpkg("--install", self.package)
        self.assertEqual((root / "etc/trireme/site.yaml").read_text(), "# ours\n")
        dpkg("--purge", "trireme")
        left = {str(p.relative_to(root)) for p in root.rglob("*trireme*")}
        self.assertEqual(left, set())


if __name__ == "__main__":
    unittest.main(verbosity=2)

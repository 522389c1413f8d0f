"""Tests cmake --install, and what remains after it is undone."""

import os
import pathlib
import re
import subprocess
import unittest

import harness

BUILD = pathlib.Path(harness.PROGRAM).resolve().parent


def cmake(*arguments):
    result = subprocess.run(["cmake", *map(str, arguments)], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=120, check=False)
    return harness.must(result)


def content(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = harness.workspace() / "usr"
        # The folder and a file of another program existed before.
        (cls.prefix / "share/man/man1").mkdir(parents=True)
        (cls.prefix / "share/man/man1/other.1").write_text("of another program")
        cls.before = content(cls.prefix)

    def installed(self):
        cmake("--install", BUILD, "--prefix", self.prefix)
        return content(self.prefix)

    def uninstall(self):
        cmake("-P", BUILD / "packaging/uninstall.cmake")

    def test_all_is_there_and_goes_again(self):
        found = self.installed()
        commands = [line.split()[0] for line in harness.run("--help").stdout.splitlines()
                    if re.match(r"  [a-z]+ {2,}", line)]
        self.assertIn("train", commands)
        for name in ["bin/trireme", "share/man/man1/trireme.1", "share/man/man5/trireme.yaml.5",
                     *[f"share/man/man1/trireme-{c}.1" for c in commands],
                     "share/bash-completion/completions/trireme",
                     "share/zsh/vendor-completions/_trireme",
                     "share/fish/vendor_completions.d/trireme.fish",
                     "share/doc/trireme/README.md", "share/doc/trireme/LICENSE",
                     "share/doc/trireme/copyright", "share/doc/trireme/docs/getting-started.md",
                     "share/trireme/model/gpt2-124m.yaml", "share/trireme/run/demo.yaml",
                     "share/trireme/site/cpu.yaml", "share/trireme/cluster/h100-pod.yaml",
                     "share/trireme/node-health.sh",
                     "share/trireme/prolog.sh", "share/trireme/epilog.sh",
                     "share/trireme/trireme.nhc"]:
            self.assertIn(name, found)
        self.check_program()
        # The debug information is where debuggers search for it.
        [debug] = [name for name in found if name.endswith(".debug")]
        self.assertRegex(debug, r"^lib/debug/\.build-id/[0-9a-f]{2}/[0-9a-f]+\.debug$")
        self.installed()  # installing again changes nothing
        self.assertEqual(content(self.prefix), found)
        self.uninstall()
        self.assertEqual(content(self.prefix), self.before)

    def check_program(self):
        program = self.prefix / "bin/trireme"
        built = pathlib.Path(harness.PROGRAM)
        self.assertLess(program.stat().st_size, built.stat().st_size / 2)
        self.assertTrue(os.access(program, os.X_OK))
        version = [subprocess.run([p, "--version"], capture_output=True, text=True, check=True)
                   for p in (program, built)]
        self.assertEqual(version[0].stdout, version[1].stdout)

    def test_parts(self):
        cmake("--install", BUILD, "--prefix", self.prefix, "--component", "debug")
        files = [n for n in content(self.prefix) if (self.prefix / n).is_file()]
        self.assertEqual([n for n in files if not n.endswith(".debug")],
                         ["share/man/man1/other.1"])
        self.uninstall()
        self.assertEqual(content(self.prefix), self.before)

    def test_a_foreign_file_stays(self):
        self.installed()
        own = self.prefix / "share/trireme/model/ours.yaml"
        own.write_text("mine")
        self.uninstall()
        self.assertEqual(own.read_text(), "mine")
        own.unlink()
        own.parent.rmdir()
        own.parent.parent.rmdir()
        self.assertEqual(content(self.prefix), self.before)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Tests that the list of a release's digests is signed, that other tools can check it, and that
`trireme verify` finds every change. The commands openssl and sha256sum are the independent
judges."""
import json
import os
import pathlib
import subprocess
import unittest

import harness

FILES = {"trireme-1.tar.gz": b"sources", "trireme_1_amd64.deb": b"package", "a b": b""}


def tool(*words, cwd):
    return subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True,
                          check=False)


class Release(unittest.TestCase):
    def setUp(self):
        self.folder = harness.workspace()
        self.keys = harness.workspace()
        self.key = self.keys / "site.key"
        harness.must(harness.run("audit", "keygen", "--out", self.key, "--name", "Site A"))
        for name, data in FILES.items():
            (self.folder / name).write_bytes(data)
        self.sums = self.folder / "SHA256SUMS"
        self.sums.write_text(tool("sha256sum", "--", *FILES, cwd=self.folder).stdout)
        harness.must(harness.run("audit", "sign", self.sums, "--key", self.key))

    def verify(self, *options, trust=None):
        result = harness.run("verify", self.sums, "--trust", trust or f"{self.key}.pub", *options)
        return result.returncode, result.stdout + result.stderr

    def expect(self, code, text, *options, trust=None):
        found, output = self.verify(*options, trust=trust)
        self.assertEqual(found, code, output)
        self.assertIn(text, output)

    def test_good_release(self):
        self.expect(0, "list " + str(self.sums) + ": 3 of 3 files as signed")
        self.expect(0, "signed by Site A (key ")
        code, output = self.verify("--json")
        page = json.loads(output)
        self.assertEqual((code, page["code"], page["files"], page["faults"]), (0, 0, 3, []))

    def test_other_tools_agree(self):
        check = tool("sha256sum", "--check", "--strict", self.sums.name, cwd=self.folder)
        self.assertEqual(check.returncode, 0, check.stdout)

        def openssl():
            return tool("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", f"{self.key}.pub",
                        "-rawin", "-in", "SHA256SUMS", "-sigfile", "SHA256SUMS.sig",
                        cwd=self.folder).returncode

        self.assertEqual(openssl(), 0)
        self.sums.write_text(self.sums.read_text().replace("a b", "a c"))
        self.assertNotEqual(openssl(), 0)

    def test_what_openssl_signs_is_accepted(self):
        signed = tool("openssl", "pkeyutl", "-sign", "-inkey", self.key, "-rawin", "-in",
                      "SHA256SUMS", "-out", "again.sig", cwd=self.folder)
        self.assertEqual(signed.returncode, 0, signed.stderr)
        self.assertEqual((self.folder / "again.sig").read_bytes(),
                         (self.folder / "SHA256SUMS.sig").read_bytes())

    def test_changed_and_missing_files(self):
        (self.folder / "trireme-1.tar.gz").write_bytes(b"Sources")
        self.expect(65, "trireme-1.tar.gz is not the file that was signed")
        (self.folder / "trireme-1.tar.gz").write_bytes(FILES["trireme-1.tar.gz"])
        (self.folder / "a b").unlink()
        self.expect(66, "a b is not there")
        self.expect(0, "2 of 3 files as signed", "--allow-missing")
        os.mkfifo(self.folder / "a b")
        self.expect(65, "a b")

    def test_changed_list_or_signature(self):
        for path in (self.sums, self.folder / "SHA256SUMS.sig"):
            good = path.read_bytes()
            for at in range(len(good)):
                changed = bytes([*good[:at], good[at] ^ 1, *good[at + 1:]])
                if at % 16 == 0 or path.suffix == ".sig":
                    path.write_bytes(changed)
                    self.assertIn(self.verify()[0], (65, 77), (path, at))
            path.write_bytes(good)
        self.expect(0, "as signed")
        self.sums.write_bytes(b"".join(self.sums.read_bytes().splitlines(True)[:2]))
        self.expect(77, "no key of the trust file has signed")

    def test_files_of_an_untrusted_list_are_not_read(self):
        other = self.keys / "other.key"
        harness.must(harness.run("audit", "keygen", "--out", other))
        self.expect(77, "were not read", trust=f"{other}.pub")
        self.assertEqual(json.loads(self.verify("--json", trust=f"{other}.pub")[1])["bytes"], 0)
        (self.folder / "SHA256SUMS.sig").unlink()
        self.expect(77, "nobody has signed the list")

    def test_a_signature_is_not_replaced(self):
        signature = self.folder / "SHA256SUMS.sig"
        before = signature.read_bytes()
        harness.must(harness.run("audit", "sign", self.sums, "--key", self.key))
        other = self.keys / "second.key"
        harness.must(harness.run("audit", "keygen", "--out", other))
        told = harness.run("audit", "sign", self.sums, "--key", other)
        self.assertEqual(told.returncode, 77, told.stderr)
        self.assertIn("is not this key's signature of the list", told.stderr)
        self.assertEqual(signature.read_bytes(), before)

    def test_names_do_not_lead_out_of_the_folder(self):
        digest = "0" * 64
        for name in ("../key", "/etc/passwd", "..", "b/c"):
            self.sums.write_text(f"{digest}  {name}\n")
            result = harness.run("audit", "sign", self.sums, "--key", self.key)
            self.assertEqual(result.returncode, 65, result.stderr)
            self.assertIn("not the plain name of a file", result.stderr)

    def test_a_key_that_others_can_read_signs_nothing(self):
        self.key.chmod(0o644)
        before = (self.folder / "SHA256SUMS.sig").stat().st_mtime_ns
        result = harness.run("audit", "sign", self.sums, "--key", self.key)
        self.assertEqual(result.returncode, 77, result.stderr)
        self.assertEqual((self.folder / "SHA256SUMS.sig").stat().st_mtime_ns, before)

    def test_verification_in_the_document(self):
        """Runs the commands of docs/install.md as they stand there."""
        document = (harness.SOURCE / "docs/install.md").read_text()
        commands = document.split("checks a release without Trireme", 1)[1].split("\n\n")[1]
        script = "\n".join(line.strip() for line in commands.splitlines())
        (self.folder / "site.pub").write_bytes(pathlib.Path(f"{self.key}.pub").read_bytes())
        result = tool("bash", "-ec", script, cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        (self.folder / "a b").write_bytes(b"changed")
        self.assertNotEqual(tool("bash", "-ec", script, cwd=self.folder).returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Checks the bills of materials that the program prints of itself: their structure, and that they
list what the dynamic linker loads."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import unittest

import harness

FORMATS = ("cyclonedx", "spdx")
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}
TIME = "2023-11-14T22:13:20Z"
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
DPKG = pathlib.Path("/var/lib/dpkg/status")


def text_of(form, env=None, program=None):
    done = subprocess.run([program or harness.PROGRAM, "--version", "--sbom", form],
                          env={**harness.ENVIRONMENT, **EPOCH, **(env or {})},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)
    return harness.must(done).stdout


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def loaded(env=None):
    """Returns the libraries that the system's ldd lists, without the vdso."""
    listed = subprocess.run(["ldd", harness.PROGRAM], env={**os.environ, **(env or {})},
                            capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", listed, re.MULTILINE)
    assert len(found) > 5, listed
    return {os.path.realpath(path) for path in found}


def properties(component):
    return {p["name"]: p["value"] for p in component["properties"]}


def cyclonedx_paths(bom):
    return {properties(c)["trireme:path"]: c for c in bom["components"]}


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bom, cls.spdx = (json.loads(text_of(form)) for form in FORMATS)
        version = json.loads(harness.must(harness.run("--version", "--json")).stdout)
        cls.version, cls.commit = version["version"], version["commit"]

    def test_cyclonedx(self):
        bom = self.bom
        self.assertEqual((bom["bomFormat"], bom["specVersion"], bom["version"]),
                         ("CycloneDX", "1.5", 1))
        self.assertRegex(bom["serialNumber"], f"^urn:uuid:{UUID}$")
        self.assertEqual(bom["metadata"]["timestamp"], TIME)
        program = bom["metadata"]["component"]
        self.assertEqual((program["type"], program["name"], program["version"]),
                         ("application", "trireme", self.version))
        self.assertEqual(properties(program)["trireme:commit"], self.commit)
        self.assertEqual(program["hashes"], [{"alg": "SHA-256",
                                              "content": digest(harness.PROGRAM)}])
        for path, library in cyclonedx_paths(bom).items():
            self.assertEqual(library["type"], "library")
            self.assertEqual(library["name"], properties(library)["trireme:soname"])
            self.assertEqual(library["hashes"], [{"alg": "SHA-256", "content": digest(path)}])
        refs = [program["bom-ref"]] + [c["bom-ref"] for c in bom["components"]]
        self.assertEqual(len(refs), len(set(refs)))
        self.assertEqual([d["ref"] for d in bom["dependencies"]], refs)
        self.assertEqual(bom["dependencies"][0]["dependsOn"], refs[1:])
        for dependency in bom["dependencies"]:
            self.assertLessEqual(set(dependency.get("dependsOn", [])), set(refs))

    def test_spdx(self):
        spdx = self.spdx
        self.assertEqual((spdx["spdxVersion"], spdx["dataLicense"], spdx["SPDXID"]),
                         ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
        self.assertRegex(spdx["documentNamespace"],
                         f"^https://spdx.org/spdxdocs/trireme-{re.escape(self.version)}-{UUID}$")
        self.assertEqual(spdx["creationInfo"], {"created": TIME,
                                                "creators": [f"Tool: trireme-{self.version}"]})
        program = spdx["packages"][0]
        self.assertEqual((program["name"], program["versionInfo"], program["sourceInfo"]),
                         ("trireme", self.version, f"commit {self.commit}"))
        self.assertEqual(program["checksums"][0]["checksumValue"], digest(harness.PROGRAM))
        for package in spdx["packages"]:
            self.assertRegex(package["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            self.assertLessEqual({"name", "downloadLocation", "packageFileName"}, set(package))
            self.assertEqual(package["checksums"],
                             [{"algorithm": "SHA256",
                               "checksumValue": digest(package["packageFileName"])}])
        ids = ["SPDXRef-DOCUMENT"] + [p["SPDXID"] for p in spdx["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        ends = [(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"])
                for r in spdx["relationships"]]
        self.assertEqual(ends[0], (ids[0], "DESCRIBES", ids[1]))
        self.assertEqual(ends[1:], [(ids[1], "DEPENDS_ON", i) for i in ids[2:]])

    def test_libraries_are_those_that_ldd_lists(self):
        self.assertEqual(set(cyclonedx_paths(self.bom)), loaded())
        self.assertEqual({p["packageFileName"] for p in self.spdx["packages"][1:]}, loaded())

    def test_a_library_from_elsewhere_is_listed_as_such(self):
        """A copy has no Debian package; a document that lists it has another identifier."""
        folder = harness.workspace()
        [path] = [p for p in loaded() if "/libz.so" in p]
        copy = folder / "libz.so.1"
        copy.write_bytes(pathlib.Path(path).read_bytes())
        env = {"LD_LIBRARY_PATH": str(folder)}
        bom = json.loads(text_of("cyclonedx", env))
        libraries = cyclonedx_paths(bom)
        self.assertEqual(set(libraries), loaded(env))
        self.assertNotIn(path, libraries)
        self.assertFalse({"purl", "version"} & set(libraries[str(copy.resolve())]))
        self.assertNotEqual(bom["serialNumber"], self.bom["serialNumber"])

    @unittest.skipUnless(DPKG.exists(), "no dpkg here")
    def test_debian_packages_are_those_that_dpkg_names(self):
        """dpkg-query prints what the program reads from the files."""
        form = "${binary:Package}\t${Version}\t${Architecture}\t${source:Package}\t" \
               "${source:Version}\n"
        known = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        rows = {tuple([row.split("\t")[0].split(":")[0], *row.split("\t")[1:]]) for row in known}
        names = ["package", "version", "architecture", "source", "source-version"]
        packaged = [c for c in self.bom["components"] if "purl" in c]
        self.assertGreater(len(packaged), 5)
        for component in packaged:
            found = properties(component)
            row = tuple(found[f"trireme:debian:{name}"] for name in names)
            self.assertIn(row, rows)
            self.assertEqual(component["version"], row[1])
            self.assertRegex(component["purl"],
                             r"^pkg:deb/(debian|ubuntu)/[\w.%-]+@[\w.~:%-]+\?arch=[a-z0-9-]+$")
            if "trireme:debian:copyright" in found:
                self.assertTrue(pathlib.Path(found["trireme:debian:copyright"]).is_file())
        listed = {r["referenceLocator"] for p in self.spdx["packages"]
                  for r in p.get("externalRefs", [])}
        self.assertEqual(listed, {c["purl"] for c in packaged})

    def test_is_the_same_each_time_but_for_the_time(self):
        for form in FORMATS:
            self.assertEqual(text_of(form), text_of(form))
            later = text_of(form, {"SOURCE_DATE_EPOCH": "1700000001"})
            self.assertEqual(later.replace("22:13:21Z", "22:13:20Z"), text_of(form))

    def test_wrong_words_are_refused(self):
        for words, text in [(["--sbom", "swid"], "'swid' is not one of cyclonedx, spdx"),
                            (["--sbom"], "--sbom")]:
            done = harness.run("--version", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)
        done = harness.run("--version", "--sbom", "spdx", env={"SOURCE_DATE_EPOCH": "soon"})
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("SOURCE_DATE_EPOCH is 'soon'", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

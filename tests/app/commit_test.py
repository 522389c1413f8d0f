"""Tests src/app/command/commit.cmake with a small program in a repository of its own: the program
names the commit that it is built from, and only a changed text builds anything."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FOLDER = "src/app/command"
ENVIRONMENT = dict(
    {name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    GIT_CONFIG_GLOBAL="/dev/null", GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@example.org",
    GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@example.org", CCACHE_DISABLE="1")
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
include({FOLDER}/commit.cmake)
add_library(version STATIC version.cc)
target_include_directories(version PUBLIC ${{CMAKE_SOURCE_DIR}})
trireme_commit(version)
add_executable(program main.cc)
target_link_libraries(program version)
"""
VERSION = f"""
#include "{FOLDER}/commit.h"
const char* version() {{ return trireme::kCommit; }}
"""
MAIN = """
#include <cstdio>
const char* version();
int main() { std::puts(version()); }
"""


def run(*words, cwd, **variables):
    result = subprocess.run([str(word) for word in words], cwd=cwd,
                            env={**ENVIRONMENT, **variables}, stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=120, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{result.args}: {result.stdout}{result.stderr}")
    return result.stdout.strip()


class Commit(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="trireme-commit-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name).resolve()
        self.tree = self.scratch / "tree"
        (self.tree / FOLDER).mkdir(parents=True)
        for name in ["commit.cmake", "commit.h", "commit.txt"]:
            shutil.copy(SOURCE / FOLDER / name, self.tree / FOLDER)
        shutil.copy(SOURCE / ".gitattributes", self.tree)
        for name, text in [("CMakeLists.txt", PROJECT), ("version.cc", VERSION),
                           ("main.cc", MAIN), ("notes", "one\n"), (".gitignore", "build/\n")]:
            (self.tree / name).write_text(text)
        run("git", "init", "-q", cwd=self.tree)
        self.commit()

    def git(self, *words):
        return run("git", *words, cwd=self.tree)

    def commit(self, *words):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change", *words)
        return self.git("rev-parse", "HEAD")[:12]

    def built(self, tree=None, **variables):
        """Builds, and returns what the program says."""
        tree = tree or self.tree
        build = tree / "build"
        if not (build / "build.ninja").exists():
            run("cmake", "-G", "Ninja", "-S", tree, "-B", build, cwd=tree)
        run("ninja", "-C", build, cwd=tree, **variables)
        return run(build / "program", cwd=tree)

    def times(self):
        return {path: path.stat().st_mtime_ns for path in (self.tree / "build").rglob("*")
                if path.suffix in (".o", ".a", ".cc") or path.name == "program"}

    def archive(self, folder):
        folder.mkdir(parents=True)
        run("sh", "-c", f"git archive HEAD | tar -x -C {folder}", cwd=self.tree)
        return folder

    def test_a_build_names_the_commit_as_it_is_then(self):
        self.assertEqual(self.built(), self.git("rev-parse", "HEAD")[:12])
        (self.tree / "notes").write_text("two\n")
        self.assertEqual(self.built(), self.git("rev-parse", "HEAD")[:12] + "-dirty")
        second = self.commit()
        self.assertEqual(self.built(), second)
        third = self.commit("--allow-empty")  # touches no file that is tracked
        self.assertNotEqual(third, second)
        self.git("pack-refs", "--all")
        self.assertEqual(self.built(), third)
        self.git("checkout", "-q", "HEAD~1")
        self.assertEqual(self.built(), second)

    def test_nothing_is_built_unless_the_text_changes(self):
        self.built()
        before = self.times()
        self.assertIn(self.tree / "build/commit.cc", before)
        self.built()
        self.assertEqual(self.times(), before)
        self.commit("--allow-empty")
        self.built()
        changed = {path.name for path, time in self.times().items() if before[path] != time}
        self.assertEqual(changed, {"commit.cc", "commit.cc.o", "libversion.a", "program"})

    def test_an_archive_keeps_the_commit(self):
        head = self.git("rev-parse", "HEAD")[:12]
        self.assertEqual(self.built(self.archive(self.scratch / "unpacked")), head)
        # An archive in a clone of something else is not of that clone's commit.
        other = self.scratch / "other"
        other.mkdir()
        run("git", "init", "-q", cwd=other)
        run("git", "commit", "-q", "--allow-empty", "-m", "other", cwd=other)
        self.assertEqual(self.built(self.archive(other / "within")), head)

    def test_variables_of_another_repository_are_ignored(self):
        other = self.scratch / "other"
        other.mkdir()
        run("git", "init", "-q", cwd=other)
        run("git", "commit", "-q", "--allow-empty", "-m", "other", cwd=other)
        for name, value in [("GIT_DIR", other / ".git"), ("GIT_WORK_TREE", other),
                            ("GIT_INDEX_FILE", other / ".git/index"),
                            ("GIT_COMMON_DIR", other / ".git"),
                            ("GIT_OBJECT_DIRECTORY", other / ".git/objects")]:
            with self.subTest(name):
                self.assertEqual(self.built(**{name: str(value)}),
                                 self.git("rev-parse", "HEAD")[:12])

    def test_a_copy_without_git_says_that_it_does_not_know(self):
        shutil.rmtree(self.tree / ".git")
        self.assertEqual(self.built(), "unknown")


if __name__ == "__main__":
    unittest.main(verbosity=2)

#!/usr/bin/python3
"""Tests that the lint scripts find each fault that is planted into a small tree."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOUND = {
    "src/base/a.h": "#pragma once\n#include <vector>\n",
    "src/device/b.h": '#pragma once\n#include "src/base/a.h"\n',
    "mpi/session/world.cc": '#include <mpi.h>\n#include "src/device/b.h"\n',
    "src/app/main.cc": '#include "src/app/main.h"\n#include "src/device/b.h"\n',
    "src/app/main.h": "#pragma once\n",
}


def run(script, tree):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in tree.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, str(HERE / script), folder], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout + done.stderr


class LintTest(unittest.TestCase):
    def check(self, script, name, text, expected):
        code, said = run(script, {**SOUND, name: text})
        self.assertEqual(code, 1, said)
        self.assertIn(expected, said)
        self.assertIn(name, said)

    def test_a_sound_tree_passes(self):
        for script in ("rooms_test.py", "sizes_test.py", "types_test.py", "members_test.py",
                       "paths_test.py"):
            code, said = run(script, SOUND)
            self.assertEqual(code, 0, said)

    def test_an_empty_tree_is_no_success(self):
        self.assertEqual(run("rooms_test.py", {})[0], 1)

    def test_rooms(self):
        for name, text, expected in (
                ("src/base/x.cc", '#include "src/device/b.h"\n', "may not include src/device"),
                ("src/device/x.cc", '  #  include "src/app/main.h"\n', "may not include src/app"),
                ("src/base/x.cc", '#include "a.h"\n', "not a file below"),
                ("src/base/x.cc", "#include <mpi.h>\n", "may be included only by"),
                ("src/base/x.cc", "#include <hdf5.h>\n", "may be included only by"),
                ("src/app/x.cc", "#include <cuda_runtime.h>\n", "may be included only by"),
                ("src/device/x.cc", "#ifdef TRIREME_CUDA\n#endif\n", "switch on a back end"),
                ("src/base/a.cc", '#include <vector>\n#include "src/base/a.h"\n', "its own header"),
                ("src/elsewhere/x.cc", "int x;\n", "no room")):
            self.check("rooms_test.py", name, text, expected)

    def test_cluster_sources(self):
        page = "## Sources\n\n| in comments | says |\n|---|---|\n| A datasheet, Site | 1 |\n"
        name = "configs/cluster/a.yaml"
        for figure, expected in (
                ("watts: 400", "watts has no comment"),
                ("memory: 80GiB  # somebody said so", "names no source"),
                ("watts: 400  # A datasheet: the limit", ""),
                ("nodes: 4  # an assumption", ""),
                ("memory: 80GiB  # the same", "")):
            code, said = run("cluster_sources_test.py",
                             {"docs/planner.md": page, name: f"name: 7 of 9\n{figure}\n"})
            self.assertEqual(code, 1 if expected else 0, said)
            self.assertIn(expected, said)

    def test_fuzz_table(self):
        target, first = "tests/fuzz/a_fuzz.cc", "tests/fuzz/corpus/a_fuzz/first"
        sound = {target: "", first: "x", "docs/security.md": "| a_fuzz | reads a | 1,234 |\n"}
        self.assertEqual(run("fuzz_table_test.py", sound)[0], 0)
        for name, text, expected in (
                ("docs/security.md", "", "no row in the table"),
                ("docs/security.md", "| a_fuzz | reads a | |\n", "no row in the table"),
                ("docs/security.md", sound["docs/security.md"] * 2, "a_fuzz twice"),
                ("docs/security.md", sound["docs/security.md"] + "| b_fuzz | reads b | 1 |\n",
                 "names b_fuzz, which is no target"),
                ("tests/fuzz/c_fuzz.cc", "", "no first inputs in tests/fuzz/corpus/c_fuzz")):
            code, said = run("fuzz_table_test.py", {**sound, name: text})
            self.assertEqual(code, 1, said)
            self.assertIn(expected, said)

    def test_named_tests(self):
        head = "| attack | answer | test |\n|---|---|---|\n"
        sound = {"tests/a_test.cc": "TEST_F(Suite, Finds) {}\n", "tests/x_fuzz.cc": "",
                 "tests/b_test.py": "class Cuts(unittest.TestCase):\n    def test_cut(self):\n",
                 "docs/security.md": head + "| a | 65 | `Suite.Finds`, `test_cut` in b_test.py |\n"
                                     "| b-c | 65 | `Finds`, `Cuts` |\n| d | 65 | `x_fuzz` |\n"}
        self.assertEqual(run("named_tests_test.py", sound)[0], 0)
        for row, expected in (("| a | 65 | `test_gone` |\n", "'test_gone' does not exist"),
                              ("| a | 65 | `Suite.Other` |\n", "'Suite.Other' does not exist"),
                              ("| a | 65 | none |\n", "names no test")):
            code, said = run("named_tests_test.py", {**sound, "docs/security.md": head + row})
            self.assertEqual(code, 1, said)
            self.assertIn(expected, said)

    def test_sizes(self):
        self.check("sizes_test.py", "src/base/x.cc", "int x;\n" * 401, "401 lines")
        self.check("sizes_test.py", "src/base/x.cc", "//" + "x" * 99 + "\n", "101 columns")
        body = "  f();\n" * 58
        self.check("sizes_test.py", "src/base/x.cc", f"int f(int a,\n      int b) {{\n{body}}}\n",
                   "src/base/x.cc:1: a function of 61 lines")
        short = f"int f(int a) {{\n{body}}}\n\nclass A {{\n{body}  int x;\n}};\n"
        self.assertEqual(run("sizes_test.py", {**SOUND, "src/base/x.cc": short})[0], 0)
        self.check("sizes_test.py", "src/base/x.cc", "int x; \n", "blanks at the end")

    def test_types(self):
        same = "namespace trireme {\nstruct A;\ntemplate <class T>\nclass A final : B {};\n}\n"
        for name, text in (("src/base/x.h", same + same),
                           ("slurm/x.h", same + "namespace trireme { using A = int; }\n"),
                           ("mpi/x.h", same + "namespace trireme { enum class A : char {}; }\n")):
            self.check("types_test.py", name, text, "trireme::A is defined more than once")
        for other in ("namespace trireme::cpu { struct A {}; }", "namespace trireme { class A; }",
                      "namespace trireme { namespace { class A {}; } }",
                      "namespace trireme { class B { struct A {}; }; void f() { struct A {}; } }",
                      "namespace trireme { template <> struct A<int> {}; } // struct A {}"):
            code, said = run("types_test.py", {**SOUND, "src/base/x.h": same, "io/y.h": other})
            self.assertEqual(code, 0, said)

    def test_constants(self):
        same = "namespace trireme {\ninline constexpr int kA = 1 << 2, kB = int(3);\n}\n"
        for text in ("namespace trireme { inline constexpr std::pair<int, A> kA = {1, a < b}; }",
                     "namespace trireme { const char* const kZ = \"kA\", *kB = kZ; }",
                     "namespace trireme { constexpr std::array<int, 2> kB{1, 2}; }",
                     "namespace trireme { inline const A kA; }",
                     "namespace trireme { inline constexpr int kA[kZ] = {}, kY = f(1, 2); }"):
            tree = {**SOUND, "src/base/x.h": same, "io/y.h": text}
            code, said = run("types_test.py", tree)
            self.assertEqual(code, 1, text)
            self.assertRegex(said, "io/y.h:1 and src/base/x.h:2: trireme::k[AB] is defined more")
        for name, text in (
                ("io/y.cc", "namespace trireme { constexpr int kA = 1; }"),
                ("io/y.h", "namespace trireme::cpu { inline constexpr int kA = 1; }"),
                ("io/y.h", "namespace trireme { namespace { constexpr int kA = 1; } }"),
                ("io/y.h", "namespace trireme { struct B { static constexpr int kA = 1; }; }"),
                ("io/y.h", "namespace trireme { inline int f(int x = kB) { const int kA = x; } }"),
                ("io/y.h", "namespace trireme { inline constexpr int kC = f(1, kA == kB); }"),
                ("io/y.h", "namespace trireme { constexpr bool operator==(A kA, A kB) {} }"),
                ("io/y.h", "namespace trireme { inline constexpr A<2, kA> kC{kA, kB}; }"),
                ("src/base/x.h", same + "#else\n" + same)):
            code, said = run("types_test.py", {**SOUND, "src/base/x.h": same, name: text})
            self.assertEqual(code, 0, text + said)
        pair = {"src/device/cuda/native/x.h": same, "src/device/sim/include/x.h": same}
        self.assertEqual(run("types_test.py", {**SOUND, **pair})[0], 0)
        self.assertEqual(run("types_test.py", {**SOUND, **pair, "src/kernels/x.h": same})[0], 1)

    def test_constants_of_headers_are_inline(self):
        for text in ("constexpr int kA = 1;", "const char* const kA = f(1);", "const A kA{1, 2};",
                     "constexpr std::array<int, 2> kA{1};", "static constexpr int kA = 1;",
                     "namespace cpu {\nconstexpr A<1, 2> kA;\n}"):
            self.check("types_test.py", "io/y.h", f"namespace trireme {{\n{text}\n}}\n",
                       "kA is not inline")
        for name, text in (("io/y.h", "inline constexpr int kA = 1;"),
                           ("io/y.h", "constexpr inline int kA = 1;"),
                           ("io/y.h", "extern const int kA;"),
                           ("io/y.h", "template <class T> constexpr int kA = sizeof(T);"),
                           ("io/y.h", "struct B { static constexpr int kA = 1; };"),
                           ("io/y.h", "constexpr int f(int x) { const int kA = x; return kA; }"),
                           ("io/y.cc", "constexpr int kA = 1;")):
            code, said = run("types_test.py", {**SOUND, name: f"namespace trireme {{ {text} }}"})
            self.assertEqual(code, 0, text + said)

    def test_members(self):
        header = {"src/base/long_one.h": "#pragma once\nclass LongOne {\n  int f() const;\n};\n"}
        member = "int LongOne::f() const { return g(); }\n"
        for name, text in (("src/base/other.cc", member), ("mpi/long_one.cc", member),
                           ("src/base/long_ones.cc", "LongOne::LongOne(int x) : x_(x) {}\n"),
                           ("src/base/long.cc", "LongOne::~LongOne() { f(); }\n"),
                           ("src/base/a.cc", "std::vector<X> LongOne::all(\n    int n) {}\n")):
            code, said = run("members_test.py", {**SOUND, **header, name: text})
            self.assertEqual(code, 1, name + said)
            self.assertIn(f"{name}:1: a member of LongOne, whose header is src/base/long_one.h",
                          said)
        for name, text in (("src/base/long_one.cc", member), ("src/base/long_one_more.cc", member),
                           ("src/base/user.cc", "int f() {\n  return LongOne::g();\n}\n"),
                           ("src/base/own.cc", "struct LongOne {\n};\n" + member)):
            code, said = run("members_test.py", {**SOUND, **header, name: text})
            self.assertEqual(code, 0, name + said)

    def test_names_of_headers(self):
        one = "#pragma once\nclass PieceWriter {\n  int f();\n};\n"
        for name, text in (("src/base/writing.h", one), ("io/piece.h", one),
                           ("src/device/b.h", one.replace("Piece", "Page"))):
            self.check("members_test.py", name, text, "give the header its name")
        for name, text in (("src/base/piece_writer.h", one), ("io/piece/writer.h", one),
                           ("io/writer.h", one + "struct Writer {\n};\n"),
                           ("src/base/writing.h", one + "int write(int x);\n"),
                           ("src/base/writing.h", one + one.replace("Piece", "Page"))):
            code, said = run("members_test.py", {**SOUND, name: text})
            self.assertEqual(code, 0, name + said)

    def test_folders_that_include_each_other(self):
        code, said = run("rooms_test.py", {
            **SOUND, "src/app/site/x.h": '#pragma once\n#include "src/app/main.h"\n',
            "src/app/y.cc": '#include "src/app/site/x.h"\n'})
        self.assertEqual(code, 1, said)
        self.assertIn("src/app and src/app/site include each other", said)

    def test_links(self):
        lists = {"src/base/CMakeLists.txt": "trireme_library(base fmt::fmt)\n",
                 "src/device/CMakeLists.txt": "trireme_library(device trireme_base)\n"}
        code, said = run("links_test.py", {**SOUND, **lists})
        self.assertEqual(code, 0, said)
        hidden = {"src/device/b.h": "#pragma once\n",
                  "src/device/b.cc": '#include "src/device/b.h"\n#include "src/base/a.h"\n'}
        for linked, expected in (("PRIVATE trireme_base", 0), ("trireme_base", 1), ("", 1),
                                 ("fmt::fmt PRIVATE trireme_base", 0)):
            lists["src/device/CMakeLists.txt"] = f"trireme_library(device {linked})\n"
            code, said = run("links_test.py", {**SOUND, **lists, **hidden})
            self.assertEqual(code, expected, linked + said)

    def test_paths(self):
        self.check("paths_test.py", "src/base/x.cc", '"/ho' + 'me/me/file"\n', "somebody's machine")
        self.check("paths_test.py", "docs/x.md", "-----BEGIN PRI" + "VATE KEY-----\n", "secret")
        self.check("paths_test.py", "data.bin", "x" * ((1 << 20) + 1), "too large")


if __name__ == "__main__":
    unittest.main()

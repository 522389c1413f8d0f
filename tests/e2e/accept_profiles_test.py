"""`trireme accept` with profiles that are wrong, that no node answers, and whose limits name rates.
No launcher but `env` is needed."""

import json
import os
import unittest

import harness
from accept_test import script, verdicts


class Profiles(unittest.TestCase):
    def test_refusals(self):
        folder = harness.workspace()
        profile = folder / "accept.yaml"
        for text, words, code in [("nodes: n1\nnodez: 1\n", "nodez", 2),
                                  ("nodes: 'n[1-'\n", "n[1-", 2), ("nodes: n1,n1\n", "twice", 2),
                                  ("nodes: '-n1'\n", "no name of a node", 2),
                                  ("nodes: ''\n", "no Slurm job", 2)]:
            with self.subTest(text):
                profile.write_text(text)
                result = harness.run("accept", profile, "--dir", folder / "a")
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(words, result.stderr)
        self.assertEqual(harness.run("accept", folder / "missing.yaml").returncode, 66)

    def test_mistakes_in_measures(self):
        """What no node can start is a wrong profile, found before anything is started."""
        folder = harness.workspace()
        profile = folder / "accept.yaml"
        right = "nodes: n[1-3]\nrounds: 1\nnode: {start: [env, 'N={node}'], measures: [MEASURE]}\n"
        for measure, words in [("gem --size 64", "unknown command 'gem'; did you mean 'gemm'?"),
                               ("gemm --sise 64", "'--sise'; did you mean '--size'?"),
                               ("gemm -J x", "--json-file is given more than once"),
                               ("io --dir /tmp/{nodes}", "'{nodes}' in 'io --dir /tmp/{nodes}'")]:
            with self.subTest(measure):
                profile.write_text(right.replace("MEASURE", f"'{measure}'"))
                result = harness.run("accept", profile, "--dir", folder / "a")
                self.assertEqual(result.returncode, 2, result.stderr)
                for part in (str(profile), "node.measures", measure, words):
                    self.assertIn(part, result.stderr)
                self.assertFalse((folder / "a").exists())
        for start, words in [("nosuchlauncher, '{node}'",
                              "no program 'nosuchlauncher' in the PATH"),
                             ("env", "no word has {node}, so that the program would not start"),
                             ("'env', 'N={nodes}'", "names of nodes are {node}")]:
            with self.subTest(start):
                profile.write_text(right.replace("[env, 'N={node}']", f"[{start}]")
                                   .replace("MEASURE", "health"))
                result = harness.run("accept", profile, "--dir", folder / "a")
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(words, result.stderr)
                self.assertFalse((folder / "a").exists())
        # What only the measurement itself refuses is no fault of the nodes either.
        profile.write_text(right.replace("MEASURE", "mem --bytes 4Q"))
        result = harness.run("accept", profile, "--dir", folder / "b")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("every node refused 'mem --bytes 4Q'", result.stderr)

    def test_nodes_that_do_not_answer(self):
        folder = harness.workspace()
        profile = folder / "accept.yaml"
        profile.write_text("nodes: n[1-3]\nrounds: 1\nnode: {start: ['false', '{node}']}\n"
                           "link: {start: [/nonexistent/launcher, '{a},{b}']}\n")
        # A scontrol that would be noticed: nothing is drained without --drain.
        called = folder / "called"
        (folder / "bin").mkdir()
        script(folder / "bin/scontrol", f'echo "$@" >>{called}\n')
        path = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        result = harness.run("accept", profile, "--dir", folder / "a", "--json", env=path)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertFalse(called.exists())
        found = verdicts(result.stdout)
        self.assertEqual([v["complaints"] for v in found["nodes"]],
                         [["health has failed: exit code 1"]] * 3)
        self.assertEqual(len(found["drain_commands"]), 3)
        self.assertIn("3 of 3 nodes would be drained", found["drain"]["shared_cause"])
        refused = harness.run("accept", profile, "--dir", folder / "b", "--drain", env=path)
        self.assertEqual(refused.returncode, 77, refused.stderr)
        self.assertIn("no node was drained: 3 of 3 nodes would be drained", refused.stderr)
        self.assertFalse(called.exists())
        drained = harness.run("accept", profile, "--dir", folder / "c", "--drain-all", env=path)
        self.assertEqual(drained.returncode, 4)
        self.assertEqual([line.split()[:3] for line in called.read_text().splitlines()],
                         [["update", f"NodeName=n{i}", "State=DRAIN"] for i in (1, 2, 3)])

    def test_burn_in(self):
        """Rounds are repeated until the time has passed, and all of them count."""
        folder = harness.workspace()
        profile = folder / "accept.yaml"
        profile.write_text("nodes: n1\nrounds: 1\nburn_in_minutes: 0.03\n"
                           "node: {start: [env, 'N={node}'], measures: "
                           "['gemm --size 32 --precision fp32 --duration 0.1'], "
                           "limits: ['gemm m=32 flops_per_s=1']}\n")
        result = harness.run("accept", profile, "--dir", folder / "a", "--json")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        found = verdicts(result.stdout)
        self.assertGreaterEqual(found["rounds"], 2)
        self.assertGreaterEqual(found["seconds"], 60 * 0.03)
        self.assertEqual(len(list((folder / "a").glob("n1-r*.json"))), found["rounds"])
        [figure] = [f for f in found["nodes"][0]["figures"] if f["name"] == "gemm flops_per_s"]
        self.assertEqual(figure["agreed"]["value"], 1)
        self.assertIn("precision=fp32", figure["details"])

    def test_nodes_alone(self):
        """Without link.measures, nodes are judged and links are said not to be."""
        folder = harness.workspace()
        profile = folder / "accept.yaml"
        profile.write_text("nodes: n[1-2]\nrounds: 1\nnode: {start: [env, 'N={node}'], "
                           "measures: ['gemm --size 32 --precision fp32 --duration 0.1'], "
                           "limits: ['gemm flops_per_s=1']}\nlink: {measures: []}\n")
        result = harness.run("accept", profile, "--dir", folder / "a")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("machine ACCEPTED: 0 of 2 nodes bad, 0 of 0 links bad", result.stdout)
        self.assertIn("the links were not measured, because link.measures", result.stdout)
        self.assertEqual(verdicts((folder / "a/acceptance.json").read_text())["links"], [])

    def test_noise_and_rates(self):
        """The names of limits that docs/studies.md lists exist, and a missed one is named."""
        folder = harness.workspace()
        profile = folder / "accept.yaml"
        names = ["gemm precision=fp32 flops_per_s=1", "mem_stream kernel=triad bytes_per_s=1",
                 "mem_latency latency_ns=1e9", "noise lost_fraction=1",
                 "noise_core lost_fraction=1"]
        text = ("nodes: n1\nrounds: 1\nnode:\n  start: [env, 'N={{node}}']\n  "
                "measures: ['gemm --size 64 --precision fp32 --duration 0.1', "
                "'mem --bytes 4M --duration 0.2', "
                "'noise --method work --duration 0.2']\n  limits: {}\n")
        profile.write_text(text.format(json.dumps(names)))
        result = harness.run("accept", profile, "--dir", folder / "a", "--json")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        found = verdicts(result.stdout)
        self.assertEqual({f["agreed"]["name"] for f in found["nodes"][0]["figures"]
                          if f["agreed"]}, {name.rsplit("=", 1)[0] for name in names})
        profile.write_text(text.format(json.dumps(["gemm flops_per_s=1e30"])))
        result = harness.run("accept", profile, "--dir", folder / "a")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertRegex(result.stdout,
                         r"Node n1 misses the agreed limit gemm flops_per_s=1e\+30 in gemm "
                         r"flops_per_s \(.*k=64.* precision=fp32.*\): [0-9.]+ .FLOP/s instead "
                         "of at least ")
        profile.write_text(text.format(json.dumps(["nonsense=3"])))
        result = harness.run("accept", profile, "--dir", folder / "a")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("'nonsense=3' concerns nothing that was measured", result.stderr)
        self.assertIn("'gemm flops_per_s' (", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

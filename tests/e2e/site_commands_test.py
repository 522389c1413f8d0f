"""Tests doctor, health, slurm render and the manual pages without Slurm."""

import json
import os
import re
import shutil
import subprocess
import unittest

import harness

CLUSTERS = harness.SOURCE / "configs/site"


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.config = harness.write_config(cls.folder / "run.yaml",
                                          harness.make_datasets(cls.folder))

    def doctor(self, *arguments, ranks=2, code=None, env=None):
        result = harness.run("doctor", self.config, "--json", *arguments, ranks=ranks, env=env)
        findings = json.loads(result.stdout) if result.stdout.startswith("{") else None
        if code is not None:
            self.assertEqual(result.returncode, code, result.stdout + result.stderr)
            self.assertEqual(findings["exit_code"], code)
        return findings

    def assert_finds(self, words, *arguments, code, ranks=2, env=None):
        found = self.doctor(*arguments, ranks=ranks, code=code, env=env)["findings"]
        self.assertTrue(any(words in f["what"] for f in found), found)

    def test_a_sound_launch(self):
        for ranks in (0, 2):
            found = self.doctor(ranks=ranks)
            self.assertEqual([f for f in found["findings"] if f["severity"] == "error"], [])
            self.assertIn(found["exit_code"], (0, 4))
        self.assertFalse(harness.run_dir(self.config).exists())

    def test_people_can_read_it(self):
        out = harness.run("doctor", self.config, "parallel.tp=3", ranks=2)
        self.assertEqual(out.returncode, 2)
        self.assertIn("error    all ranks: ", out.stdout)
        self.assertIn("this launch would end with exit code 2", out.stdout)

    def test_layout(self):
        self.assert_finds("the number of ranks, 2, is not ", "parallel.dp=2", "parallel.tp=2",
                          code=2)
        self.assert_finds("the number of ranks, 6, is not ", "parallel.dp=2", "parallel.tp=2",
                          "--ranks", 6, ranks=0, code=2)

    def test_configuration(self):
        self.assert_finds("train.step", "train.step=5", code=2)

    def test_data(self):
        self.assert_finds("data.train", f"data.train={self.folder}/absent", code=66)
        broken = self.folder / "broken"
        shutil.copytree(self.folder / "train", broken)
        manifest = broken / "manifest.json"
        manifest.write_text(manifest.read_text().replace("1", "2", 1))
        self.assert_finds("data.train", f"data.train={broken}", code=65)
        self.assert_finds("but model.vocab is 100", "model.vocab=100", code=2)
        result = harness.run("train", self.config, "model.vocab=100",
                             f"run.dir={self.folder}/refused")
        self.assertEqual(result.returncode, 2, result.stderr)

    def test_folders(self):
        blocked = self.folder / "file"
        blocked.write_text("x")
        for folder in (blocked, "/proc/foo"):
            with self.subTest(folder):
                self.assert_finds("run.dir", f"run.dir={folder}", code=2)
                result = harness.run("train", self.config, f"run.dir={folder}")
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn("run.dir", result.stderr)

    def test_a_start_ends_with_the_code_that_the_doctor_predicts(self):
        [shard] = (self.folder / "validation/shards").glob("*.h5")
        harness.must(harness.run("data", "convert", shard, "--vocab", 257, "--tokenizer", "gpt2",
                                 "--out", self.folder / "other"))
        saved = f"checkpoint.dir={self.folder}/saved"
        harness.must(harness.run("train", self.config, "train.steps=2",
                                 f"run.dir={self.folder}/first", saved))
        for code, *words in ((2, f"data.validation={self.folder}/other"),
                             (66, f"comm.tuning={self.folder}/none"),
                             (66, "checkpoint.resume=5", saved),
                             (2, "checkpoint.resume=never", saved),
                             (2, "optimizer.lr=1e-7", saved),
                             (2, "checkpoint.allow_change=[train.stepz]"),
                             (2, f"checkpoint.dir={self.config}")):
            with self.subTest(words):
                words += [f"run.dir={self.folder}/agree", "numerics.self_check=false"]
                started = harness.run("train", self.config, *words)
                self.assertEqual(started.returncode, code, started.stderr)
                self.doctor(*words, ranks=0, code=code)

    def test_root_needs_leave_for_several_ranks(self):
        if os.geteuid() != 0:
            self.skipTest("mpirun refuses only root: run as root")
        env = {"OMPI_ALLOW_RUN_AS_ROOT": "", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": ""}
        self.assert_finds("refuses to run as root", "--ranks", 2, ranks=0, code=2, env=env)
        launched = harness.run("launch", "--ranks-per-node", 2, "--", "train", self.config, env=env)
        self.assertEqual(launched.returncode, 2, launched.stderr)

    def test_oversubscription(self):
        self.assert_finds("threads share", "train.threads=64", code=4)

    def of_two_kinds(self, options, *arguments):
        """Runs doctor with rank 1 started in another way than rank 0."""
        doctor = [harness.PROGRAM, "doctor", str(self.config), "--json"]
        result = subprocess.run(
            [harness.MPIEXEC, "-n", "1", *doctor, ":", "-n", "1", *options, *doctor, *arguments],
            env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=240, check=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        return [f["what"] for f in json.loads(result.stdout)["findings"]]

    def test_nodes_that_compute_differently(self):
        found = self.of_two_kinds(["-x", "TRIREME_KERNELS=reference"])
        self.assertRegex(found[0], "^the kernels are reference here, but .*: "
                                   "their results have different bits$")

    def test_nodes_with_other_files(self):
        found = self.of_two_kinds([], "train.seed=7")
        self.assertIn("different configurations", found[0])
        self.assertIn("train.seed", found[0])

    def test_a_step_without_pmix(self):
        steps = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"}
        self.assert_finds("srun --mpi=pmix", ranks=0, env=steps, code=2)
        other = harness.run("doctor", self.config, env={**steps, "SLURM_PROCID": "1"})
        self.assertEqual((other.returncode, other.stdout), (2, ""))

    def test_fabrics_that_are_not_there(self):
        self.assert_finds("OMPI_MCA_btl_tcp_if_include",
                          env={"OMPI_MCA_btl_tcp_if_include": "ib7"}, ranks=1, code=2)


class Health(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.baseline = cls.folder / "node.baseline"
        harness.must(harness.run("health", "--save-baseline", cls.baseline, "--seconds", 120))

    def test_one_line(self):
        result = harness.run("health", "--baseline", self.baseline, "--at-least", 1,
                             "--seconds", 120)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertTrue(result.stdout.startswith("health ok on "))
        self.assertNotIn("e+0", result.stdout)
        self.assertEqual(result.stdout.count("\n"), 1)

    def test_json(self):
        health = json.loads(harness.must(
            harness.run("health", "--json", "--seconds", 120)).stdout)
        self.assertTrue(health["healthy"])
        for name in ("products bf16", "memory", "shared memory", "disk write", "disk read"):
            self.assertGreater(health["rates"][name]["median"], 0)

    def test_a_disk_that_is_none(self):
        result = harness.run("health", "--dir", self.folder / "absent", "--seconds", 120)
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stdout, "^health FAILED on .*disk: ")

    def test_a_folder_for_temporary_files_that_is_none(self):
        absent = str(self.folder / "no-folder")
        result = harness.run("health", env={"TMPDIR": absent})
        self.assertEqual(result.returncode, 66)
        self.assertIn(f"TMPDIR is {absent}", result.stderr)

    def test_baselines_that_are_none(self):
        absent = harness.run("health", "--baseline", self.folder / "none")
        self.assertEqual(absent.returncode, 66)
        damaged = self.folder / "damaged"
        damaged.write_text(self.baseline.read_text().replace('"median": ', '"median": 9', 1))
        result = harness.run("health", "--baseline", damaged)
        self.assertEqual(result.returncode, 65)
        self.assertIn("damaged", result.stderr)
        self.assertIn("--save-baseline", result.stderr)

    def test_one_that_takes_too_long(self):
        result = harness.run("health", "--seconds", 1)
        if result.returncode == 0:
            self.skipTest("needs a machine that takes longer than a second for `trireme health`")
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stdout, "not finished within 1 s.*--seconds")


    def busy_health(self, *arguments, others=1, env=None):
        """Runs the check on a core that other processes use, too."""
        core = str(min(os.sched_getaffinity(0)))
        hogs = [subprocess.Popen(["taskset", "-c", core, "sh", "-c", "while :; do :; done"])
                for _ in range(others)]
        try:
            return subprocess.run(
                ["taskset", "-c", core, harness.PROGRAM, "health", *arguments],
                env={**harness.ENVIRONMENT, **(env or {})}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=240, check=False)
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()

    def test_a_busy_node_is_called_busy(self):
        for env, owners in (({}, "other programs"),
                            ({"SLURMD_NODENAME": "node-of-slurm"},
                             r"other programs, or other nodes of Slurm on host \S+,")):
            with self.subTest(owners):
                result = self.busy_health("--seconds", "2", others=3, env=env)
                self.assertEqual(result.returncode, 4, result.stdout)
                self.assertRegex(result.stdout,
                                 r"^health FAILED on \S+: .*: not finished within 2 s; this check "
                                 rf"waited for a core \d\d % of its time: {owners} keep the cores "
                                 r"busy\. Check such nodes one after the other, .*--seconds\n$")
        health = json.loads(self.busy_health("--seconds", "2", "--json", others=3).stdout)
        self.assertGreater(health["waited_fraction"], 0.3)

    def test_what_a_busy_node_lacks_is_said_beside_its_load(self):
        absent = self.folder / "absent"
        result = self.busy_health("--seconds", "240", "--dir", str(absent))
        self.assertEqual(result.returncode, 4, result.stdout)
        self.assertRegex(result.stdout, r"disk: .*; this check waited for a core \d\d % of its ")

    def test_a_baseline_of_a_busy_node(self):
        saved = self.folder / "busy.baseline"
        result = self.busy_health("--seconds", "240", "--save-baseline", str(saved))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout,
                         r"^health ok on .*; this check waited for a core \d\d % of its time: .*"
                         r" s\n$")
        self.assertTrue(saved.exists())
        self.assertRegex(result.stderr,
                         "^warning: this check waited for a core .* when the node is "
                         "idle\n$")


class Render(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.config = harness.write_config(cls.folder / "run.yaml",
                                          (cls.folder / "train", cls.folder / "validation"))

    def render(self, *arguments, cluster="test"):
        return harness.run("slurm", "render", self.config, "--cluster",
                           CLUSTERS / f"{cluster}.yaml", *arguments)

    def test_every_profile(self):
        for profile in sorted(CLUSTERS.glob("*.yaml")):
            with self.subTest(profile.name):
                script = harness.must(self.render("--nodes", 2, cluster=profile.stem)).stdout
                self.assertIn("#SBATCH --nodes=2\n", script)

    def test_every_key_of_a_profile_is_documented(self):
        source = (harness.SOURCE / "slurm/render/site_profile.cc").read_text()
        documented = (harness.SOURCE / "docs/slurm.md").read_text()
        keys = re.findall(r'b\.\w+\("([\w.]+)"', source)
        self.assertGreater(len(keys), 20)
        self.assertEqual([k for k in keys if f"`{k}`" not in documented], [])

    def test_the_run_is_checked(self):
        for arguments, words in [(["train.step=5"], "train.step"),
                                 (["parallel.dp=3", "--nodes", 2], "the number of ranks, 2, is"),
                                 (["--array", "parallel.dp=2,3", "--nodes", 2],
                                  "the number of ranks, 2, is not "),
                                 (["--array", "train.seed"], "KEY=VALUE"),
                                 (["--time", "soon"], "time limit")]:
            with self.subTest(arguments):
                result = self.render(*arguments)
                self.assertEqual(result.returncode, 2, result.stdout)
                self.assertIn(words, result.stderr)

    def test_measured_times(self):
        run = harness.run_dir(self.config)
        (run / "logs").mkdir(parents=True, exist_ok=True)
        (run / "metrics.jsonl").write_text('{"step": 1, "step_ms": 10000}\n')
        (run / "logs/rank-00000.jsonl").write_text('{"event": "checkpoint", "seconds": 50}\n')
        self.assertIn("--signal=B:USR1@210\n", harness.must(self.render()).stdout)
        self.assertIn("--signal=B:USR1@112\n", harness.must(
            self.render("--step-seconds", 1, "--save-seconds", 10)).stdout)

    def test_scripts_say_how_they_were_made(self):
        script = harness.must(self.render("--nodes", 2)).stdout
        self.assertRegex(script, "\n# Made by: trireme slurm render .*--nodes 2\n")

    def test_to_a_file(self):
        file = self.folder / "job.sbatch"
        harness.must(self.render("-o", file))
        self.assertEqual(file.read_text().replace(f" -o {file}", ""),
                         harness.must(self.render()).stdout)

    def test_submit_without_slurm(self):
        result = harness.run("slurm", "submit", self.config, "--cluster", CLUSTERS / "test.yaml",
                             env={"PATH": "/nonexistent"})
        self.assertEqual(result.returncode, 2)
        self.assertIn("sbatch: the program was not found", result.stderr)


class ManPages(unittest.TestCase):
    def test_every_command_has_one(self):
        folder = harness.workspace()
        harness.must(harness.run("man", "--all", folder))
        pages = {p.name for p in folder.iterdir()}
        commands = harness.commands_of("--help")
        self.assertIn("train", commands)
        self.assertEqual(pages, {"trireme.1", "trireme.yaml.5"} |
                         {f"trireme-{c}.1" for c in commands})
        config = (folder / "trireme.yaml.5").read_text()
        self.assertEqual(harness.must(harness.run("man", "trireme.yaml")).stdout, config)
        one = harness.must(harness.run("man", "train")).stdout
        self.assertEqual(one, (folder / "trireme-train.1").read_text())
        self.check_with_man(folder)

    def check_with_man(self, folder):
        man = shutil.which("man")
        if man is None or shutil.which("groff") is None:
            self.skipTest("man or groff is missing: install man-db and groff")
        for page in sorted(folder.iterdir()):
            with self.subTest(page.name):
                result = subprocess.run(
                    [man, "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page],
                    env={**os.environ, "LC_ALL": "C.UTF-8", "MANROFFSEQ": ""},
                    capture_output=True, text=True, check=False)
                self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_no_such_command(self):
        self.assertEqual(harness.run("man", "tarin").returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)

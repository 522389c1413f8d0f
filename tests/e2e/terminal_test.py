"""Tests what users see while they wait: progress on a terminal, lines in logs, verdicts, warnings.
"""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import unittest

import harness

STEPS = 12
COLUMNS = 80
BAR = re.compile(r"^train +(\d+)% (\|[# ]{24}\| )?(\d+)/(\d+)(  \S+ left|  in \S+)?")


SLOWLY = {"TRIREME_FAULTS": "step.optimizer:*:*:sleep=0.2"}  # so that progress can be seen


def on_terminal(*arguments, ranks=0, timeout=240, env=None):
    """Returns exit code and output of a command on a terminal with 80 columns."""
    own, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    process = subprocess.Popen(harness.command(arguments, ranks),
                               env={**harness.ENVIRONMENT, **(env or {})}, stdin=other,
                               stdout=other, stderr=other, start_new_session=True)
    os.close(other)
    seen = b""
    while True:
        try:
            part = os.read(own, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(own)
    return process.wait(timeout), seen.decode(errors="replace")


def drawn(text):
    """Returns the lines that the terminal showed, including those that were overwritten."""
    return [line for line in re.split(r"\r\n|\r|\n", text.replace("\x1b[K", "")) if line]


class Terminal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)

    def config(self, name, **keys):
        return harness.write_config(self.folder / f"{name}.yaml", self.datasets,
                                    **{"train__steps": STEPS, "checkpoint__every": 6, **keys})

    def assert_progress(self, text):
        bars = [line for line in drawn(text) if BAR.match(line)]
        self.assertGreater(len(bars), 1, text)
        self.assertEqual([line for line in bars if len(line) >= COLUMNS], [])
        self.assertEqual(BAR.match(bars[0]).group(3, 5), ("0", None))
        self.assertRegex(bars[-1], rf"100% .* {STEPS}/{STEPS}  in ")
        self.assertIn(" left", bars[1])
        # A terminal shows a bar instead of a line per step, and a log has lines instead of the bar.
        self.assertNotIn("iteration", text)
        for line in drawn(text):
            self.assertNotRegex(line, r"\|.*\d\d:\d\d:\d\d")

    def test_launch_draws_the_progress_of_its_ranks(self):
        code, text = on_terminal("launch", "--local", 1, "--ranks-per-node", 2, "--", "train",
                                 self.config("launch"), env=SLOWLY)
        self.assertEqual(code, 0, text)
        self.assert_progress(text)

    def test_one_rank_on_a_terminal(self):
        code, text = on_terminal("train", self.config("alone"), env=SLOWLY)
        self.assertEqual(code, 0, text)
        self.assert_progress(text)

    def test_a_log_says_at_once_what_comes_and_how_long_it_takes(self):
        for name, start in [("log", ()), ("launch-log", ("launch", "--local", 1,
                                                         "--ranks-per-node", 2, "--"))]:
            config = self.config(name, train__log_every=1000)
            result = harness.must(harness.run(*start, "train", config, ranks=0 if start else 2))
            lines = [line for line in result.stderr.splitlines() if "trireme launch" not in line]
            self.assertRegex(lines[0], rf" {STEPS} steps of .* tokens, 2 ranks$")
            self.assertIn("preparing: ", lines[1])
            self.assertRegex(result.stderr,
                             rf"step 1 of {STEPS}: \S+ per step, about \S+ left\n")
            self.assertNotIn("\x1b", result.stderr)

    def test_eval_and_bench(self):
        config = self.config("model")
        harness.must(harness.run("train", config))
        code, text = on_terminal("eval", "--checkpoint", harness.run_dir(config) / "checkpoints",
                                 "--data", self.datasets[1])
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"eval 100% \|#{24}\| (\d+)/\1  in ")
        result = harness.must(harness.run(
            "eval", "--checkpoint", harness.run_dir(config) / "checkpoints", "--data",
            self.datasets[1], "--samples", 8, ranks=2))
        self.assertRegex(result.stderr, r"eval 100% .*8/8 ")
        step = ["bench", "step", "--model", "tiny-gpt2", "--sequence", 64, "--rounds", 2]
        code, text = on_terminal(*step)
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"bench step 100% .* 3/3  in ")
        self.assertRegex(text, r"\nstep: \d\.\d\d of the machine's bf16 rate: \w+")
        self.assertEqual([line for line in drawn(text) if len(line) > COLUMNS], [])
        result = harness.must(harness.run(*step, ranks=2))
        self.assertIn("bench step: warming up\n", result.stderr)
        self.assertIn("bench step: 2 rounds against the product rate\n", result.stderr)

    def test_tables_grow_above_their_progress(self):
        storage = ["bench", "io", "--dir", self.folder, "-b", "1M", "-n", 8]
        for command, bar, row in [
                (["bench", "gemm", "--size", "64,96", "--precision", "fp32"],
                 r"bench gemm +50% \|#{12} {12}\| 1/2 .*  fp32, ", r"  fp32 square .*\d"),
                ([*storage, "-i", 2], r"bench io +\d+% \|[# ]{24}\| \d+/18 ", r"write +\d"),
                ([*storage, "--duration", 2], r"bench io +50% \|#{12} {12}\| 1/2 ", r"write +\d")]:
            with self.subTest(command):
                code, text = on_terminal(*command)
                self.assertEqual(code, 0, text)
                self.assertTrue([line for line in drawn(text) if re.match(bar, line)], text)
                # What the terminal shows at the end is the table alone.
                kept = [line.split("\r\x1b[K")[-1] for line in text.split("\r\n")]
                self.assertEqual([line for line in kept if line.startswith("bench")], [])
                rows = [line for line in kept if re.match(row, line)]
                self.assertGreaterEqual(len(rows), 2, text)
                self.assertNotIn(f"bench {command[1]} ", harness.must(harness.run(*command)).stderr)

    def test_bench_train_counts_its_steps(self):
        command = ["bench", "train", self.config("bench-train"), "--steps", 3, "--warmup", 1,
                   "--dir", self.folder]
        code, text = on_terminal(*command)
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"bench train 100% \|#{24}\| 4/4  in ")
        self.assertEqual([line for line in drawn(text) if BAR.match(line)], [])
        result = harness.must(harness.run(*command, ranks=2))
        self.assertIn("bench train: 1 step to warm up, then 3 steps\n", result.stderr)

    def test_generated_text_cannot_control_the_terminal(self):
        config = self.config("text")
        harness.must(harness.run("train", config))
        command = ["generate", "--checkpoint", harness.run_dir(config) / "checkpoints", "--prompt",
                   "\x1b[2J\u009b größe\tend\n"]
        code, text = on_terminal(*command, "--tokens", 20, "--temperature", 9)
        self.assertEqual(code, 0, text)
        self.assertIn("\\x1b[2J\\u009b größe\tend\r\n", text)
        self.assertEqual(re.findall("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]", text), [])
        code, text = on_terminal(*command, "--tokens", 1, "--json")
        self.assertEqual(json.loads(text)["prompt"], command[-1])
        self.assertTrue(text.isascii())
        piped = harness.must(harness.run(*command, "--tokens", 1)).stdout
        self.assertTrue(piped.startswith(command[-1]), piped)

    def test_a_busy_machine_is_told(self):
        spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                    for _ in range(2 * len(os.sched_getaffinity(0)))]
        try:
            result = harness.must(harness.run("bench", "step", "--model", "tiny-gpt2",
                                              "--sequence", 256, "--rounds", 3))
        finally:
            for each in spinners:
                each.kill()
                each.wait()
        self.assertRegex(result.stderr, r"warning: the machine was busy: .* \d\d% of its time")


if __name__ == "__main__":
    unittest.main(verbosity=2)

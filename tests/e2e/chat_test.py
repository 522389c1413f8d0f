"""Tests chats in a terminal and through pipes: the context, Ctrl-C, the end of the input."""

import json
import os
import pty
import select
import signal
import subprocess
import time
import unittest

import harness

CONTEXT = 192


class Chat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        lines = [f"User: What is {name}?\nAssistant: {name} is a bank of öars.\n"
                 for name in ("a ship", "water", "wind")]
        (cls.folder / "text.txt").write_text("".join(lines) * 200)
        harness.must(harness.run("data", "pack", "--out", cls.folder / "data",
                                 cls.folder / "text.txt"))
        config = cls.folder / "run.yaml"
        config.write_text(
            f"model: {{family: llama, layers: 2, hidden: 32, heads: 2, ffn: 64, vocab: 257, "
            f"context: {CONTEXT}}}\n"
            f"data: {{train: {cls.folder / 'data'}, sequence: {CONTEXT}}}\n"
            "train: {steps: 400, global_batch: 8, precision: fp32, threads: 1}\n"
            "optimizer: {lr: 0.01, schedule: {warmup: 10}}\n"
            f"run: {{dir: {cls.folder / 'run'}}}\n")
        harness.must(harness.run("train", config))

    def command(self, *words, temperature=0):
        return harness.command(["generate", "--checkpoint", self.folder / "run/checkpoints",
                                "--chat", "--temperature", temperature, *words])

    def chat(self, text, *words, code=0):
        result = subprocess.run(self.command(*words), env=harness.ENVIRONMENT, capture_output=True,
                                input=text.encode("utf-8", "surrogateescape"), timeout=120,
                                check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout, result.stderr.decode()

    def test_lines_are_answered_in_turn(self):
        out, err = self.chat("What is wind?\n\nWhat is water?", "--tokens", 40)
        lines = out.decode().splitlines()
        self.assertEqual(lines[0], "wind is a bank of öars.")
        self.assertEqual(lines[1], "water is a bank of öars.")
        self.assertEqual(len(lines), 2, lines)
        self.assertNotIn("dropped", err)

    def test_json_lines(self):
        messages = [{"content": "What is wind?"}, {"content": "What is water?"},
                    {"content": "What is wind?", "reset": True}]
        text = "".join(json.dumps(m) + "\n" for m in messages)
        out, _ = self.chat(text, "--json-lines", "--tokens", 40)
        first, second, third = (json.loads(line) for line in out.splitlines())
        self.assertEqual(first["content"], "wind is a bank of öars.")
        self.assertEqual(first["finish"], "stop")
        self.assertEqual(third, first)
        self.assertGreater(second["prompt_tokens"], first["prompt_tokens"])
        # A cut answer is made of whole characters.
        for tokens in range(16, 24):
            out, _ = self.chat(text.split("\n")[0], "--json-lines", "--tokens", tokens)
            answer = json.loads(out)
            self.assertEqual(answer["finish"], "length")
            self.assertEqual(answer["tokens"], tokens)
            self.assertTrue("wind is a bank of öars.".startswith(
                answer["content"].removesuffix("\ufffd")), answer)

    def test_bad_lines_are_answered_too(self):
        out, err = self.chat('{"content": 1}\nx\n{"content": "What is wind?"}\n{"text": "a"}\n'
                             + "[1]\n" + '{"content": "' + "a" * (1 << 20) + '"}',
                             "--json-lines", "--tokens", 4, code=65)
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([index for index, each in enumerate(answers) if "error" in each],
                         [0, 1, 3, 4, 5])
        self.assertIn("line 4: unknown field 'text'", answers[3]["error"])
        self.assertIn("longer than 1 MiB", answers[5]["error"])
        self.assertIn("5 lines of standard input were no messages", err)

    def test_the_oldest_messages_are_dropped_and_that_is_said(self):
        words = ["--tokens", 40, "--system", "Ships."]
        _, err = self.chat("What is wind?\n" * 4, *words)
        self.assertIn(f"the context of {CONTEXT} tokens is full: the oldest 2 messages were", err)
        out, _ = self.chat('{"content": "What is wind?"}\n' * 4, "--json-lines", *words)
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([answer["dropped_messages"] for answer in answers[:2]], [0, 0])
        self.assertGreater(sum(answer["dropped_messages"] for answer in answers), 0)
        self.assertLessEqual(max(answer["prompt_tokens"] for answer in answers), CONTEXT - 40)
        _, err = self.chat("a" * 200, "--tokens", 8)
        self.assertIn(f"too long for the context of {CONTEXT} tokens: its first ", err)
        _, err = self.chat("x", "--tokens", 120)
        self.assertIn("answers have at most 96 tokens", err)

    def test_hostile_bytes(self):
        out, _ = self.chat("\udcff\udcc3\x00\x1b[2J\r\n", "--tokens", 8)
        out.decode("utf-8")
        out, _ = self.chat("", "--tokens", 8)
        self.assertEqual(out, b"")

    def test_what_is_refused(self):
        for words in (["--prompt", "x"], ["--samples", 2], ["--json"], ["--ids"]):
            _, err = self.chat("", *words, code=2)
            self.assertIn("--chat reads messages from standard input", err)
        result = harness.run("generate", "--checkpoint", self.folder / "run/checkpoints",
                             "--json-lines")
        self.assertEqual(result.returncode, 2)
        self.assertIn("add --chat", result.stderr)
        _, err = self.chat("", "--user-mark", "", "--end-mark", "", code=2)
        self.assertIn("both empty", err)

    def start_on_terminal(self, *words):
        own, other = pty.openpty()
        process = subprocess.Popen(self.command(*words), env=harness.ENVIRONMENT, stdin=other,
                                   stdout=other, stderr=other, preexec_fn=self.take_terminal(other))
        os.close(other)
        return process, own

    @staticmethod
    def take_terminal(terminal):
        def take():
            os.setsid()
            os.close(os.open(os.ttyname(terminal), os.O_RDWR))
        return take

    @staticmethod
    def seen_until(own, text, seconds=60):
        """Returns what the terminal shows, up to a time at which it has shown the text."""
        seen, end = b"", time.monotonic() + seconds
        while text not in seen:
            if not select.select([own], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {text} in {seen}")
            seen += os.read(own, 4096)
        return seen

    def test_ctrl_c_ends_the_answer_and_the_end_of_file_the_chat(self):
        process, own = self.start_on_terminal("--tokens", 40)
        self.seen_until(own, b"> ")
        for _ in range(200):  # also while the program is about to wait
            os.write(own, b"\x03")
            self.seen_until(own, b"Ctrl-D, the chat\r\n> ")
        os.write(own, "What is wind?\n".encode())
        seen = self.seen_until(own, b"oars.\r\n> ".replace(b"o", "ö".encode(), 1))
        self.assertIn("wind is a bank of öars.".encode(), seen)
        os.write(own, b"\x04")
        self.assertEqual(process.wait(60), 0)
        os.close(own)

    def test_an_interrupted_answer_stays_in_the_conversation(self):
        process = subprocess.Popen(
            self.command("--json-lines", "--tokens", 90, "--user-mark", "nothing like this",
                         temperature=3), env=harness.ENVIRONMENT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        finishes = []
        for attempt in range(100):
            process.stdin.write(b'{"content": "What is wind?", "reset": true}\n')
            process.stdin.flush()
            if attempt > 0:  # before the first answer, the signal would end the program
                time.sleep(0.001 * (attempt % 8))
                process.send_signal(signal.SIGINT)
            finishes.append(json.loads(process.stdout.readline())["finish"])
            if "interrupted" in finishes:
                break
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertIn("interrupted", finishes)


if __name__ == "__main__":
    unittest.main()

"""Tests the hand-over to Prometheus and Grafana with the real programs, where they are installed
(Debian: prometheus, prometheus-node-exporter): node_exporter reads the file that a run writes,
Prometheus reads node_exporter, and every query of the dashboard and of the alerts has an answer."""

import json
import re
import shutil
import signal
import socket
import subprocess
import unittest
import urllib.error
import urllib.parse
import urllib.request

import harness

DOCS = harness.SOURCE / "docs/grafana"
PROGRAMS = ("prometheus", "prometheus-node-exporter", "promtool")
MISSING = [each for each in PROGRAMS if shutil.which(each) is None]
# What only some machines can measure.
ENERGIES = ("trireme_power_watts",)


def dashboard():
    return json.loads((DOCS / "trireme.json").read_text(encoding="utf-8"))


def queries():
    """Returns (panel, target) for each query of the dashboard."""
    return [(panel, target) for panel in dashboard()["panels"]
            for target in panel.get("targets", [])]


def alert_queries():
    """Returns the expressions of the alerts, which stand behind `expr:` or below `expr: >-`."""
    text = (DOCS / "alerts.yaml").read_text(encoding="utf-8")
    found = re.findall(r"^ {8}expr: (?!>)(.+)$|^ {8}expr: >-\n((?: {10}.+\n)+)", text, re.M)
    return [" ".join((line or block).split()) for line, block in found]


class Dashboard(unittest.TestCase):
    """The structure that Grafana 9 and later read (schema version 37)."""

    def test_panels_fit_into_the_grid(self):
        taken = set()
        for panel in dashboard()["panels"]:
            at = panel["gridPos"]
            self.assertEqual(set(at), {"h", "w", "x", "y"}, panel["title"])
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                     for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(cells & taken, f"{panel['title']} lies on another panel")
            taken |= cells

    def test_keys_types_and_units_are_those_of_grafana(self):
        common = {"id", "type", "title", "gridPos"}
        shown = common | {"description", "datasource", "fieldConfig", "options", "targets"}
        keys = {"row": common | {"collapsed", "panels"}, "stat": shown, "timeseries": shown}
        units = {"none", "short", "percentunit", "s", "bytes", "watt", "sci"}
        for panel in dashboard()["panels"]:
            self.assertEqual(set(panel), keys[panel["type"]], panel["title"])
            if panel["type"] == "row":
                continue
            self.assertEqual(set(panel["fieldConfig"]), {"defaults", "overrides"})
            self.assertIn(panel["fieldConfig"]["defaults"]["unit"], units, panel["title"])
            references = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(set(references)), len(references), panel["title"])
            for target in panel["targets"]:
                self.assertEqual(set(target), {"refId", "expr", "legendFormat", "datasource"})

    def test_variables_exist(self):
        names = {each["name"] for each in dashboard()["templating"]["list"]}
        text = (DOCS / "trireme.json").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"\$\{?(\w+)\}?", text)), names)
        for panel, target in queries():
            for datasource in (panel["datasource"], target["datasource"]):
                self.assertEqual(datasource, {"type": "prometheus", "uid": "${datasource}"})


@unittest.skipIf(MISSING, f"needs {', '.join(MISSING)}")
class WithPrometheus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        texts = cls.folder / "texts"
        texts.mkdir()
        config = harness.write_config(cls.folder / "real.yaml",
                                      harness.make_datasets(cls.folder / "data"), model="small",
                                      train__eval_every=4, run__name="real")
        harness.must(harness.run(
            "launch", "--ranks-per-node", 1, "--", "train", config, f"metrics.openmetrics={texts}",
            "energy.co2_grams_per_kwh=100", "energy.price_per_kwh=0.2"))
        cls.last = harness.metrics(config)[-1]
        [cls.file] = texts.glob("*.prom")
        # Another run, whose loss is not a number.
        (texts / "bad.prom").write_text(re.sub(
            r"^(trireme_loss{.*}) .*$", r"\1 NaN",
            cls.file.read_text().replace('run="real"', 'run="bad"'), flags=re.M))
        exporter = cls.serve("prometheus-node-exporter", "--collector.disable-defaults",
                             "--collector.textfile", f"--collector.textfile.directory={texts}")
        (cls.folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{DOCS / 'alerts.yaml'}]\n"
            "scrape_configs:\n  - job_name: node\n    static_configs:\n"
            f"      - targets: ['127.0.0.1:{exporter}']\n")
        cls.port = cls.serve("prometheus", f"--config.file={cls.folder / 'prometheus.yml'}",
                             f"--storage.tsdb.path={cls.folder / 'tsdb'}")
        harness.until("a scrape", 120, lambda: cls.ask('trireme_step{run="real"}'))

    @classmethod
    def serve(cls, *command):
        """Starts a server on a free port of the loopback interface, and returns the port."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with open(cls.folder / f"{command[0]}.log", "w", encoding="utf-8") as log:
            server = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"],
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def end():
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        cls.addClassCleanup(end)
        return port

    @classmethod
    def call(cls, path, **params):
        url = f"http://127.0.0.1:{cls.port}/api/v1/{path}?{urllib.parse.urlencode(params)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]

    @classmethod
    def ask(cls, expression):
        try:
            return cls.call("query", query=expression)["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is still starting
                return []
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        except urllib.error.URLError:
            return []

    def test_node_exporter_reads_every_metric(self):
        written = {line.split("{")[0] for line in self.file.read_text().splitlines()
                   if not line.startswith("#")}
        read = set(self.call("label/__name__/values", **{"match[]": '{run="real"}'}))
        self.assertEqual({name for name in read if name.startswith("trireme_")}, written)
        [[errors]] = [[float(each["value"][1]) for each in
                       self.ask("node_textfile_scrape_error")]]
        self.assertEqual(errors, 0)

    def test_every_query_of_the_dashboard_has_an_answer(self):
        for panel, target in queries():
            if target["expr"].startswith(ENERGIES) and self.last["cpu_joules_per_step"] is None:
                continue
            with self.subTest(panel["title"], query=target["expr"]):
                for chosen in (".*", "real"):
                    series = self.ask(target["expr"].replace("$run", chosen))
                    self.assertIn("real", [each["metric"].get("run") for each in series])
                    for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                        self.assertTrue(all(label in each["metric"] for each in series), label)
        [run] = [each for each in dashboard()["templating"]["list"] if each["name"] == "run"]
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)",
                                     run["query"]["query"]).groups()
        self.assertEqual(self.call(f"label/{label}/values", **{"match[]": metric}),
                         ["bad", "real"])

    def test_alerts_are_those_that_the_file_lists(self):
        rules = [rule for group in self.call("rules")["groups"] for rule in group["rules"]]
        self.assertEqual(len(rules), len(alert_queries()))
        for rule in rules:
            self.assertIn(rule["health"], ("ok", "unknown"), rule)
        for query in alert_queries():
            self.ask(query)
        loss = "trireme_loss != trireme_loss or abs(trireme_loss) == Inf"
        self.assertIn(loss, alert_queries())
        self.assertEqual([each["metric"]["run"] for each in self.ask(loss)], ["bad"])
        done = subprocess.run(
            ["promtool", "test", "rules", harness.SOURCE / "tests/support/alerts_test.yaml"],
            capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

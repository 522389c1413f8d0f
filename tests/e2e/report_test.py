"""Tests `trireme report`: the page of a run and of benchmark results, its Markdown, its answers to
bad input; and in headless Chromium that it shows everything, loads nothing, complains of nothing
and can be used with a keyboard, a screen reader, a phone and paper. TRIREME_SCREENSHOTS=FOLDER
keeps pictures of the page."""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

import harness

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
import report_run  # noqa: E402

FOLDER = harness.workspace()
HOSTILE = "</script><script>document.title='taken'</script>\"'><img src=x onerror=alert(1)>"


def report(*arguments):
    return subprocess.run([harness.PROGRAM, "report", *map(str, arguments)], text=True, check=False,
                          capture_output=True, env=harness.ENVIRONMENT, cwd=FOLDER, timeout=120)


def setUpModule():
    run = report_run.make_run(FOLDER / "run", 3000, 16)
    (FOLDER / "bench.json").write_text(json.dumps(report_run.bench_results()))
    done = report(run, FOLDER / "bench.json", "-o", FOLDER / "page.html")
    assert done.returncode == 0, done.stderr


class Report(unittest.TestCase):
    def test_page_has_everything_in_one_file(self):
        page = (FOLDER / "page.html").read_text(encoding="utf-8")
        for words in ("Run llama-1b on 8 nodes", "Timeline of attempts", "node n5 is lost",
                      "Time of a step, by rank", "Peak memory, by rank", "Goodput:", "Scaling",
                      "Bandwidth between pairs", "processors (RAPL)", "rank 13 on n1"):
            self.assertIn(words, page)
        self.assertEqual(page.count("<svg "), page.count("<figcaption>"))
        self.assertEqual(page.count("<svg "), page.count("<summary>Table: "))

    def test_markdown_has_the_tables(self):
        done = report(FOLDER / "run", "--markdown")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("# Report on run llama-1b on 8 nodes", done.stdout)
        self.assertIn("| process", done.stdout.replace("| cause", "| process"))
        self.assertNotIn("<svg", done.stdout)

    def test_names_from_files_are_only_text(self):
        run = report_run.make_run(FOLDER / "hostile <b>&'\"", 20, 2, HOSTILE)
        page = FOLDER / "hostile.html"
        self.assertEqual(report(run, "-o", page).returncode, 0)
        self.assertNotIn("<img", page.read_text(encoding="utf-8"))

    def test_unfinished_and_damaged_runs_are_shown_as_far_as_they_go(self):
        run = report_run.make_run(FOLDER / "torn", 30, 2)
        for name in ("DONE", "journal.jsonl", "config.yaml"):
            (run / name).unlink()
        with (run / "metrics.jsonl").open("a") as file:
            file.write('{"step": 31, "lo')
        done = report(run, "-o", FOLDER / "torn.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (FOLDER / "torn.html").read_text(encoding="utf-8")
        for words in ("the last line is incomplete", "There is no journal.jsonl",
                      "There is no config.yaml"):
            self.assertIn(words, page)

    def test_folders_named_like_secrets_stay_unnamed(self):
        secret = FOLDER / "secrets" / "token=abcd1234"
        shutil.copytree(FOLDER / "run", secret)
        shutil.copy(FOLDER / "bench.json", secret / "result.json")
        cut = FOLDER / "secrets" / "api_key=abcd1234"
        cut.mkdir()
        (cut / "cut.json").write_text((FOLDER / "bench.json").read_text()[:300])
        (cut / "other.json").write_text('{"a": 1}')
        for arguments in ((FOLDER / "secrets",), (secret / "result.json",),
                          (secret, FOLDER / "run")):
            for form in ("--markdown", "-o"):
                page = FOLDER / "secrets.html"
                more = (page,) if form == "-o" else ()
                done = report(*arguments, form, *more)
                self.assertEqual(done.returncode, 0, done.stderr)
                text = page.read_text(encoding="utf-8") if more else done.stdout
                self.assertNotIn("abcd1234", text)
                self.assertIn("REDACTED", text)
        done = report(FOLDER / "secrets", "--markdown")
        self.assertIn("REDACTED/cut.json", done.stdout)
        self.assertIn("REDACTED/other.json", done.stdout)
        self.assertIn("REDACTED/result.json", done.stdout)

    def test_bad_input_has_its_code(self):
        (FOLDER / "empty").mkdir()
        bad = FOLDER / "bad.json"
        bad.write_text('{"schema": 2, "comm')
        for code, words, arguments in (
                (2, "INPUT", ()), (66, "no such file", (FOLDER / "absent",)),
                (66, "neither runs nor results", (FOLDER / "empty",)), (65, "bad.json", (bad,)),
                (66, "absent", (FOLDER / "run", "-o", FOLDER / "absent/page.html"))):
            done = report(*arguments)
            self.assertEqual(done.returncode, code, (arguments, done.stderr))
            self.assertIn(words, done.stderr)

    def test_a_folder_of_runs_is_compared(self):
        runs = FOLDER / "runs"
        for name in ("a", "b"):
            report_run.make_run(runs / name, 20, 2, name)
        (runs / "torn.json").write_text('{"schema": 2, "command": "coll", ')
        done = report(runs, "-o", FOLDER / "runs.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (FOLDER / "runs.html").read_text(encoding="utf-8")
        self.assertIn("Comparison of the runs", page)
        self.assertIn("Left out", page)


class RealRun(unittest.TestCase):
    def test_a_launch_with_a_fault_leaves_what_monitoring_and_report_need(self):
        """A rank is killed at step 8. node_exporter's file, the site's command and the page agree
        with the run's own files."""
        config = harness.write_config(FOLDER / "real.yaml", harness.make_datasets(FOLDER / "data"),
                                      model="small", train__steps=16, train__log_every=1,
                                      checkpoint__every=4, run__name="real")
        heard, prom = FOLDER / "heard", FOLDER / "real.prom"
        harness.must(harness.run(
            "launch", "--ranks-per-node", 2, "--", "train", config, f"metrics.openmetrics={prom}",
            "metrics.openmetrics_every=1", "energy.co2_grams_per_kwh=100", "run.trace=2",
            f"launch.on_event=cat >> {heard}", env={
                "TRIREME_FAULTS": "step.end@1:1:8:kill"}))
        events = [json.loads(line) for line in heard.read_text().splitlines()]
        self.assertEqual([event["event"] for event in events],
                         ["started", "fault", "relaunch", "finished"])
        self.assertEqual({event["run"] for event in events}, {str(harness.run_dir(config))})
        gauges = dict(line.rsplit(" ", 1) for line in prom.read_text().splitlines()
                      if not line.startswith("#"))
        label = '{run="real"}'
        for name, value in (("step", 16), ("steps", 16), ("ranks", 2), ("restarts", 1),
                            ("run_active", 0), ("logged_step", 16)):
            self.assertEqual(float(gauges[f"trireme_{name}{label}"]), value, name)
        last = harness.metrics(config)[-1]
        self.assertAlmostEqual(float(gauges[f"trireme_loss{label}"]), last["loss"], places=6)
        self.assertTrue(0 < float(gauges[f"trireme_goodput_ratio{label}"]) < 1)
        self.assertIn("co2_grams_per_step", last)
        harness.must(report(harness.run_dir(config), "-o", FOLDER / "real.html"))
        page = (FOLDER / "real.html").read_text(encoding="utf-8")
        for words in ("Run real", "Timeline of attempts", "process_death",
                      "Time of a step, by rank", "Peak memory, by rank"):
            self.assertIn(words, page)
        version = json.loads(harness.must(harness.run("--version", "--json")).stdout)
        for fact in (version["version"], version["commit"], version["built_with"]["mpi"]):
            self.assertIn(fact, page.split("Provenance")[1])
        if last["cpu_joules_per_step"] is None:
            self.assertIn("No energy was measured", page)
            self.assertIn("energy is not counted", "".join(
                path.read_text() for path in harness.run_dir(config).glob("logs/rank-00000*")))


class Browser:
    """Speaks WebDriver with a Chromium of its own."""

    def __init__(self):
        port_file = FOLDER / "driver.log"
        with port_file.open("w") as log:
            self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=log, stderr=log)
        end = time.monotonic() + 60
        # Newer drivers first repeat the 0 of --port, and then name the port that they have taken.
        while not (port := re.search(r"on port ([1-9]\d*)\.", port_file.read_text())):
            if time.monotonic() > end or self.driver.poll() is not None:
                raise RuntimeError(port_file.read_text())
            time.sleep(0.1)
        self.base = f"http://127.0.0.1:{port[1]}/session"
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu",
                            "--disable-dev-shm-usage", "--hide-scrollbars",
                            f"--user-data-dir={FOLDER / 'chromium'}"],
                   "perfLoggingPrefs": {"enableNetwork": True}}
        session = self.call("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self.base += "/" + session["sessionId"]

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            self.base + path, method=method, headers={"Content-Type": "application/json"},
            data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()[:2000]) from error

    def open(self, page):
        self.call("POST", "/url", {"url": pathlib.Path(page).as_uri()})

    def run(self, script):
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def devtools(self, command, **params):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def log(self, kind):
        return self.call("POST", "/se/log", {"type": kind})

    def set_look(self, scheme, width):
        self.devtools("Emulation.setEmulatedMedia", media="screen",
                      features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=900,
                      deviceScaleFactor=1, mobile=width < 600)

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(30)


# Returns problems that axe-core would find: names, headings, identifiers, tables, contrast.
CHECKS = r"""
const problems = [];
const name = element => (element.getAttribute("aria-label")
  || (element.getAttribute("aria-labelledby") || "").split(" ").filter(Boolean)
      .map(id => document.getElementById(id)?.textContent || "").join(" ")
  || element.textContent).trim();
if (!document.documentElement.lang) problems.push("no language");
if (document.querySelectorAll("h1").length !== 1) problems.push("not one h1");
if (document.querySelectorAll("main").length !== 1) problems.push("not one main");
let level = 0;
for (const heading of document.querySelectorAll("h1,h2,h3,h4,h5,h6")) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) problems.push(`h${level} is followed by h${own}: ${heading.textContent}`);
  if (!heading.textContent.trim()) problems.push("an empty heading");
  level = own;
}
const ids = [...document.querySelectorAll("[id]")].map(element => element.id);
ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => problems.push("id twice: " + id));
const named = "button,a,[role],summary,section[aria-labelledby]";
for (const element of document.querySelectorAll(named)) {
  if (!name(element)) problems.push("no name: " + element.outerHTML.slice(0, 80));
}
for (const table of document.querySelectorAll("table")) {
  if (!table.caption?.textContent.trim()) problems.push("a table without a caption");
  if (!table.querySelector("thead th[scope=col]")) problems.push("a table without headers");
  const width = table.querySelector("thead tr").cells.length;
  for (const row of table.tBodies[0].rows) {
    if (row.cells.length !== width) problems.push("a ragged table: " + table.caption.textContent);
  }
}
for (const element of document.querySelectorAll("*")) {
  const style = getComputedStyle(element);
  const scrolls = element.scrollWidth > element.clientWidth + 1
    && /auto|scroll/.test(style.overflowX);
  if (scrolls && element.tabIndex < 0) problems.push("scrolls without focus: " + element.className);
}
// Contrast of texts with what is behind them (WCAG 2.1, 1.4.3).
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
function colour(text) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}
function light(rgb) {
  const [r, g, b] = rgb.slice(0, 3).map(
    c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function behind(element) {
  for (let at = element; at; at = at.parentElement) {
    const own = colour(getComputedStyle(at).backgroundColor);
    if (own[3] > 250) return own;
  }
  return [255, 255, 255, 255];
}
const seen = new Set();
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
  const inMap = element.closest("svg")?.querySelector("rect[fill^='#ef'], rect[fill^='#08']");
  if (!own || element.closest("script,style,title")) continue;
  if (inMap && element.hasAttribute("fill")) continue;
  const style = getComputedStyle(element);
  const ink = colour(element instanceof SVGElement ? style.fill : style.color);
  const [a, b] = [light(ink), light(behind(element))].sort((x, y) => y - x);
  const key = element.tagName + ink + behind(element);
  if ((a + 0.05) / (b + 0.05) < 4.5 && !seen.has(key)) {
    seen.add(key);
    const ratio = ((a + 0.05) / (b + 0.05)).toFixed(2);
    problems.push(`contrast ${ratio}: ${element.tagName} ${element.textContent.slice(0, 40)}`);
  }
}
return problems;
"""


@unittest.skipUnless(shutil.which("chromium") and shutil.which("chromedriver"),
                     "needs Chromium: ./dev install-deps all")
class InBrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.set_look("light", 1280)
        self.browser.open(FOLDER / "page.html")

    def test_nothing_is_loaded_and_nothing_complained_of(self):
        self.browser.log("performance")
        self.browser.open(FOLDER / "hostile.html" if (FOLDER / "hostile.html").exists()
                          else FOLDER / "page.html")
        self.browser.open(FOLDER / "page.html")
        asked = [json.loads(entry["message"])["message"]
                 for entry in self.browser.log("performance")]
        urls = [each["params"]["request"]["url"] for each in asked
                if each["method"] == "Network.requestWillBeSent"]
        self.assertTrue(urls)
        self.assertEqual([url for url in urls if not url.startswith(("file:", "data:"))], [])
        self.assertEqual(len([url for url in urls if url.endswith("page.html")]), 1)
        self.assertEqual(self.browser.log("browser"), [])

    def test_names_from_files_run_nothing(self):
        run = report_run.make_run(FOLDER / "hostile in browser", 20, 2, HOSTILE)
        report(run, "-o", FOLDER / "hostile.html")
        self.browser.open(FOLDER / "hostile.html")
        self.assertIn("onerror", self.browser.run("return document.title"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('img').length"), 0)

    def test_can_be_read_by_everybody(self):
        for scheme in ("light", "dark"):
            for width in (1280, 390):
                self.browser.set_look(scheme, width)
                self.browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
                self.assertEqual(self.browser.run(CHECKS), [], (scheme, width))
                wide = self.browser.run("return document.scrollingElement.scrollWidth")
                self.assertLessEqual(wide, width, "the page scrolls sideways")

    def test_zooms_by_buttons_keys_and_pointer(self):
        ticks = "return document.querySelector('.x-ticks').textContent.replace(/\\s/g, '')"
        whole = self.browser.run(ticks)
        self.browser.run("document.querySelector('.zoom button').click()")
        half = self.browser.run(ticks)
        self.assertNotEqual(half, whole)
        status = "return document.querySelector('.zoom output').textContent"
        self.assertRegex(self.browser.run(status),
                         r"Steps 7\d\d to 22\d\d")
        key = ("document.querySelector('.plot').dispatchEvent("
               "new KeyboardEvent('keydown', {key: '%s', bubbles: true}))")
        self.browser.run(key % "ArrowRight")
        self.assertNotEqual(self.browser.run(ticks), half)
        self.browser.run(key % "Escape")
        self.assertEqual(self.browser.run(ticks), whole)
        self.browser.run("document.querySelector('.plot').scrollIntoView()")
        box = self.browser.run("const b = "
                               "document.querySelector('.plot svg').getBoundingClientRect();"
                               "return [b.left, b.top, b.width, b.height]")
        for kind, part in (("mousePressed", 0.3), ("mouseMoved", 0.5), ("mouseReleased", 0.5)):
            self.browser.devtools("Input.dispatchMouseEvent", type=kind, button="left",
                                  buttons=1, clickCount=1, x=box[0] + part * box[2],
                                  y=box[1] + box[3] / 2)
        self.assertNotEqual(self.browser.run(ticks), whole)
        self.assertEqual(self.browser.log("browser"), [])

    def test_prints(self):
        """Printing opens every table and leaves out what only works on a screen."""
        closed = ("return [...document.querySelectorAll('figure details')]"
                  ".filter(d => !d.open || !(d.querySelector('table').offsetHeight > 0)).length")
        self.assertGreater(self.browser.run(closed), 5)
        paper = base64.b64decode(self.browser.devtools("Page.printToPDF")["data"])
        self.assertTrue(paper.startswith(b"%PDF"))
        self.assertEqual(self.browser.run(closed), 0)
        self.browser.devtools("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(self.browser.run(
            "return [...document.querySelectorAll('nav, .zoom, .skip')]"
            ".filter(each => each.offsetHeight > 0).length"), 0)

    def test_pictures(self):
        folder = os.environ.get("TRIREME_SCREENSHOTS")
        if not folder:
            self.skipTest("TRIREME_SCREENSHOTS names no folder")
        for name, scheme, width, selector in (
                ("report-light", "light", 1100, "h1"), ("report-dark", "dark", 1100, "h1"),
                ("report-phone", "light", 390, "h1"),
                ("report-loss", "light", 1100, "figure"),
                ("report-faults", "dark", 1100, "#s0-3"),
                ("report-ranks", "light", 1100, "#s0-2"),
                ("report-bench", "light", 1100, "#s1"),
                ("report-pairs", "light", 1100, "#s1-1"),
                ("report-scaling", "dark", 1100, "#s1-2")):
            self.browser.set_look(scheme, width)
            self.browser.run(f"document.querySelector('{selector}').scrollIntoView()")
            picture = self.browser.devtools("Page.captureScreenshot", format="png")["data"]
            (pathlib.Path(folder) / f"{name}.png").write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    unittest.main()

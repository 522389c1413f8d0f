#include "src/app/run/report_page_command.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/app/access/folder_access.h"
#include "src/app/access/key_choice.h"
#include "src/app/access/shown_run.h"
#include "src/app/command/output_check.h"
#include "src/app/command/version.h"
#include "src/app/evidence/verify_page.h"
#include "src/app/launch/run_state.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/report/acceptance_section.h"
#include "src/report/bench_section.h"
#include "src/report/plan_section.h"
#include "src/report/run_section.h"
#include "src/study/redaction/redaction.h"
#include "src/train/run/run_directory.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostInputs = 200;
constexpr int kDeepest = 6;  // folders below the one that was named
constexpr std::int64_t kMostBenchBytes = 64 << 20;
constexpr std::size_t kMostNamed = 20;  // other files in a folder

struct PageOptions {
  std::vector<std::string> inputs;
  std::string out;
  std::string title;
  std::string trust;  // file with the keys for the evidence; empty: without it
  bool markdown = false;
  KeyChoice keys;
};

struct Inputs {
  const TextReader& reader;  // opens the files of runs
  std::vector<RunFolder> runs;
  std::vector<std::string> states;  // of the runs
  std::vector<fs::path> folders;    // theirs; those in `runs` are shown, without secrets
  std::vector<DocSection> benches;
  std::vector<std::string> remarks;
  std::vector<std::string> others;  // JSON files in folders that are no results
  bool left_some_out = false;       // because there were kMostInputs already

  std::size_t size() const { return runs.size() + benches.size(); }
  // Returns whether one more is shown.
  bool take_place() {
    left_some_out = left_some_out || size() >= kMostInputs;
    return !left_some_out;
  }
};

// Returns a message that may name a file or folder, without secrets.
std::string shown_message(const fs::path& path, std::string message) {
  const std::string own = path.string();
  const std::string shown = redact_path(own);
  for (std::size_t at = message.find(own); at != std::string::npos && !own.empty();
       at = message.find(own, at + shown.size())) {
    message.replace(at, own.size(), shown);
  }
  return redact(message).text;
}

void add_run(const fs::path& path, Inputs& inputs) {
  if (!inputs.take_place()) {
    return;
  }
  std::string state;
  std::string reason;
  try {
    const RunState found = state_of_run(path, inputs.reader);
    state = found.state;
    reason = found.state == "failed" ? found.reason : "";
  } catch (const Error& error) {
    inputs.remarks.push_back(fmt::format("The state of {} is not known: {}",
                                         redact_path(path.string()),
                                         shown_message(path, error.what())));
  }
  inputs.runs.push_back(
      read_run_folder(path, state == "running" || state == "starting", inputs.reader));
  warn_of_damaged_lines(inputs.runs.back());
  if (RunFolder& run = inputs.runs.back(); !reason.empty() && run.exit_reason.empty()) {
    run.remarks.push_back(fmt::format("The run counts as failed: {}.", reason));
  }
  redact_run(inputs.runs.back());
  inputs.runs.back().path = redact_path(path.string());
  inputs.states.push_back(state);
  inputs.folders.push_back(path);
}

// Returns whether a text is what `trireme compare --json` prints.
bool looks_like_comparison(std::string_view text) {
  const std::string_view head = text.substr(0, 4096);
  return head.find("\"threshold\"") != std::string_view::npos &&
         head.find("\"alpha\"") != std::string_view::npos;
}

DocSection result_section(const std::string& text, const std::string& name) {
  if (looks_like_comparison(text)) {
    throw DataError(
        "this is what trireme compare --json prints, which a report does not show: name the two "
        "results that were compared");
  }
  try {
    (void)parse_json(text);
    if (looks_like_acceptance(text)) {
      return acceptance_section(text, name);
    }
    if (looks_like_plan(text)) {
      return plan_section(text, name);
    }
    if (looks_like_bench(text)) {
      return bench_section(text, name);
    }
    throw DataError(
        "it is no result that a report shows, which are those of trireme bench -J, plan -J and "
        "accept");
  } catch (const nlohmann::json::exception&) {
    throw DataError("a field has another type than its format says");
  }
}

void add_bench(const fs::path& path, Inputs& inputs) {
  if (!inputs.take_place()) {
    return;
  }
  try {
    const std::string text = read_file(path, kMostBenchBytes);
    // Files in different folders often have the same name.
    const fs::path folder = fs::absolute(path).parent_path().filename();
    const std::string name = redact_path((folder / path.filename()).string());
    inputs.benches.push_back(result_section(text, name));
  } catch (const DataError& error) {
    throw data_error_in(path.string(), error);
  }
}

void add_run_folder(const fs::path& folder, int depth, Inputs& inputs);

// Adds the runs and results in a folder, in the order of their names. of_run: whether it is a
// run's, whose own files are no results.
void add_folder(const fs::path& folder, int depth, Inputs& inputs, bool of_run = false) {
  std::vector<fs::path> paths;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    paths.push_back(entry->path());
  }
  if (failure && (of_run || depth > 1)) {
    inputs.remarks.push_back(
        fmt::format("Left out {}: {}", redact_path(folder.string()), failure.message()));
    return;
  }
  if (failure) {
    throw_errno(failure.value(), "read", folder);
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    if (inputs.left_some_out) {
      return;
    }
    std::error_code code;
    if (fs::is_symlink(path, code)) {
      continue;
    }
    if (fs::is_directory(path, code)) {
      if (of_run && (path.filename() == "checkpoints" || path.filename() == "trace")) {
        continue;
      }
      if (is_run_folder(path)) {
        add_run_folder(path, depth + 1, inputs);
      } else if (depth < kDeepest) {
        add_folder(path, depth + 1, inputs);
      }
    } else if (path.extension() == ".json" && fs::is_regular_file(path, code)) {
      try {
        const std::string text = read_file(path, kMostBenchBytes);
        if (looks_like_bench(text) || looks_like_acceptance(text) || looks_like_plan(text)) {
          add_bench(path, inputs);
        } else if (!of_run && path.filename() != "study.json") {  // which `scale` keeps for itself
          inputs.others.push_back(redact_path(path.string()));
        }
      } catch (const Error& error) {
        inputs.remarks.push_back(fmt::format("Left out {}: {}", redact_path(path.string()),
                                             shown_message(path, error.what())));
      }
    }
  }
}

// Adds the run in a folder, and other runs and results below it. A folder that holds some, and of a
// run nothing but a config.yaml, is none.
void add_run_folder(const fs::path& folder, int depth, Inputs& inputs) {
  std::error_code code;
  const auto holds = [&](const char* name) { return fs::exists(folder / name, code); };
  const bool started = holds("metrics.jsonl") || holds("journal.jsonl") || holds(".lock");
  if (started) {
    add_run(folder, inputs);
  }
  const std::size_t before = inputs.size();
  if (depth <= kDeepest && ::access(folder.c_str(), R_OK | X_OK) == 0) {
    add_folder(folder, depth, inputs, true);
  }
  if (!started && inputs.size() == before) {
    add_run(folder, inputs);
  }
}

void add_input(const fs::path& path, Inputs& inputs) {
  std::error_code code;
  if (!fs::exists(path, code)) {
    throw NotFound(fmt::format("{}: there is no such file or folder", path.string()));
  }
  if (!fs::is_directory(path, code)) {
    add_bench(path, inputs);
  } else if (is_run_folder(path)) {
    check_run_folder(path);
    add_run_folder(path, 1, inputs);
  } else {
    const std::size_t before = inputs.size() + inputs.remarks.size();
    add_folder(path, 1, inputs);
    if (inputs.size() + inputs.remarks.size() == before && !inputs.left_some_out) {
      throw NotFound(
          fmt::format("{} holds neither runs nor results of trireme bench -J", path.string()));
    }
  }
}

// Replaces secrets in what is said about a run in this folder.
DocSection without_secrets(DocSection section, const fs::path& run) {
  for (std::string& remark : section.remarks) {
    remark = shown_message(run, std::move(remark));
  }
  for (DocTable& table : section.tables) {
    for (auto& row : table.rows) {
      for (std::string& cell : row) {
        cell = shown_message(run, std::move(cell));
      }
    }
  }
  return section;
}

// Returns what `trireme verify` says about the run.
DocSection evidence_of(const fs::path& run, const PageOptions& options) {
  try {
    if (options.keys.access) {
      check_folder_access(options.keys.access(), Deed::read, run);
    }
  } catch (const Error& error) {
    return {.heading = "Evidence", .remarks = {shown_message(run, error.what())}};
  }
  const KeyedTextReader logs = options.keys.reader();
  return without_secrets(
      evidence_part(run, options.trust, options.keys.uris.empty() ? nullptr : &logs), run);
}

Document document_of(const PageOptions& options, Inputs inputs) {
  Document document;
  document.title = options.title;
  if (document.title.empty()) {
    document.title = inputs.runs.size() == 1 && inputs.benches.empty()
                         ? fmt::format("Report on run {}", inputs.runs.front().name)
                     : inputs.runs.empty() ? "Report on benchmarks"
                                           : "Report on runs and benchmarks";
  }
  document.paragraphs.push_back(fmt::format(
      "Made on {} on {} by trireme {}, from {} and {}.", time_text(wall_clock_seconds()),
      host_name(), version_json().value("version", ""), counted(std::ssize(inputs.runs), "run"),
      counted(std::ssize(inputs.benches), "result file")));
  if (!inputs.remarks.empty()) {
    document.sections.push_back({.heading = "What could not be read", .remarks = inputs.remarks});
  }
  if (inputs.runs.size() > 1) {
    document.sections.push_back(comparison_section(inputs.runs));
  }
  for (std::size_t i = 0; i < inputs.runs.size(); ++i) {
    document.sections.push_back(run_section(inputs.runs[i], inputs.states[i]));
    if (!options.trust.empty()) {
      document.sections.back().parts.push_back(evidence_of(inputs.folders[i], options));
    }
  }
  std::move(inputs.benches.begin(), inputs.benches.end(), std::back_inserter(document.sections));
  return document;
}

void write_page(const PageOptions& options) {
  const KeyedTextReader reader = options.keys.reader();
  const std::string out = options.out.empty() && !options.markdown ? "report.html" : options.out;
  if (!out.empty()) {
    check_output(out, options.inputs);
  }
  Inputs inputs{reader, {}, {}, {}, {}, {}, {}};
  for (const std::string& path : options.inputs) {
    add_input(path, inputs);
  }
  if (inputs.left_some_out) {
    inputs.remarks.push_back(
        fmt::format("Only the first {} runs and files are shown.", kMostInputs));
  }
  tell_apart(inputs.runs);
  if (!inputs.others.empty()) {
    const std::size_t named = std::min(inputs.others.size(), kMostNamed);
    inputs.remarks.push_back(fmt::format(
        "Left out {} that {} or incomplete: {}{}.", counted(std::ssize(inputs.others), "JSON file"),
        inputs.others.size() == 1 ? "is no result" : "are no results",
        fmt::join(inputs.others.begin(), inputs.others.begin() + std::ptrdiff_t(named), ", "),
        named < inputs.others.size() ? ", ..." : ""));
  }
  const Document document = document_of(options, std::move(inputs));
  const std::string text = options.markdown ? to_markdown(document) : to_html(document);
  if (out.empty()) {
    fmt::print("{}", text);
    return;
  }
  write_named_file(out, text);
  fmt::print("{}\n", printable(out));
}

}  // namespace

void add_report_page_command(CommandLine& app, const AccessSource& access) {
  CommandLine& command = app.add_command(
      "report", "Make a page of runs and benchmark results: one HTML file that needs no network");
  const auto options = std::make_shared<PageOptions>();
  command
      .add_option("INPUT", options->inputs,
                  "Runs' folders (run.dir), files of trireme bench -J, scale -J, accept -J or plan "
                  "-J, or folders "
                  "of these")
      .required();
  command
      .add_option("-o,--out", options->out,
                  "Write to FILE (default: report.html; with --markdown: standard output)")
      .type_name("FILE");
  command.add_flag("--markdown", options->markdown, "Make Markdown, with tables but no pictures");
  command.add_option("--title", options->title, "Title of the page");
  command
      .add_option("--trust", options->trust,
                  "Check the checkpoints of the runs and their lineage with these public keys, as "
                  "trireme verify does, and show what it says")
      .type_name("FILE");
  options->keys.add_to(command);
  options->keys.access = access;
  command.footer(
      "Examples:\n"
      "  trireme report runs/first -o first.html\n"
      "  trireme report runs/first results/ --title 'New machine' -o machine.html\n"
      "  trireme report runs/first --trust trust.pem -o evidence.html\n"
      "Runs that are not finished, and files that are damaged, are shown as far as they go; the "
      "page says what is missing.");
  command.callback([options] { write_page(*options); });
}

}  // namespace trireme

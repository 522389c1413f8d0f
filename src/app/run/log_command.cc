#include "src/app/run/log_command.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "io/checkpoint/store.h"
#include "io/data/input_files.h"
#include "src/app/access/key_choice.h"
#include "src/app/command/number_check.h"
#include "src/app/command/standard_output.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostBytes = std::int64_t{4} << 30;

struct LogCommandOptions {
  std::string path;
  int rank = 0;
  KeyChoice keys;
};

// Returns the files that a path means: itself, or the log of a rank in a run's folder.
std::vector<fs::path> files_of(const LogCommandOptions& options) {
  if (!fs::is_directory(options.path)) {
    return {options.path};
  }
  if (fs::path(options.path).extension() == ".jsonl") {
    throw DataError(fmt::format("{} is a folder, and not the file that a run writes: move it away",
                                options.path));
  }
  const fs::path logs = fs::path(options.path) / "logs";
  std::vector<fs::path> files;
  for (const fs::path& file : {older_log_file(logs, options.rank), log_file(logs, options.rank)}) {
    if (fs::exists(file)) {
      files.push_back(file);
    }
  }
  if (files.empty()) {
    throw NotFound(
        fmt::format("{} does not exist: give the run.dir of a run that has begun, or one "
                    "of its files",
                    log_file(logs, options.rank).string()));
  }
  return files;
}

// A dataset or a checkpoint has a label of its own, by which other commands ask the policy whether
// they may print it.
void check_is_text_of_run(const fs::path& file) {
  std::error_code code;
  const fs::path real = fs::canonical(file, code);
  if (code) {
    return;
  }
  if (const fs::path dataset = dataset_with(real); !dataset.empty()) {
    throw ConfigError(fmt::format(
        "{} is a part of the dataset {}, and no log: `trireme data export` writes its documents",
        file.string(), dataset.string()));
  }
  if (is_step_folder(real.parent_path())) {
    throw ConfigError(
        fmt::format("{} is a part of the checkpoint {}, and no log: see `trireme ckpt show`",
                    file.string(), real.parent_path().string()));
  }
}

// Says on standard error if a process did not end its part of the file.
void note_unfinished(const OpenedText& opened, const fs::path& file) {
  if (opened.unfinished > 0) {
    fmt::print(
        stderr,
        "trireme: {}: {} of {} no end: the process still writes or was killed, or the end "
        "was cut off\n",
        printable(file.string()), opened.unfinished,
        opened.sections == 1 ? "1 section has" : counted(opened.sections, "section") + " have");
  }
}

void note_unclosed(const fs::path& run) {
  if (const std::string lack = run.empty() ? "" : lack_of_closing_record(run); !lack.empty()) {
    fmt::print(stderr, "trireme: {}: {}\n", printable(run.string()), lack);
  }
  if (const std::string note = run.empty() ? "" : note_of_files_set_aside(run); !note.empty()) {
    fmt::print(stderr, "trireme: {}: {}\n", printable(run.string()), note);
  }
}

void print_files(const LogCommandOptions& options, const fs::path& run) {
  const KeyedTextReader reader = options.keys.reader();
  TextPrinter printer;
  for (const fs::path& file : files_of(options)) {
    check_is_text_of_run(file);
    if (is_sealed_file(file)) {
      const OpenedText opened = reader.open_sections(read_file(file, kMostBytes), file);
      printer.print(opened.text);
      note_unfinished(opened, file);
    } else {
      printer.print(reader.read(file, kMostBytes));
    }
  }
  flush_standard_output();
  note_unclosed(run);
}

}  // namespace

void add_log_command(CommandLine& app, const AccessSource& access) {
  CommandLine& command =
      app.add_command("log", "Print a log, metrics or trace of a run, decrypted if need be");
  const auto options = std::make_shared<LogCommandOptions>();
  command
      .add_option("PATH", options->path,
                  "A run's folder (run.dir): then the log of a rank; or a file in it")
      .required();
  command.add_option("--rank", options->rank, "Whose log is printed")
      .type_name("RANK")
      .check(integer_within(0, 1 << 24));
  options->keys.add_to(command);
  command.footer(
      "Examples:\n"
      "  trireme log runs/first --key file:/etc/trireme/site.key\n"
      "  trireme log runs/first/metrics.jsonl | tail -n 1\n"
      "Files stay where they are, encrypted. Every line is authenticated before anything of its "
      "file is printed; what was changed or cut off ends with 65 and the number of the line.");
  options->keys.access = access;
  command.callback([options] {
    const fs::path path = options->path;
    const fs::path run = run_with_log_keys(fs::is_directory(path) ? path / "logs" / "it" : path);
    print_files(*options, run);
  });
}

}  // namespace trireme

#include "src/app/study/scale_check.h"

#include <fmt/format.h>

#include "src/study/run_result.h"
#include "src/trace/trace_summary.h"

namespace trireme {
namespace {

constexpr double kLongestStepMs = 1e10;  // four months

// Returns what a run's config.yaml says about a key, or null.
const std::string* value_in(const MeasuredResult& result, const std::string& key) {
  for (const auto* values : {&result.conditions, &result.circumstances}) {
    if (const auto found = values->find(key); found != values->end()) {
      return &found->second;
    }
  }
  return nullptr;
}

// Returns the differences between what the study asks for and what the run did, one per line.
std::string unlike_asked(const ScaleStudy& study, const ScaleRun& run,
                         const MeasuredResult& result) {
  std::string text;
  const auto compare = [&](const std::string& key, const std::string& asked) {
    const std::string* const found = value_in(result, key);
    if (found == nullptr || *found != asked) {
      text += fmt::format("\n  {}: {}, and the study asks for {}", key,
                          found == nullptr ? "not known" : *found, asked);
    }
  };
  // The study may have been moved as a whole, or be named from another folder.
  const std::string name = run.folder.filename().string();
  const std::string* const folder = value_in(result, "run.dir");
  if (folder != nullptr && std::filesystem::path(*folder).filename() != name) {
    text += fmt::format("\n  run.dir: {}, and the study asks for {}: it is a copy of another run",
                        *folder, name);
  }
  const int ranks_per_node = study.options().ranks_per_node;
  compare("start.ranks", std::to_string(run.nodes * ranks_per_node));
  if (!study.options().cluster.empty()) {
    compare(kSpread, spread_text(std::vector<std::int64_t>(static_cast<std::size_t>(run.nodes),
                                                           ranks_per_node)));
  }
  for (const ConfigEntry& entry : study.asked_of(run)) {
    const std::string asked = entry.value.to_yaml();
    if (asked != "auto") {  // config.yaml holds what the run has chosen
      compare(entry.key, asked);
    }
  }
  return text;
}

void check_times(const ScaleStudy& study, const ScaleRun& run, const MeasuredResult& result) {
  const std::vector<double>& times = result.rows.front().samples.front().values;
  const std::int64_t expected = kScaleWarmup - 1 + study.options().steps;  // without the first
  if (std::ssize(times) != expected) {
    throw DataError(fmt::format(
        "{}/metrics.jsonl has {} step times after the first, and the study asks for {}{}",
        run.folder.string(), times.size(), expected,
        result.damaged_lines.count > 0 ? "; it has " + result.damaged_lines.to_text() : ""));
  }
  for (const double time : times) {
    if (!(time > 0 && time < kLongestStepMs)) {
      throw DataError(fmt::format("{}/metrics.jsonl: a step cannot have taken {} ms",
                                  run.folder.string(), time));
    }
  }
}

// Every finished run of a study leaves these. One without them was damaged since.
void check_files(const ScaleRun& run) {
  for (const std::filesystem::path& file :
       {run.folder / "metrics.jsonl", trace_file(run.folder / "trace", 0)}) {
    if (!std::filesystem::exists(file)) {
      throw DataError(fmt::format("{} is missing", file.string()));
    }
  }
}

}  // namespace

MeasuredResult read_scale_run(const ScaleStudy& study, const ScaleRun& run,
                              const TextReader& reader) {
  return with_advice(run, [&] {
    if (std::filesystem::is_symlink(run.folder)) {
      throw DataError(
          fmt::format("{} is a symbolic link, and not a run of this study", run.folder.string()));
    }
    check_files(run);
    MeasuredResult result = read_run_result(run.folder, reader);
    if (const std::string text = unlike_asked(study, run, result); !text.empty()) {
      throw ConfigError(fmt::format(
          "{} is not a run that this study asks for:{}\nRemove the folder to measure again, or "
          "choose another folder for the study with --dir",
          run.folder.string(), text));
    }
    check_times(study, run, result);
    return result;
  });
}

void check_finished_runs(const ScaleStudy& study) {
  const KeyedTextReader reader = study.options().keys.reader();
  for (const ScaleRun& run : study.runs()) {
    const std::filesystem::file_status status = std::filesystem::symlink_status(run.folder);
    if (std::filesystem::exists(status) && !std::filesystem::is_directory(status) &&
        !std::filesystem::is_symlink(status)) {
      with_advice(run, [&]() -> MeasuredResult {
        throw DataError(
            fmt::format("{} is no folder, and not a run of this study", run.folder.string()));
      });
    }
    if (run.done()) {
      (void)read_scale_run(study, run, reader);
    }
  }
}

}  // namespace trireme

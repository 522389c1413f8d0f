// A folder for tests of `trireme scale` with a configuration, a program `mpirun` of the test's own,
// and prepared folders of runs that it copies: their steps and traces are such that tables can be
// computed by hand.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/app/study/scale_command.h"
#include "src/base/file.h"
#include "src/trace/trace_summary.h"
#include "tests/app/command_run.h"
#include "tests/support/environment_variables.h"
#include "tests/support/temp_folder.h"
#include "tests/trace/example.h"

namespace trireme {

// Where the time of a step goes on one rank, in milliseconds.
struct RankStep {
  int compute, wait, optimizer, whole;
};

// What every run's config.yaml holds, and the beginning of a program that finds run.dir and writes
// what its other arguments add to that into asked.yaml.
inline constexpr const char* kRunBase =
    "model: {family: gpt2, layers: 2, hidden: 16, heads: 2, vocab: 257, context: 16}\n"
    "data: {train: data, sequence: 16}\n"
    "train.micro_batch: 1\ntrain.precision: fp32\n";
inline constexpr const char* kFindWords =
    "cp base.yaml asked.yaml\n"
    "for word; do case $word in\n"
    "  run.dir=*) dir=${word#run.dir=};;\n"
    "  *=*) echo \"${word%%=*}: '${word#*=}'\" >> asked.yaml;;\n"
    "esac; done\n";

class ScaleFolder : public testing::Test {
 protected:
  ScaleFolder() {
    std::filesystem::create_directories(path("bin"));
    std::filesystem::create_directories(path("tmp"));
    variables_.set("PATH", path("bin") + ":/usr/bin:/bin");
    variables_.set("TMPDIR", path("tmp"));
    variables_.set("TRIREME_SITE_DIR", TRIREME_SOURCE_DIR "/tests/support/no_site");
    write("run.yaml",
          "model: {family: gpt2, layers: 2, hidden: 16, heads: 2, vocab: 257, context: 16}\n"
          "data: {train: data, sequence: 16}\n"
          "train: {steps: 1000, global_batch: 8, micro_batch: 1, precision: fp32}\n"
          "run: {dir: runs/base}\n");
    write("base.yaml", kRunBase);
    make_program("mpirun",
                 std::string(kFindWords) +
                     "mkdir -p \"$dir/checkpoints/step-00000001\" && cp -r ran-$2/. \"$dir\"\n"
                     "cp asked.yaml \"$dir/config.yaml\" && cat more-$2 >> \"$dir/config.yaml\"\n");
    prepare(1, 100, {{90, 0, 6, 100}});
    prepare(2, 60, {{50, 5, 3, 60}, {40, 15, 3, 60}});
    prepare(4, 50, {{20, 26, 2, 50}, {20, 26, 2, 50}, {20, 26, 2, 50}, {20, 26, 2, 50}});
  }
  // Writes what a run on so many ranks leaves. The first two steps do not count.
  void prepare(int ranks, double step_ms, const std::vector<RankStep>& steps) const {
    const std::string folder = fmt::format("ran-{}/", ranks);
    std::filesystem::create_directories(path(folder + "trace"));
    std::filesystem::create_directories(path(folder + "logs"));
    write(folder + "DONE", R"({"step":8})");
    write(fmt::format("more-{}", ranks), "");
    std::string metrics;
    for (int step = 1; step <= 8; ++step) {
      const double change = step <= 2 ? 500 * step : step % 3 - 1;
      metrics +=
          nlohmann::json{{"step", step}, {"step_ms", step_ms + change}, {"time", 1.8e9}}.dump() +
          "\n";
    }
    write(folder + "metrics.jsonl", metrics);
    write(folder + "logs/rank-00000.jsonl",
          fmt::format(
              "{{\"event\":\"start\",\"ranks\":{0}}}\n{{\"event\":\"layout\",\"dp\":{0}}}\n"
              "{{\"event\":\"rank\",\"threads\":1}}\n{1}\n",
              ranks,
              nlohmann::json{{"event", "nodes"}, {"ranks", std::vector<int>(ranks, 1)}}.dump()));
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& [compute, wait, optimizer, whole] = steps.at(static_cast<std::size_t>(rank));
      const int done = 1000 * (compute + wait);
      write(folder + fmt::format("trace/rank-{:05}.json", rank),
            trace_text(header_of(rank, {rank, 0, 0}, {ranks, 1, 1}),
                       {span_at(SpanKind::compute, "forward", 0, 1000 * compute),
                        span_at(SpanKind::replicas, "gradients", 1000 * compute, done),
                        span_at(SpanKind::optimizer, "optimizer", done, done + 1000 * optimizer),
                        span_at(SpanKind::step, "step", 0, 1000 * whole, {3, -1, -1})},
                       {}));
    }
  }
  void make_program(const std::string& name, const std::string& script) const {
    const std::string file = "bin/" + name;
    write(file, "#!/bin/sh\ncd " + folder_.path().string() + " || exit 1\necho \"" + name +
                    " $1 $2\" | sed 's/ [^ ]*trireme-job.*//' >> calls\n" + script);
    std::filesystem::permissions(path(file), std::filesystem::perms::owner_all);
  }
  void on_slurm(const std::string& squeue) const {
    write("site.yaml", "slurm: {time: \"60\"}\nnode: {ranks: 1, cpus_per_rank: 1}\n");
    make_program("sbatch",
                 "for script; do :; done\ncp \"$script\" script\n"
                 "echo $((100 + $(grep -c sbatch calls)))\n");
    make_program("squeue", squeue);
  }
  static CommandRun scale_words(std::vector<std::string> words) {
    words.insert(words.begin(), "scale");
    return run_command_line([](CommandLine& app, int& code) { add_scale_command(app, code); },
                            words);
  }
  CommandRun scale(const std::string& nodes, std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {path("run.yaml"), "--nodes", nodes, "--dir", path("study"),
                                 "--repeat", "1", "--steps", "6"});
    return scale_words(words);
  }
  CommandRun here(const std::string& nodes, std::vector<std::string> words = {}) const {
    words.insert(words.end(), {"--ranks-per-node", "1"});
    return scale(nodes, words);
  }
  CommandRun slurm(const std::string& nodes, std::vector<std::string> words = {}) const {
    words.insert(words.end(), {"--cluster", path("site.yaml")});
    return scale(nodes, words);
  }
  // Puts a finished run into the study.
  void finish(int nodes) const {
    std::filesystem::copy(path(fmt::format("ran-{}", nodes)),
                          path(fmt::format("study/n{:04}-r01", nodes)),
                          std::filesystem::copy_options::recursive);
    write(fmt::format("study/n{:04}-r01/config.yaml", nodes),
          kRunBase + std::string("train: {global_batch: 8, steps: 8, log_every: 1, eval_every: 0}\n"
                                 "optimizer.schedule.steps: 1000\nrun.trace: 6\n"
                                 "checkpoint.dir: ''\n"));
  }
  std::string take_calls() const {
    const std::string text = std::filesystem::exists(path("calls")) ? read_file(path("calls")) : "";
    std::filesystem::remove(path("calls"));
    return text;
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }

  TempFolder folder_;
  EnvironmentVariables variables_;
};

}  // namespace trireme

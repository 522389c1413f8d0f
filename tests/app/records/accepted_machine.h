// The machines that a script plays in tests of `trireme accept`: the script answers for each node
// and link what a file of the test says.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/app/study/accept_command.h"
#include "src/base/file.h"
#include "tests/app/command_run.h"
#include "tests/study/result_text.h"
#include "tests/support/environment_variables.h"
#include "tests/support/temp_folder.h"

namespace trireme {

class AcceptedMachine : public testing::Test {
 protected:
  static constexpr int kBadMachine = static_cast<int>(ExitCode::below_threshold);

  AcceptedMachine() {
    variables_.set("SLURM_JOB_NODELIST", std::nullopt);
    variables_.set("PATH", path("bin") + ":/usr/bin:/bin");
    std::filesystem::create_directory(path("bin"));
    make_program("program",
                 "[ \"$1\" = health ] || {\n"
                 "  while [ $# -gt 2 ]; do shift; done\n"
                 "  cp link-$A-$B \"$2\" 2>/dev/null || cp link-$B-$A \"$2\"; exit\n"
                 "}\n"
                 "cat errors-$NODE >&2 2>/dev/null\n"
                 "cat health-$NODE\n"
                 "exit $(cat code-$NODE 2>/dev/null || echo 0)\n");
    for (const int node : {1, 2, 3, 4}) {
      health(node, 98 + node);
      for (int other = node + 1; other <= 4; ++other) {
        link(node, other, 100 + node + other);
      }
    }
    profile("n[1-4]");
  }
  // A program that notes its arguments in the file `calls` first.
  void make_program(const std::string& name, const std::string& script) const {
    write(name, "#!/bin/sh\ncd " + folder_.path().string() +
                    " || exit 1\n"
                    "echo \"$NODE$A$B $*\" >> calls\n" +
                    script);
    std::filesystem::permissions(path(name), std::filesystem::perms::owner_all);
  }
  void health(int node, double rate, const std::vector<std::string>& complaints = {}) const {
    write(fmt::format("health-n{}", node),
          nlohmann::json{{"complaints", complaints},
                         {"rates", {{"memory", {{"median", rate}, {"unit", "GB/s"}}}}}}
              .dump());
  }
  void link(int a, int b, double time) const {
    nlohmann::json document = bench_json({time});
    document["command"] = "p2p";
    write(fmt::format("link-n{}-n{}", a, b), document.dump());
  }
  // Writes the profile, with more keys of the whole and of its sections.
  void profile(const std::string& nodes, const std::string& keys = "rounds: 1\n",
               const std::string& link_keys = "", const std::string& node_keys = "") const {
    write("accept.yaml", "nodes: \"" + nodes + "\"\nprogram: " + path("program") + "\n" + keys +
                             "node:\n  start: [env, \"NODE={node}\"]\n  measures: [health]\n" +
                             node_keys +
                             "link:\n  start: [env, \"A={a}\", \"B={b}\"]\n"
                             "  measures: [p2p --test bandwidth]\n" +
                             link_keys);
  }
  CommandRun accept(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"accept", path("accept.yaml"), "--dir", path("out")});
    return run_command_line(add_command, words);
  }
  static void add_command(CommandLine& app, int& code) {
    static AppContext context;
    add_accept_command(app, code, [](const std::vector<std::string>& arguments) {
      return measure_problem(context, arguments);
    });
  }
  static std::vector<std::string> texts_of(const nlohmann::json& list) {
    return list.get<std::vector<std::string>>();
  }
  nlohmann::json document() const {
    return nlohmann::json::parse(read_file(path("out/acceptance.json")));
  }
  // Returns the verdict on the link between two nodes.
  nlohmann::json link_verdict(const std::string& a, const std::string& b) const {
    const nlohmann::json found = document();
    for (const nlohmann::json& link : found["links"]) {
      if (link["nodes"] == nlohmann::json::array({a, b})) {
        return link;
      }
    }
    throw std::runtime_error("the link was not measured");
  }
  std::string calls() const { return read_file(path("calls")); }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }

  static constexpr const char* kNodeLimit = "  limits: [memory=1]\n";
  static constexpr const char* kLinkLimit = "  limits: [time_us=1e6]\n";

  TempFolder folder_;
  EnvironmentVariables variables_;
};

}  // namespace trireme

#include "benchmarks/all/all_command.h"

#include <algorithm>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/all/all.h"
#include "benchmarks/all/questions.h"
#include "benchmarks/bench_options.h"
#include "src/base/error.h"
#include "src/base/say.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

struct AllArguments {
  BenchAllOptions rest;
  BenchOutput output;
};

Json joined(const std::vector<Answer>& answers) {
  Json all = Json::array();
  for (const Answer& answer : answers) {
    for (const Json& result : answer.results) {
      all.push_back(result);
    }
  }
  return all;
}

// Names the questions and sizes for which there was no time.
std::vector<std::string> left_out_of(const std::vector<Answer>& answers) {
  std::vector<std::string> all;
  for (const Answer& answer : answers) {
    all.insert(all.end(), answer.left_out.begin(), answer.left_out.end());
    if (answer.results.empty() && answer.error == nullptr) {
      all.push_back(answer.question);
    }
  }
  return all;
}

// Throws the error of the first question that failed, if any has.
void rethrow_first(const std::vector<Answer>& answers) {
  for (const Answer& answer : answers) {
    if (answer.error != nullptr) {
      std::rethrow_exception(answer.error);
    }
  }
}

bool is_io_error(const Answer& answer) {
  try {
    rethrow_first({answer});
    return false;
  } catch (const IoError&) {
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool has_failed_disk(const std::vector<Answer>& answers) {
  return std::any_of(answers.begin(), answers.end(), is_io_error);
}

void run_all(const AllArguments& arguments, AppContext& context) {
  if (arguments.output.duration > 0) {
    throw ConfigError("bench all takes --minutes instead of --duration");
  }
  std::vector<Answer> answers;
  MpiSession& session = context.session();
  const bool first = session.world().rank() == 0;
  // Only rank 0 has something to write. It must not talk to the others, one of which may hang.
  const auto at_deadline = [&](const std::vector<Answer>& so_far) {
    if (first) {
      fmt::print("{}", picture_text(so_far));
      write_without_ranks(joined(so_far), arguments.output, "all", session, left_out_of(so_far));
      say(fmt::format("bench all: {} did not end in time", so_far.back().question));
    }
    return static_cast<int>(ExitCode::hang);
  };
  const auto measure = [&] {
    answers = bench_all(arguments.rest, context, at_deadline);
    const Json results = joined(answers);
    if (results.empty()) {
      rethrow_first(answers);
      throw ConfigError("no benchmark had time to measure anything: give more --minutes");
    }
    return results;
  };
  const auto print = [&](const Json&) { fmt::print("{}", picture_text(answers)); };
  const auto finish = [&] {
    if (has_failed_disk(answers)) {
      context.exit_code = static_cast<int>(ExitCode::io);
    }
  };
  run_bench({.command = "all",
             .measure = measure,
             .print = print,
             .left_out = [&] { return left_out_of(answers); },
             .finish = finish},
            arguments.output, context);
}

}  // namespace

void add_all_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "all", "Measure everything that these ranks can, within some minutes, in one table");
  const auto arguments = std::make_shared<AllArguments>();
  command.add_option("--minutes", arguments->rest.minutes, "End within so many minutes")
      .check(within(0.05, 1440.0))
      .type_name("MINUTES");
  command
      .add_option("--dir", arguments->rest.folder,
                  "Measure the file system that holds DIR, which all nodes share")
      .type_name("DIR");
  command
      .add_option("--only", arguments->rest.only,
                  "Ask only these questions, with commas between them (default: all that the ranks "
                  "can answer)")
      .type_name("NAME,...")
      .delimiter(',')
      .check(one_of(question_names()));
  command.add_flag("--verbose", arguments->rest.verbose,
                   "Also show the tables of the single benchmarks");
  add_output_options(command, arguments->output);
  command.footer(
      "Examples:\n"
      "  trireme bench all --minutes 10 -J node.json\n"
      "  mpirun -n 2 trireme bench all --minutes 5 --dir /scratch -J job.json");
  command.callback([arguments, &context] { run_all(*arguments, context); });
}

}  // namespace trireme

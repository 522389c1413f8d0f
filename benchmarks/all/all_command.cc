#include "benchmarks/all/all_command.h"

#include <cstdio>
#include <limits>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/all/all.h"
#include "benchmarks/all/questions.h"
#include "benchmarks/bench_options.h"
#include "benchmarks/busy_watch.h"
#include "src/base/error.h"
#include "src/base/printable.h"
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
    if (answer.results.empty() && !answer.has_failed) {
      all.push_back(answer.question);
    }
  }
  return all;
}

std::vector<FailedQuestion> failed_of(const std::vector<Answer>& answers) {
  std::vector<FailedQuestion> all;
  for (const Answer& answer : answers) {
    if (answer.has_failed) {
      all.push_back({answer.question, answer.trouble});
    }
  }
  return all;
}

// Returns the exit code of the first question that has failed, or 0.
int code_of(const std::vector<Answer>& answers) {
  for (const Answer& answer : answers) {
    try {
      if (answer.error != nullptr) {
        std::rethrow_exception(answer.error);
      }
    } catch (const Error& error) {
      return static_cast<int>(error.exit_code());
    }
  }
  return 0;
}

// Called on rank 0 at the deadline, or at a signal. It must not talk to the others, one of which
// may hang, and nothing catches what it would throw. So it does not know how long the others waited
// for a core.
void report_at_end(const std::vector<Answer>& so_far, const BenchOutput& output,
                   const MpiSession& session, const BusyWatch& busy) {
  fmt::print("{}", picture_text(so_far));
  std::fflush(stdout);
  BenchContext about;
  about.command = "all";
  about.left_out = left_out_of(so_far);
  about.failed = failed_of(so_far);
  about.waited_fraction =
      session.places().size() == 1 ? busy.waiting_part() : std::numeric_limits<double>::quiet_NaN();
  try {
    write_without_ranks(joined(so_far), output, about, session);
  } catch (const Error& error) {
    say(fmt::format("bench all: {}", printable(error.what())));
  }
  for (const FailedQuestion& each : about.failed) {
    say(fmt::format("bench all: {} failed: {}", each.question, printable(each.reason)));
  }
  if (const std::string wrong = wrong_question(so_far); !wrong.empty()) {
    say(fmt::format("bench all: something came out wrong: run bench {} alone", wrong));
  }
}

void run_all(const AllArguments& arguments, AppContext& context) {
  if (arguments.output.duration > 0) {
    throw ConfigError("bench all takes --minutes instead of --duration");
  }
  std::vector<Answer> answers;
  const BusyWatch busy;
  MpiSession& session = context.session();
  const bool first = session.world().rank() == 0;
  const auto at_end = [&](const std::vector<Answer>& so_far) {
    if (first) {
      report_at_end(so_far, arguments.output, session, busy);
    }
    return static_cast<int>(wrong_question(so_far).empty() ? ExitCode::hang : ExitCode::device);
  };
  const auto measure = [&] {
    answers = bench_all(arguments.rest, context, at_end);
    const Json results = joined(answers);
    if (results.empty() && code_of(answers) == 0) {
      throw ConfigError("no benchmark had time to measure anything: give more --minutes");
    }
    return results;
  };
  const auto print = [&](const Json&) { fmt::print("{}", picture_text(answers)); };
  const auto finish = [&] {
    context.exit_code = code_of(answers);
    for (const FailedQuestion& each : failed_of(answers)) {
      if (first) {
        say(fmt::format("bench all: {} failed: {}", each.question, printable(each.reason)));
      }
    }
  };
  run_bench({.command = "all",
             .measure = measure,
             .print = print,
             .left_out = [&] { return left_out_of(answers); },
             .failed = [&] { return failed_of(answers); },
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
  add_output_options(command, arguments->output).hidden();
  command.footer(
      "Examples:\n"
      "  trireme bench all --minutes 10 -J node.json\n"
      "  mpirun -n 2 trireme bench all --minutes 5 --dir /scratch -J job.json");
  command.callback([arguments, &context] { run_all(*arguments, context); });
}

}  // namespace trireme

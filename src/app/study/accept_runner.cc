#include "src/app/study/accept_runner.h"

#include <algorithm>
#include <atomic>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "src/app/study/launcher.h"
#include "src/app/study/measure_check.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/interruption.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/stopwatch.h"
#include "src/base/units.h"

namespace trireme {
namespace {

// Returns the message of this program, or the first error of srun, which names the node and how the
// rank ended, or the first line of what a launcher printed.
std::string cause_in(const std::string& errors) {
  std::istringstream stream(errors);
  std::string first;
  std::string error;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("trireme") || line.starts_with("rank ")) {
      return line;
    }
    error = error.empty() && line.starts_with("srun: error: ") ? line : error;
    first = first.empty() && line.find_first_not_of("- ") != std::string::npos ? line : first;
  }
  return error.empty() ? first : error;
}

// Health ends with 4 if it has complaints, which its output lists.
bool is_answer(const CommandResult& result, bool is_health) {
  return result.good() || (is_health && !result.late && result.code == 4);
}

// Returns whether a rank was killed before the measurement of a link printed anything, as sometimes
// in MPI_Init on busy nodes with Slurm 22.05 (docs/slurm.md). This says nothing about the link.
bool died_at_start(const CommandResult& result, const AcceptSubject& subject) {
  constexpr int kSignal = 128;  // added to its number in exit codes
  return subject.nodes.size() == 2 && !result.late && result.code > kSignal &&
         result.output.empty();
}

// Returns whether the node's program took the arguments for wrong.
bool was_refused(const CommandResult& result) {
  return !result.late && result.code == static_cast<int>(ExitCode::usage);
}

// Reads what a benchmark wrote. Another benchmark's document is no answer to the question.
MeasuredResult read_answer(const std::filesystem::path& file, const std::string& benchmark) {
  MeasuredResult result = read_measured_result(file);
  if (result.command != benchmark) {
    throw DataError(fmt::format("{} holds a measurement of bench {}, not of bench {}",
                                file.string(), result.command, benchmark));
  }
  return result;
}

}  // namespace

AcceptRunner::AcceptRunner(const AcceptProfile& profile, std::filesystem::path folder)
    : profile_(profile),
      folder_(std::move(folder)),
      program_(profile.program.empty() ? std::filesystem::read_symlink("/proc/self/exe").string()
                                       : profile.program) {}

void AcceptRunner::measure(const std::vector<std::string>& start, const std::string& what,
                           const std::string& tag, AcceptSubject& subject) const {
  std::map<std::string, std::string> names = {{"node", subject.nodes[0]}};
  if (subject.nodes.size() == 2) {
    names = {{"a", subject.nodes[0]}, {"b", subject.nodes[1]}};
  }
  std::vector<std::string> words = filled_in(start, names);
  words.push_back(program_);
  const std::filesystem::path file =
      folder_ / fmt::format("{}-{}.json", fmt::join(subject.nodes, "-"), tag);
  const std::vector<std::string> arguments =
      measure_arguments(what, profile_.seconds, file.string());
  const bool is_health = arguments.front() == "health";
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::error_code failed;
  std::filesystem::remove(file, failed);  // an earlier call may have left it
  if (failed) {
    subject.complaints.insert(fmt::format("cannot remove {}: {}", file.string(), failed.message()));
    return;
  }
  const std::chrono::duration<double> limit(profile_.seconds + (is_health ? 10 : 0));
  CommandResult result = run_launcher(words, limit);
  if (died_at_start(result, subject)) {
    say(fmt::format("accept: {}: {} is started again: {}", fmt::join(subject.nodes, " - "), what,
                    cause_in(result.errors)));
    result = run_launcher(words, limit);
  }
  try {
    if (!is_answer(result, is_health)) {
      const std::string why = cause_in(result.errors);
      if (was_refused(result)) {
        subject.refused[what] =
            fmt::format("exit code {}{}{}", result.code, why.empty() ? "" : ": ", why);
      }
      throw DataError(
          result.late ? result.complaint("no result") + ", the `seconds` of the profile"
                      : fmt::format("exit code {}{}{}", result.code, why.empty() ? "" : ": ", why));
    }
    if (is_health) {
      write_file_durably(file, result.output);
      add_health(result.output, subject);
    } else {
      const MeasuredResult answer = read_answer(file, arguments[1]);
      add_result(answer, subject);
      double& waited = subject.waited[what];
      waited = std::max(waited, answer.waited_fraction);
    }
  } catch (const Error& error) {
    subject.complaints.insert(fmt::format("{} has failed: {}", what, error.what()));
  }
}

void AcceptRunner::measure_all(const AcceptProfile::Demands& demands,
                               std::vector<AcceptSubject*> subjects, const std::string& tag) const {
  const std::size_t most = profile_.at_once == 0 ? AcceptProfile::kMostAtOnce
                                                 : static_cast<std::size_t>(profile_.at_once);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < subjects.size(); i = next++) {
        for (std::size_t m = 0; m < demands.measures.size(); ++m) {
          measure(demands.start, demands.measures[m], fmt::format("{}-{}", tag, m), *subjects[i]);
        }
      }
    } catch (const Interrupted&) {  // thrown again below, once all threads have ended
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min(most, subjects.size()); ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  throw_if_interrupted();
}

std::vector<AcceptSubject> AcceptRunner::measure_nodes(const std::vector<std::string>& nodes) {
  std::vector<AcceptSubject> subjects;
  for (const std::string& node : nodes) {
    subjects.push_back({{node}, {}, {}});
  }
  std::vector<AcceptSubject*> all;
  for (AcceptSubject& subject : subjects) {
    all.push_back(&subject);
  }
  const Stopwatch watch;
  while (rounds_ < profile_.rounds || watch.seconds() < 60 * profile_.burn_in_minutes) {
    ++rounds_;
    fmt::print(stderr, "accept: nodes, round {}, after {:.0f} s\n", rounds_, watch.seconds());
    measure_all(profile_.node, all, fmt::format("r{:02}", rounds_));
    if (rounds_ == 1) {
      for (const std::string& problem : {refused_problem(subjects, "node"),
                                         limit_problem(subjects, profile_.node, "node.limits")}) {
        if (!problem.empty()) {
          throw ConfigError(problem);
        }
      }
    }
  }
  return subjects;
}

std::vector<AcceptSubject> AcceptRunner::measure_links(const NodePairRounds& rounds,
                                                       const std::string& tag) {
  std::vector<AcceptSubject> subjects;
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    fmt::print(stderr, "accept: links, round {} of {}\n", round + 1, rounds.size());
    std::vector<AcceptSubject> now;
    for (const auto& [a, b] : rounds[round]) {
      now.push_back({{a, b}, {}, {}});
    }
    std::vector<AcceptSubject*> all;
    for (AcceptSubject& subject : now) {
      all.push_back(&subject);
    }
    measure_all(profile_.link, all, fmt::format("{}{:02}", tag, round + 1));
    std::move(now.begin(), now.end(), std::back_inserter(subjects));
  }
  return subjects;
}

}  // namespace trireme

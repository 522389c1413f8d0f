#include "src/app/command/app_context.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "src/app/command/launcher_rank.h"
#include "src/base/fault.h"
#include "src/base/floating_point.h"
#include "src/base/printable.h"
#include "src/compute/compute_threads.h"

namespace trireme {
namespace {

// Delay before other ranks than 0 report an error. Most errors occur on all ranks alike, for
// example in a file that all read; rank 0 then reports it, and its abort ends the others before
// they repeat it.
constexpr std::chrono::milliseconds kRankZeroSpeaksFirst{1000};

void arm_planned_faults() {
  const char* const plan = std::getenv("TRIREME_FAULTS");
  if (plan != nullptr) {
    const char* const attempt = std::getenv("TRIREME_GENERATION");
    arm_faults(parse_fault_plan(plan), rank_before_start(),
               attempt == nullptr ? 1 : static_cast<int>(std::strtol(attempt, nullptr, 10)));
  }
}

}  // namespace

MpiSession& AppContext::session() {
  if (session_ == nullptr) {
    arm_planned_faults();
    fault("start.init");
    session_ = std::make_unique<MpiSession>();
    restore_floating_point();  // the libraries that MPI loads may have changed it
    fault("start.joined");
  }
  return *session_;
}

int compute_threads(int wanted) {
  const ComputeThreads found = measure_compute_threads(wanted);
  for (const std::string& warning : found.warnings) {
    std::fputs(fmt::format("trireme: warning: {}\n", printable(warning)).c_str(), stderr);
  }
  return found.threads;
}

void end_with(AppContext& context, ExitCode code, std::string_view kind, const std::string& what,
              std::optional<int> at_fault) {
  if (context.progress != nullptr) {
    context.progress->note_error(static_cast<int>(code));
  }
  const bool several = context.has_session() && context.session().world().size() > 1;
  const RankPlace place = context.has_session() ? context.session().place() : RankPlace{};
  if (several && place.rank != 0) {
    std::this_thread::sleep_for(kRankZeroSpeaksFirst);
  }
  const std::string who = several ? fmt::format("rank {} on {}: ", place.rank, place.host) : "";
  std::fputs(fmt::format("trireme: {}{}\n", who, printable_lines(what)).c_str(), stderr);
  if (context.run) {
    const RankPlace blamed =
        at_fault ? context.session().places().at(static_cast<std::size_t>(*at_fault)) : place;
    context.run->write_exit_reason({static_cast<int>(code), std::string(kind), what, blamed.rank,
                                    blamed.host, 0, context.status.step, context.status.phase});
  }
  if (context.has_session()) {
    context.session().abort(code);
  }
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(code));
}

}  // namespace trireme

#include "slurm/agent/rank_watch.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "slurm/process/proc.h"
#include "src/base/stack_dump.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double seconds_since(std::int64_t ns, std::int64_t now) {
  return 1e-9 * static_cast<double>(std::max<std::int64_t>(0, now - ns));
}

// The parts of a rank's state whose change is_news() reports.
auto essence(const RankState& rank) {
  return std::tuple(rank.page.rank, rank.page.pid, rank.page.attempt, rank.gone,
                    rank.page.first_step_ns > 0, rank.page.phase == ProgressPhase::end);
}

}  // namespace

std::vector<RankState> RankWatch::look() {
  std::vector<RankState> ranks;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(progress_folder(folder_), gone)) {
    const std::string name = entry.path().filename();
    const auto page = read_progress(entry.path());
    if (!page || entry.path() != progress_file(folder_, page->rank)) {
      continue;
    }
    RankState rank;
    rank.page = *page;
    const std::int64_t now = now_ns();
    rank.age = seconds_since(page->changed_ns, now);
    rank.lived = seconds_since(page->created_ns, now);
    const auto state = process_state(static_cast<pid_t>(page->pid));
    const auto key = std::pair(page->pid, page->created_ns);
    if (state &&
        started_.try_emplace(key, state->start_ticks).first->second == state->start_ticks) {
      rank.state = state->letter;
    } else {
      rank.gone = true;
    }
    ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const RankState& a, const RankState& b) { return a.page.rank < b.page.rank; });
  return ranks;
}

void RankWatch::ask_late(const std::vector<RankState>& ranks) {
  for (const RankState& rank : ranks) {
    const Progress& page = rank.page;
    const bool late = page.deadline_seconds > 0 && rank.age > page.deadline_seconds;
    if (late && !rank.gone && asked_.emplace(page.pid, page.changes).second) {
      ask_for_stacks(static_cast<pid_t>(page.pid));
    }
  }
}

bool RankWatch::clear(std::int64_t attempt) {
  bool none_left = true;
  for (const OwnProcess& rank : processes_of_launch(launch_, node_)) {
    const std::string text = variable_of(rank.pid(), "TRIREME_GENERATION").value_or("0");
    if (std::strtoll(text.c_str(), nullptr, 10) < attempt) {
      rank.kill();
      none_left = false;
    }
  }
  return none_left;
}

bool RankWatch::clear_marked(std::int64_t attempt) {
  bool none_left = true;
  for (const MarkedProcess& marked : marked_processes(launch_)) {
    if (marked.attempt < attempt) {
      marked.process.kill();
      none_left = false;
    }
  }
  return none_left;
}

bool is_news(const std::vector<RankState>& before, const std::vector<RankState>& now) {
  return !std::equal(
      before.begin(), before.end(), now.begin(), now.end(),
      [](const RankState& a, const RankState& b) { return essence(a) == essence(b); });
}

}  // namespace trireme

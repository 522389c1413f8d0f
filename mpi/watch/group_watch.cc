#include "mpi/watch/group_watch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/base/philox.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::chrono::seconds kDumpTime{1};
// Number of culprits that are described; further ones are only counted.
constexpr int kMostCulprits = 6;

std::string whereabouts(const FlightReport& report) {
  std::string text =
      fmt::format("it has been in {} for {}", report.phase, format_seconds(report.phase_seconds));
  if (!report.waiting.empty()) {
    text += fmt::format(", waiting in {}", fmt::join(report.waiting, ", "));
  }
  return text;
}

std::string last_entered(const FlightReport& report) {
  if (!report.knows_group || report.entered < 0) {
    return "it has entered no operation of this group";
  }
  return fmt::format("the last operation of this group that it entered is {}",
                     report.last ? report.last->full_text() : fmt::format("#{}", report.entered));
}

// Describes one rank's part in the hang; empty if it just waits too.
std::string blame_rank(const OperationLabel& label, const std::string& in_full,
                       const FlightReport& report) {
  if (report.left_group) {
    return fmt::format("has left the group before {}; {}", in_full, whereabouts(report));
  }
  if (report.entered < label.number) {
    return fmt::format("never entered {}; {}; {}", in_full, whereabouts(report),
                       last_entered(report));
  }
  if (report.overdue && !agree(*report.overdue, label)) {
    return fmt::format("is in {}, not in {}: the ranks are out of step; {}",
                       report.overdue->full_text(), label.full_text(), whereabouts(report));
  }
  if (report.finished < label.number - 1) {
    return fmt::format("has queued {} behind operations that have not finished; {}", in_full,
                       whereabouts(report));
  }
  return {};
}

}  // namespace

std::string blame(const OperationLabel& label, const std::string& name, const GroupMembers& members,
                  const std::vector<std::optional<FlightReport>>& answers) {
  const std::string in_full = fmt::format("{} #{} ({}, group {})", name_of(label.kind),
                                          label.number, format_bytes(label.bytes), name);
  std::vector<std::string> culprits;
  int unnamed = 0;
  for (int rank = 0; rank < members.size(); ++rank) {
    if (rank == members.rank() || (!is_collective(label.kind) && rank != label.root)) {
      continue;
    }
    const auto at = static_cast<std::size_t>(members.world_rank(rank));
    std::string text;
    if (at >= answers.size() || !answers[at]) {
      text = fmt::format("did not answer within {}: it is stopped, or its host is gone",
                         format_seconds(static_cast<double>(GroupWatch::kPatience.count())));
    } else if (is_collective(label.kind)) {
      text = blame_rank(label, in_full, *answers[at]);
    } else {
      text = fmt::format("is at the other end; {}; {}", whereabouts(*answers[at]),
                         last_entered(*answers[at]));
    }
    if (!text.empty() && static_cast<int>(culprits.size()) < kMostCulprits) {
      culprits.push_back(fmt::format("{} {}", members.describe(rank), text));
    } else if (!text.empty()) {
      ++unnamed;
    }
  }
  if (culprits.empty()) {
    return fmt::format("every rank has entered {}", in_full);
  }
  return fmt::format("{}{}", fmt::join(culprits, "; "),
                     unnamed == 0 ? "" : fmt::format("; and {}", counted(unnamed, "more rank")));
}

GroupWatch::GroupWatch(const Watch& watch, const std::string& name, GroupMembers members)
    : watch_(watch),
      members_(std::move(members)),
      group_(watch.recorder->add_group(watch.group, name, members_.world_ranks())) {
  watch_.group = group_.id;
}

// All ranks of a group count its splits equally and so compute the same id, a different one for
// each color.
Watch GroupWatch::next_split(int color) {
  const std::uint64_t choice = ++splits_ << 32 | static_cast<std::uint32_t>(color);
  Watch watch = watch_;
  watch.group = mix64(watch_.group ^ mix64(choice));
  return watch;
}

std::string GroupWatch::find_culprits(const OperationLabel& label) {
  const std::string name = fmt::format("{} {}", group_.name, compact_ranks(group_.members));
  FlightQuestion question;
  question.asker = watch_.recorder->rank();
  question.group = group_.id;
  question.number = is_collective(label.kind) ? label.number : -1;
  question.why = fmt::format("rank {} has waited for {} of group {} beyond its deadline",
                             question.asker, label.text(), name);
  watch_.recorder->dump_in_background(question.why);
  std::string text;
  if (watch_.inquiry != nullptr) {
    text = blame(label, name, members_, watch_.inquiry->ask(question, kPatience));
  }
  (void)watch_.recorder->wait_for_dump(kDumpTime);
  return text;
}

}  // namespace trireme

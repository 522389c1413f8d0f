#include "slurm/policy/verdict.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <iterator>

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 16> kNames = {
    "finished",      "stopped",    "usage",         "numerics",     "data",   "not_found",
    "refused",       "node_death", "out_of_memory", "hang",         "device", "io",
    "process_death", "early_exit", "start",         "communication"};

int number_of(ExitCode code) { return static_cast<int>(code); }

// Returns the cause that an exit code of docs/exit-codes.md stands for.
std::optional<Cause> cause_of(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::usage:
      return Cause::usage;
    case ExitCode::diverged:
      return Cause::numerics;
    case ExitCode::bad_data:
      return Cause::data;
    case ExitCode::not_found:
      return Cause::not_found;
    case ExitCode::refused:
      return Cause::refused;
    case ExitCode::requeue:
      return Cause::stopped;
    case ExitCode::device:
      return Cause::device;
    case ExitCode::io:
      return Cause::io;
    case ExitCode::hang:
      return Cause::communication;
    default:
      return std::nullopt;
  }
}

std::string describe(const StatedReason& reason) {
  return fmt::format("rank {} on {}, {} at step {}: {}", reason.rank, reason.host, reason.phase,
                     reason.step, joined_lines(reason.message));
}

std::string describe(const std::vector<GoneRank>& gone) {
  std::string text;
  for (std::size_t i = 0; i < gone.size() && i < 4; ++i) {
    text += fmt::format("{}rank {} on {}", text.empty() ? "" : ", ", gone[i].rank, gone[i].node);
  }
  return gone.size() > 4 ? fmt::format("{} and {} more", text, gone.size() - 4) : text;
}

// Returns the ranks whose deaths explain the others: those that did not report a lost peer, or all
// of them if there is no such rank.
std::vector<GoneRank> first_to_die(const std::vector<GoneRank>& gone) {
  std::vector<GoneRank> first;
  std::copy_if(gone.begin(), gone.end(), std::back_inserter(first),
               [](const GoneRank& rank) { return rank.exit_code != number_of(ExitCode::hang); });
  return first.empty() ? gone : first;
}

// Describes stopped ranks first, because the others wait for them.
std::string describe(const std::vector<StaleRank>& stale) {
  std::string text;
  int reported = 0;
  for (const bool stopped : {true, false}) {
    for (const StaleRank& rank : stale) {
      if ((rank.state == 'T' || rank.state == 't') == stopped && reported++ < 4) {
        text += fmt::format(
            "{}rank {} on {} ({} at step {}, no change for {:.0f} s, deadline {:.0f} s{})",
            text.empty() ? "" : ", ", rank.rank, rank.node, rank.phase, rank.step, rank.age,
            rank.deadline, stopped ? "; the process is stopped" : "");
      }
    }
  }
  return text;
}

// Returns the first of the gone ranks that recorded an exit code on its progress page.
const GoneRank* first_with_code(const Evidence& evidence) {
  const auto found = std::find_if(evidence.gone.begin(), evidence.gone.end(),
                                  [](const GoneRank& rank) { return rank.exit_code != 0; });
  return found == evidence.gone.end() ? nullptr : &*found;
}

std::string launcher_text(const Evidence& evidence) {
  if (!evidence.launcher_code) {
    return "the launcher was killed";
  }
  const int code = *evidence.launcher_code;
  return code > 128 && code < 128 + 65
             ? fmt::format("the launcher exited with code {} (signal {}, {})", code, code - 128,
                           ::strsignal(code - 128))
             : fmt::format("the launcher exited with code {}", code);
}

// Returns the verdict that the run itself has reported, if that is conclusive.
std::optional<Verdict> stated(const Evidence& evidence) {
  if (evidence.reason) {
    const auto cause = cause_of(evidence.reason->code);
    if (cause && *cause != Cause::communication) {
      const bool memory = evidence.reason->kind == "memory" ||
                          evidence.reason->message.starts_with("out of memory");
      return Verdict{memory ? Cause::out_of_memory : *cause,
                     evidence.reason->code,
                     describe(*evidence.reason),
                     {}};
    }
    return std::nullopt;
  }
  // Without exit_reason.json, rely on exit codes: the run may not have had its folder yet, or its
  // disk may be full.
  if (const GoneRank* const rank = first_with_code(evidence)) {
    const auto cause = cause_of(rank->exit_code);
    if (cause && (is_final(*cause) || *cause == Cause::io)) {
      return Verdict{*cause,
                     rank->exit_code,
                     fmt::format("rank {} on {} exited with code {}; its output says why",
                                 rank->rank, rank->node, rank->exit_code),
                     {}};
    }
  }
  if (evidence.launcher_code && !evidence.killed_launcher && evidence.gone.empty()) {
    const auto cause = cause_of(*evidence.launcher_code);
    if (cause && (is_final(*cause) || *cause == Cause::io)) {
      return Verdict{*cause, *evidence.launcher_code, launcher_text(evidence), {}};
    }
  }
  return std::nullopt;
}

std::vector<std::string> nodes_of(const std::vector<StaleRank>& stale) {
  std::vector<std::string> nodes;
  for (const StaleRank& rank : stale) {
    if (rank.state == 'T' || rank.state == 't') {
      nodes.push_back(rank.node);
    }
  }
  return nodes;
}

// Describes a stop of which no rank has reported that it saved.
std::string unsaved_stop(const Evidence& e) {
  std::string text = "on request";
  if (e.end_signal != 0) {
    const char* const name = ::sigabbrev_np(e.end_signal);
    text = fmt::format("not saved: a second signal ({}) ended the ranks at once",
                       name == nullptr ? std::to_string(e.end_signal) : fmt::format("SIG{}", name));
  } else if (e.step >= 0) {
    text += ", but the ranks ended without reporting a save";
  }
  if (e.step < 0) {
    return text;
  }
  text += fmt::format("; the last step was {}, ", e.step);
  if (e.durable_step < 0) {
    return text + "and there is no checkpoint: the next start begins at step 0";
  }
  const std::int64_t lost = std::max<std::int64_t>(e.step - e.durable_step, 0);
  return text + fmt::format("the newest checkpoint is step {}: {} lost", e.durable_step,
                            lost == 1 ? "1 step is" : fmt::format("{} steps are", lost));
}

// Returns the verdict that follows from observations, if the run has not reported a conclusive one.
Verdict seen(const Evidence& e) {
  const int device = number_of(ExitCode::device);
  const int hang = number_of(ExitCode::hang);
  if (!e.lost_nodes.empty()) {
    std::string names;
    for (const std::string& node : e.lost_nodes) {
      names += (names.empty() ? "" : ", ") + node;
    }
    return {Cause::node_death, device, fmt::format("lost: {}", names), e.lost_nodes};
  }
  const bool killed = !e.gone.empty() || e.launcher_code == 128 + SIGKILL;
  if (e.oom_kills > 0 && killed) {
    return {Cause::out_of_memory,
            device,
            fmt::format("the kernel ran out of memory and killed {}",
                        e.gone.empty() ? "a process" : describe(first_to_die(e.gone))),
            {}};
  }
  if (!e.stale.empty()) {
    return {Cause::hang, hang, fmt::format("no progress: {}", describe(e.stale)),
            nodes_of(e.stale)};
  }
  if (e.reason && e.reason->kind == "hang") {
    return {Cause::hang, hang, describe(*e.reason), {}};
  }
  if (const std::vector<GoneRank> first = first_to_die(e.gone); !first.empty()) {
    return {Cause::process_death,
            device,
            fmt::format("{} died; {}", describe(first), launcher_text(e)),
            {first.front().node}};
  }
  if (e.launcher_code == 0) {
    return {
        Cause::early_exit, device, "the ranks exited with code 0 before the run had finished", {}};
  }
  if (e.reason) {
    return {Cause::communication, hang, describe(*e.reason), {}};
  }
  if (!e.all_ranks_seen) {
    return {Cause::start, device, fmt::format("not all ranks started; {}", launcher_text(e)), {}};
  }
  return {Cause::process_death, device, launcher_text(e), {}};
}

}  // namespace

std::string_view name_of(Cause cause) { return kNames.at(static_cast<std::size_t>(cause)); }

std::optional<StatedReason> parse_exit_reason(const std::string& text) {
  try {
    const nlohmann::json object = parse_json(text);
    return StatedReason{.code = static_cast<int>(count_field(object, "code", 0, 255)),
                        .kind = text_field(object, "kind"),
                        .message = text_field(object, "message"),
                        .rank = static_cast<int>(count_field(object, "rank", 0, 1 << 24)),
                        .host = text_field(object, "host"),
                        .step = count_field(object, "step"),
                        .phase = text_field(object, "phase")};
  } catch (const DataError&) {
    return std::nullopt;
  }
}

bool is_final(Cause cause) { return cause <= Cause::refused; }

Verdict judge(const Evidence& evidence) {
  if (evidence.done) {
    return {Cause::finished, 0, "all steps are done", {}};
  }
  const std::optional<Verdict> verdict = stated(evidence);
  if (verdict && is_final(verdict->cause)) {
    return *verdict;
  }
  if (evidence.stop_asked) {
    // The requested save may have failed or exist only in memory, which is lost with the launch, so
    // the code must not claim that it was saved.
    if (verdict && verdict->cause == Cause::io) {
      return {Cause::stopped, verdict->code, verdict->what, {}};
    }
    const int code =
        evidence.end_signal != 0 ? 128 + evidence.end_signal : number_of(ExitCode::requeue);
    return {Cause::stopped, code, unsaved_stop(evidence), {}};
  }
  return verdict && evidence.lost_nodes.empty() ? *verdict : seen(evidence);
}

}  // namespace trireme

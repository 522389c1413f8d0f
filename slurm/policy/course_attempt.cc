// Implements the part of Course from the start of the ranks to the verdict on their end.
#include <algorithm>
#include <csignal>
#include <utility>

#include "slurm/policy/course.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

double seconds(std::int64_t ns) { return 1e-9 * static_cast<double>(ns); }

// Returns what the account needs to know about rank 0.
nlohmann::json json_of(const RankState& rank) {
  nlohmann::json spent;
  for (std::size_t i = 0; i < kProgressPhases; ++i) {
    spent[std::string(name_of(static_cast<ProgressPhase>(i)))] = seconds(rank.page.spent_ns[i]);
  }
  return {{"phase", name_of(rank.page.phase)},
          {"begun_at", rank.page.begun_at},
          {"step", rank.page.step},
          {"spent", spent},
          {"age", rank.age},
          {"lived", rank.lived}};
}

}  // namespace

void Course::look_at_ranks(const Node& node) {
  for (const RankState& rank : node.report.ranks) {
    if (rank.page.attempt == attempt_.number) {
      if (rank.page.rank == 0) {
        look_at_first_rank(rank);
      }
      if (rank.gone) {
        note_gone(node, rank);
      }
    }
  }
  end_if_stale();
}

void Course::look_at_first_rank(const RankState& rank) {
  attempt_.first_rank = json_of(rank);
  attempt_.first_rank["seen"] = now_;
  if (!attempt_.first_step_seen && rank.page.first_step_ns > 0) {
    attempt_.first_step_seen = true;
    longest_start_ =
        std::max(longest_start_,
                 seconds(rank.page.spent_ns[static_cast<std::size_t>(ProgressPhase::start)]));
    const double ago = rank.age + seconds(rank.page.changed_ns - rank.page.first_step_ns);
    const double after = now_ - ago - attempt_.launched;
    note("first_step",
         {{"attempt", attempt_.number},
          {"from", rank.page.begun_at},
          {"after_launch", after},
          {"rank0", attempt_.first_rank}},
         fmt::format("attempt {}: started at step {}; first step finished after {:.1f} s",
                     attempt_.number, rank.page.begun_at, after));
  }
}

void Course::note_gone(const Node& node, const RankState& rank) {
  const bool known = std::any_of(attempt_.evidence.gone.begin(), attempt_.evidence.gone.end(),
                                 [&](const GoneRank& g) { return g.rank == rank.page.rank; });
  if (known || stage_ != Stage::run || attempt_.killed || rank.page.phase == ProgressPhase::end) {
    return;
  }
  attempt_.evidence.gone.push_back({node.spec.name, rank.page.rank, rank.page.exit_code});
  attempt_.detected = attempt_.detected.value_or(now_);
  if (!attempt_.first_gone) {
    attempt_.first_gone = now_;
    note("rank_gone",
         {{"attempt", attempt_.number},
          {"node", node.spec.name},
          {"rank", rank.page.rank},
          {"step", rank.page.step},
          {"phase", name_of(rank.page.phase)}},
         fmt::format("rank {} on {} exited; waiting for {} to finish", rank.page.rank,
                     node.spec.name, plan_.launcher));
  }
}

// A stopped rank waits for neither a disk nor a peer. When a suspended job continues, an agent may
// briefly see its ranks still stopped and long without progress; they count only if they stay so.
bool Course::stays_stopped(const RankState& rank) {
  constexpr double kStaysSeconds = 5;
  if (rank.state != 'T') {
    attempt_.stopped_since.erase(rank.page.rank);
    return false;
  }
  const double since = attempt_.stopped_since.try_emplace(rank.page.rank, now_).first->second;
  return rank.age > plan_.stopped && now_ - since > kStaysSeconds;
}

void Course::end_if_stale() {
  if (stage_ != Stage::run || attempt_.killed) {
    return;
  }
  for (const auto& [node, rank] : ranks_seen()) {
    const Progress& page = rank.page;
    const bool is_late = rank.age > page.deadline_seconds + plan_.hang_slack;
    if (!rank.gone && page.deadline_seconds > 0 && (is_late || stays_stopped(rank))) {
      attempt_.evidence.stale.push_back({node.spec.name, page.rank, page.step,
                                         std::string(name_of(page.phase)), rank.age,
                                         page.deadline_seconds, rank.state});
    }
  }
  if (!attempt_.evidence.stale.empty()) {
    end_attempt("no progress before the deadline; stacks: logs/rank-*.stack of the run's folder");
  }
}

void Course::watch_attempt() {
  const int expected = static_cast<int>(attempt_.nodes.size()) * plan_.ranks_per_node;
  const auto seen = static_cast<int>(ranks_seen().size());
  const bool are_there = attempt_.evidence.all_ranks_seen;
  attempt_.evidence.all_ranks_seen = are_there || seen >= expected;
  note_status();
  if (attempt_.killed) {
    watch_the_end();
    return;
  }
  if (stop_signal_ != 0 && attempt_.evidence.all_ranks_seen && !are_there) {
    out_.emplace_back(SignalRanks{SIGUSR2});  // to reach ranks that had not started before
  }
  if (!attempt_.evidence.all_ranks_seen && now_ - attempt_.waits_since > plan_.ranks_start) {
    end_attempt(fmt::format("only {} of {} ranks started within {:.0f} s", seen, expected,
                            plan_.ranks_start));
  } else if (attempt_.first_gone && now_ - *attempt_.first_gone > grace()) {
    end_attempt(fmt::format("a rank exited {:.1f} s ago and {} has not ended",
                            now_ - *attempt_.first_gone, plan_.launcher));
  } else {
    watch_launcher();
  }
}

// Returns how long to wait for the launcher after a rank is gone. A killed rank reports nothing,
// and the launcher's end brings no news: mpirun ends the other ranks a second after the first, and
// itself a second later. Ending them earlier also keeps mpirun's victims from being taken for the
// cause. The same holds if a node has lost its agent, as the ranks of other nodes report only that
// their peers are gone. Any other error is still to be written to exit_reason.json.
double Course::grace() const {
  const bool is_sudden = std::all_of(attempt_.evidence.gone.begin(), attempt_.evidence.gone.end(),
                                     [](const GoneRank& rank) { return rank.exit_code == 0; });
  const bool lacks_an_agent =
      std::any_of(attempt_.nodes.begin(), attempt_.nodes.end(),
                  [&](std::size_t i) { return nodes_[i].standing != Standing::ready; });
  return is_sudden || lacks_an_agent ? plan_.sudden_grace : plan_.launcher_grace;
}

// Records rank 0's progress for the account in case this process is killed. At most a tenth of the
// attempt is then missing, and at most half a minute.
void Course::note_status() {
  const double interval = std::clamp(0.1 * (now_ - attempt_.launched), 1.0, 30.0);
  if (now_ - attempt_.status_at > interval && !attempt_.first_rank.is_null()) {
    attempt_.status_at = now_;
    note("status", {{"attempt", attempt_.number}, {"rank0", attempt_.first_rank}});
  }
}

// Ends an attempt whose launcher outlives its ranks. The limit is short after a stop was requested,
// because a cancelled job has only seconds left while mpirun waits for daemons that Slurm has
// ended.
void Course::watch_launcher() {
  attempt_.all_gone = ranks_are_over() ? attempt_.all_gone.value_or(now_) : std::optional<double>();
  const double limit = stop_signal_ != 0 ? plan_.launcher_grace : plan_.launcher_end;
  if (attempt_.all_gone && now_ - *attempt_.all_gone > limit) {
    end_attempt(fmt::format("all ranks have ended, but {} has not", plan_.launcher));
  }
}

// A process that hangs in the kernel cannot be killed, and must not delay the others.
void Course::watch_the_end() {
  if (now_ - *attempt_.killed > plan_.killed_end) {
    attempt_.killed = now_;
    note("launcher_left", {{"attempt", attempt_.number}},
         fmt::format(
             "{} was killed {:.0f} s ago, but still exists: continuing without waiting for it",
             plan_.launcher, plan_.killed_end));
    out_.emplace_back(LeaveLauncher{});
  }
}

// If the old ranks ever continue, the lock and generation of the checkpoint folder keep them from
// writing. The cause may be the file system, on all nodes, so no node is put on the site list.
void Course::give_up_old_ranks() {
  if (now_ - *attempt_.settling <= plan_.old_ranks_end) {
    return;
  }
  for (Node* const node : used_nodes()) {
    if (node->standing == Standing::ready && node->report.cleared <= attempt_.number) {
      lose(*node,
           fmt::format("ranks that were killed {:.0f} s ago still exist", plan_.old_ranks_end),
           false);
    }
  }
}

// Kills the launcher and makes the agents end the ranks. The launcher's end arrives as an event.
void Course::end_attempt(const std::string& why) {
  attempt_.killed = now_;
  attempt_.detected = attempt_.detected.value_or(now_);
  attempt_.evidence.killed_launcher = true;
  note("end_attempt", {{"attempt", attempt_.number}, {"why", why}}, "ending the attempt: " + why);
  for (const Node* node : used_nodes()) {
    out_.emplace_back(ClearNode{node->spec.name, attempt_.number + 1});
  }
  out_.emplace_back(KillRanks{});
}

void Course::on_launcher_ended(const LauncherEnded& event) {
  if (stage_ != Stage::run) {
    return;
  }
  attempt_.evidence.launcher_code = event.code;
  attempt_.evidence.reason = event.reason;
  attempt_.evidence.done = event.done;
  attempt_.evidence.stop_asked = stop_signal_ != 0;
  if (!attempt_.first_rank.is_null()) {
    // The ranks may have gone on since their agents reported.
    attempt_.evidence.step =
        std::max(attempt_.first_rank.at("step").get<std::int64_t>(), event.logged_step);
    attempt_.first_rank["step"] = attempt_.evidence.step;
  }
  attempt_.evidence.durable_step = event.durable.step;
  on_disk_ = event.durable;
  newest_ = std::max(newest_, event.durable);
  attempt_.detected = attempt_.detected.value_or(now_);
  stage_ = Stage::settle;
  attempt_.settling = now_;
  note("launcher_ended", {{"attempt", attempt_.number},
                          {"code", event.code ? nlohmann::json(*event.code) : nullptr}});
  const Verdict verdict = judge(attempt_.evidence);
  if (is_final(verdict.cause)) {
    conclude(verdict);
    return;
  }
  for (const Node* node : used_nodes()) {
    if (node->standing == Standing::ready) {
      out_.emplace_back(ClearNode{node->spec.name, attempt_.number + 1});
    }
  }
}

void Course::try_to_conclude() {
  attempt_.evidence.lost_nodes.clear();
  attempt_.evidence.oom_kills = 0;
  for (const Node* node : used_nodes()) {
    if (node->standing == Standing::lost || node->standing == Standing::excluded) {
      attempt_.evidence.lost_nodes.push_back(node->spec.name);
    } else if (node->standing == Standing::starting || node->report.cleared <= attempt_.number) {
      return;
    }
    attempt_.evidence.oom_kills += node->report.oom_kills - node->oom_kills_before;
    newest_ = std::max(newest_, node->report.memory_step);
  }
  conclude(judge(attempt_.evidence));
}

// After a rewind, a run may newly save an earlier step, which is progress. Saving the same step
// again is not.
bool Course::has_progressed() const {
  return newest_ > newest_before_ && newest_.step != newest_before_.step;
}

void Course::conclude(const Verdict& verdict) {
  note_attempt(verdict);
  if (is_final(verdict.cause)) {
    finish(verdict.code, verdict.what, fmt::format("{}: {}", name_of(verdict.cause), verdict.what));
    return;
  }
  if (verdict.cause == Cause::out_of_memory && ++memory_deaths_ > plan_.most_memory_deaths) {
    finish(static_cast<int>(ExitCode::usage),
           fmt::format("out of memory {}: use a smaller train.micro_batch, more nodes, "
                       "parallel.zero=3 or fewer ranks per node; {}",
                       counted(memory_deaths_, "time"), verdict.what));
    return;
  }
  if (has_progressed()) {
    relaunches_without_progress_ = 0;
    last_was_io_ = false;
  }
  const bool was_io = std::exchange(last_was_io_, verdict.cause == Cause::io);
  if (was_io && last_was_io_) {  // a full disk stays full: a third attempt would repeat the work
    finish(verdict.code, fmt::format("I/O errors ended two attempts in a row, and no checkpoint "
                                     "was saved between them: {}",
                                     verdict.what));
    return;
  }
  if (relaunches_without_progress_ >= plan_.most_relaunches) {
    finish(static_cast<int>(ExitCode::no_progress),
           fmt::format("{} brought no new checkpoint: giving up; the last attempt ended with: {}",
                       counted(relaunches_without_progress_, "relaunch"), verdict.what));
    return;
  }
  ++relaunches_without_progress_;
  exclude_suspects(verdict);
  stage_ = Stage::gather;
  enough_since_ = -1;
}

// Excludes nodes after a device fault, or after the second death of a rank, as long as there are
// spares.
void Course::exclude_suspects(const Verdict& verdict) {
  std::vector<std::string> names = verdict.nodes;
  const bool device = verdict.cause == Cause::device && attempt_.evidence.reason.has_value();
  if (device) {
    names.push_back(node_of_rank(attempt_.evidence.reason->rank));
  }
  for (const std::string& name : names) {
    Node* const node = find(name);
    const bool spare = with(Standing::ready).size() > attempt_.nodes.size();
    if (node != nullptr && node->standing == Standing::ready &&
        (++node->rank_deaths >= 2 || device) && spare) {
      out_.emplace_back(BlameNode{name, verdict.what});
      exclude(*node, verdict.what);
    }
  }
}

// Returns the node on which the rank's page was seen, since Slurm places ranks in an order of its
// own. Without a page, the order of the nodes is assumed; the result is "" if there is no such
// rank.
std::string Course::node_of_rank(int rank) const {
  for (const auto& [node, state] : ranks_seen()) {
    if (state.page.rank == rank) {
      return node.spec.name;
    }
  }
  const auto place = static_cast<std::size_t>(rank / plan_.ranks_per_node);
  return place < attempt_.nodes.size() ? nodes_[attempt_.nodes[place]].spec.name : "";
}

void Course::note_attempt(const Verdict& verdict) {
  nlohmann::json fields = {{"attempt", attempt_.number},    {"cause", name_of(verdict.cause)},
                           {"code", verdict.code},          {"what", verdict.what},
                           {"launched", attempt_.launched}, {"detected", attempt_.detected.value()},
                           {"durable_step", newest_.step}};
  if (!attempt_.first_rank.is_null()) {
    fields["rank0"] = attempt_.first_rank;
  }
  // The end of the launch repeats a final verdict.
  note("attempt_end", std::move(fields),
       is_final(verdict.cause) ? ""
                               : fmt::format("attempt {} ended: {}: {}", attempt_.number,
                                             name_of(verdict.cause), verdict.what));
}

std::vector<Course::Node*> Course::used_nodes() {
  std::vector<Node*> found;
  for (const std::size_t i : attempt_.nodes) {
    found.push_back(&nodes_[i]);
  }
  return found;
}

std::vector<Course::SeenRank> Course::ranks_seen() const {
  std::vector<SeenRank> seen;
  for (const std::size_t i : attempt_.nodes) {
    for (const RankState& rank : nodes_[i].report.ranks) {
      if (rank.page.attempt == attempt_.number) {
        seen.push_back({nodes_[i], rank});
      }
    }
  }
  return seen;
}

bool Course::ranks_are_over() const {
  const std::vector<SeenRank> seen = ranks_seen();
  return attempt_.evidence.all_ranks_seen &&
         std::all_of(seen.begin(), seen.end(),
                     [](const SeenRank& rank) { return rank.state.gone; });
}

}  // namespace trireme

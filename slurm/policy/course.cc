#include "slurm/policy/course.h"

#include <algorithm>
#include <csignal>

#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/base/overloaded.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr int kMostAgentDeaths = 3;
constexpr double kLongestTurn = 2;  // seconds between two events; ticks come every 0.1 s

}  // namespace

Course::Course(CoursePlan plan, const std::vector<NodeSpec>& nodes,
               const std::map<std::string, std::string>& excluded)
    : plan_(std::move(plan)) {
  for (const NodeSpec& spec : nodes) {
    Node node;
    node.spec = spec;
    if (const auto found = excluded.find(spec.name); found != excluded.end()) {
      node.standing = Standing::excluded;
      node.why = found->second;
    }
    nodes_.push_back(node);
  }
}

Actions Course::on(const Event& event, double now) {
  if (now - now_ > kLongestTurn) {
    leave_out(now - now_);
  }
  now_ = now;
  out_.clear();
  if (stage_ != Stage::over) {
    std::visit(
        Overloaded{[&](const Started& e) {
                     newest_ = newest_at_first_ = on_disk_ = e.durable;
                     for (Node& node : nodes_) {
                       node.since = now_;
                       if (node.standing == Standing::starting) {
                         out_.emplace_back(StartAgent{node.spec.name, true});
                       } else {
                         note("excluded", {{"node", node.spec.name}, {"why", node.why}},
                              node.spec.name + " is left out: " + node.why);
                       }
                     }
                   },
                   [&](const AgentHeard& e) { on_heard(e); },
                   [&](const AgentLost& e) { on_lost(e); },
                   [&](const LauncherEnded& e) { on_launcher_ended(e); },
                   [&](const StopAsked& e) { on_stop(e.signal); }, [&](const Tick&) { on_tick(); }},
        event);
    if (stage_ == Stage::settle) {
      try_to_conclude();
    }
    if (stage_ == Stage::gather) {
      try_to_launch();
    }
  }
  return std::exchange(out_, {});
}

// The caller was stopped or blocked on a file system for `gap` seconds. Messages that arrived
// meanwhile have not been read yet, so the limits must not count that time.
void Course::leave_out(double gap) {
  for (Node& node : nodes_) {
    node.heard += gap;
    node.since += gap;
  }
  for (auto& [rank, since] : attempt_.stopped_since) {
    since += gap;
  }
  for (std::optional<double>* const since :
       {&enough_since_, &attempt_.first_gone, &attempt_.all_gone, &attempt_.killed,
        &attempt_.settling}) {
    if (*since) {
      **since += gap;
    }
  }
  attempt_.waits_since += gap;
}

// ---- Agents and nodes

void Course::on_heard(const AgentHeard& event) {
  Node* const node = find(event.node);
  if (node == nullptr || node->standing == Standing::lost || node->standing == Standing::excluded) {
    out_.emplace_back(DropAgent{event.node});
    return;
  }
  node->heard = now_;
  node->report = event.report;
  if (node->standing == Standing::starting && event.report.settled) {
    if (!event.report.healthy) {
      out_.emplace_back(BlameNode{node->spec.name, event.report.trouble});
      exclude(*node, "its health check failed: " + event.report.trouble);
      return;
    }
    node->standing = Standing::ready;
    node->was_ready = true;
    node->since = now_;
    note("agent_ready", {{"node", node->spec.name}});
    if (in_use(*node) && (stage_ == Stage::settle || attempt_.killed)) {
      // The agent connected too late to receive the order to clear the node.
      out_.emplace_back(ClearNode{node->spec.name, attempt_.number + 1});
    }
  }
  if (in_use(*node) && stage_ != Stage::gather) {
    look_at_ranks(*node);
  }
}

// An agent may die without its node. It is then restarted, without any effect on the ranks.
void Course::on_lost(const AgentLost& event) {
  Node* const node = find(event.node);
  if (node == nullptr || node->standing == Standing::lost || node->standing == Standing::excluded) {
    return;
  }
  if (node->standing == Standing::starting || ++node->agent_deaths > kMostAgentDeaths) {
    lose(*node, event.why);
    return;
  }
  node->standing = Standing::starting;
  node->since = now_;
  node->report.cleared = 0;
  note("agent_lost", {{"node", node->spec.name}, {"why", event.why}},
       fmt::format("lost the agent on {} ({}): starting another", node->spec.name, event.why));
  out_.emplace_back(StartAgent{node->spec.name, false});
}

void Course::lose(Node& node, const std::string& why, bool blame) {
  node.standing = Standing::lost;
  node.since = now_;
  node.why = why;
  out_.emplace_back(DropAgent{node.spec.name});
  if (blame) {
    out_.emplace_back(BlameNode{node.spec.name, why});
  }
  note("node_lost", {{"node", node.spec.name}, {"why", why}, {"in_use", in_use(node)}},
       fmt::format("{} is lost: {}", node.spec.name, why));
  if (stage_ == Stage::run && in_use(node) && !attempt_.killed) {
    end_attempt("its node " + node.spec.name + " is lost");
  }
}

void Course::exclude(Node& node, const std::string& why) {
  node.standing = Standing::excluded;
  node.since = now_;
  node.why = why;
  out_.emplace_back(DropAgent{node.spec.name});
  note("excluded", {{"node", node.spec.name}, {"why", why}},
       fmt::format("{} is left out from now on: {}", node.spec.name, why));
}

// Returns how long a node may be without an agent. The limit is short if the ranks are dead anyway
// and other nodes can take over, since the node is probably dead as well.
double Course::agent_limit(const Node& node) const {
  if (!node.was_ready) {
    return plan_.agents_start;
  }
  const bool ends_anyway = stage_ != Stage::run || attempt_.killed || attempt_.first_gone;
  const bool others_are_enough = std::ssize(with(Standing::ready)) >= plan_.nodes_wanted;
  return ends_anyway && others_are_enough ? plan_.replaceable : plan_.agent_restart;
}

void Course::look_at_limits() {
  for (Node& node : nodes_) {
    const double limit = agent_limit(node);
    if (node.standing == Standing::starting && now_ - node.since > limit) {
      lose(node, fmt::format("no agent came up there within {:.0f} s", limit));
    } else if (node.standing == Standing::ready && now_ - node.heard > plan_.silence) {
      lose(node, fmt::format("no heartbeat for {:.0f} s", plan_.silence));
    }
  }
}

void Course::on_stop(int signal) {
  // Slurm signals the whole job, and the job script passes this on with a signal of its own.
  constexpr double kSameEvent = 5;
  if (stop_signal_ != 0 && signal != stop_signal_ && now_ - stop_at_ < kSameEvent) {
    return;
  }
  const bool again = stop_signal_ != 0;
  note("stop_asked", {{"signal", signal}},
       again ? "asked to stop again: ending the ranks at once, without waiting for a save"
             : "asked to stop: the ranks save a checkpoint first");
  stop_signal_ = signal;
  stop_at_ = now_;
  if (stage_ == Stage::settle) {
    attempt_.evidence.stop_asked = true;
    conclude(judge(attempt_.evidence));
  } else if (stage_ != Stage::run) {
    finish(static_cast<int>(ExitCode::requeue), attempt_.number > 0
                                                    ? "stopped between two attempts"
                                                    : "stopped before the ranks had started");
  } else if (attempt_.killed) {
    // The attempt is about to end anyway.
  } else if (again) {
    attempt_.evidence.end_signal = signal;
    end_attempt("asked twice to stop");
  } else if (ranks_seen().empty() && newest_ <= on_disk_) {
    end_attempt("asked to stop before any rank had started");
    // Otherwise the ranks are signalled once they have started, to save what is only in memory.
  } else if (!ranks_seen().empty()) {
    out_.emplace_back(SignalRanks{SIGUSR2});
  }
}

void Course::on_tick() {
  look_at_limits();
  if (stage_ == Stage::run) {
    watch_attempt();
  } else if (stage_ == Stage::settle) {
    give_up_old_ranks();
  }
}

// ---- Choice of nodes

std::string Course::too_few_nodes(std::int64_t ready) const {
  const std::string usable =
      fmt::format("{} of {} usable", ready, counted(std::ssize(nodes_), "node"));
  if (ready >= plan_.least_nodes) {
    return fmt::format(
        "{}, and the run's layout (parallel.*) fits no number of nodes from {} to {}", usable,
        plan_.least_nodes, ready);
  }
  return fmt::format("{}, at least {} needed{}", usable, plan_.least_nodes,
                     plan_.least_nodes == plan_.nodes_wanted
                         ? " (--min-nodes allows fewer, --spares keeps some in reserve)"
                         : "");
}

void Course::try_to_launch() {
  const std::vector<std::size_t> ready = with(Standing::ready);
  const bool waiting = !with(Standing::starting).empty();
  const bool enough = static_cast<int>(ready.size()) >= plan_.nodes_wanted;
  enough_since_ = enough ? enough_since_.value_or(now_) : std::optional<double>();
  if (waiting && (!enough || now_ - *enough_since_ < plan_.enough_nodes)) {
    return;
  }
  const int count = choose_count(static_cast<int>(ready.size()), plan_.nodes_wanted,
                                 plan_.least_nodes, plan_.fits);
  if (count == 0) {
    // A requeue brings new nodes. It makes sense if the nodes worked before; nodes that were never
    // fit may never be.
    const bool were_at_work = plan_.in_slurm && attempt_.number > 0;
    const ExitCode code = were_at_work ? ExitCode::requeue : ExitCode::device;
    finish(static_cast<int>(code), too_few_nodes(std::ssize(ready)));
    return;
  }
  std::vector<std::size_t> chosen = ready;
  // Prefer nodes that were in use, because of the checkpoints in their memory.
  std::stable_partition(chosen.begin(), chosen.end(),
                        [&](std::size_t i) { return in_use(nodes_[i]); });
  chosen.resize(static_cast<std::size_t>(count));
  launch(chosen);
}

void Course::launch(const std::vector<std::size_t>& chosen) {
  attempt_ = {.number = attempt_.number + 1,
              .nodes = chosen,
              .launched = now_,
              .waits_since = now_,
              .status_at = now_};
  std::vector<NodeSpec> specs;
  std::vector<std::string> names;
  nlohmann::json groups = nlohmann::json::array();
  for (const std::size_t i : attempt_.nodes) {
    specs.push_back(nodes_[i].spec);
    names.push_back(nodes_[i].spec.name);
    groups.push_back(nodes_[i].spec.group);
    nodes_[i].agent_deaths = 0;
    nodes_[i].oom_kills_before = nodes_[i].report.oom_kills;
  }
  newest_before_ = newest_;
  stage_ = Stage::run;
  const std::size_t ranks = attempt_.nodes.size() * static_cast<std::size_t>(plan_.ranks_per_node);
  note("launch",
       {{"attempt", attempt_.number}, {"nodes", names}, {"groups", groups}, {"ranks", ranks}},
       fmt::format(
           "attempt {}: {} on {}{}", attempt_.number,
           counted(static_cast<std::int64_t>(ranks), "rank"), fmt::join(names, ", "),
           static_cast<int>(attempt_.nodes.size()) < plan_.nodes_wanted
               ? fmt::format(", {} fewer than asked for",
                             counted(plan_.nodes_wanted - std::ssize(attempt_.nodes), "node"))
               : ""));
  const std::vector<int> partners = partners_of(specs);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const int partner = partners[i];
    out_.emplace_back(SetPartner{specs[i].name,
                                 partner < 0 ? "" : specs[static_cast<std::size_t>(partner)].name});
  }
  const double deadline = longest_start_ > 0 ? std::clamp(plan_.start_factor * longest_start_,
                                                          plan_.least_start, plan_.most_start)
                                             : 0;
  out_.emplace_back(LaunchRanks{attempt_.number, specs, deadline,
                                newest_.generation > newest_at_first_.generation});
}

void Course::finish(int code, const std::string& why, std::string text) {
  stage_ = Stage::over;
  note("over", {{"code", code}}, text.empty() ? why : std::move(text));
  Finish order{.code = code, .why = why};
  if (!attempt_.first_rank.is_null()) {
    order.step = attempt_.first_rank.at("step");
    order.phase = attempt_.first_rank.at("phase");
  }
  out_.emplace_back(std::move(order));
}

// ---- Small functions

void Course::note(std::string event, nlohmann::json fields, std::string text) {
  out_.emplace_back(Note{std::move(event), std::move(fields), std::move(text)});
}

Course::Node* Course::find(const std::string& name) {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [&](const Node& node) { return node.spec.name == name; });
  return found == nodes_.end() ? nullptr : &*found;
}

bool Course::in_use(const Node& node) const {
  return std::any_of(attempt_.nodes.begin(), attempt_.nodes.end(),
                     [&](std::size_t i) { return &nodes_[i] == &node; });
}

std::vector<std::size_t> Course::with(Standing standing) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].standing == standing) {
      found.push_back(i);
    }
  }
  return found;
}

std::vector<std::string> Course::ready_nodes() const {
  std::vector<std::string> names;
  for (const std::size_t i : with(Standing::ready)) {
    names.push_back(nodes_[i].spec.name);
  }
  return names;
}

}  // namespace trireme

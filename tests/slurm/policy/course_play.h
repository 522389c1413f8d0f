// Play runs a Course (slurm/policy/course.h) with a simulated clock and simulated agents. Used by
// one thread.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "slurm/policy/course.h"

namespace trireme {

class Play {
 public:
  Play(CoursePlan plan, int nodes, const std::map<std::string, std::string>& excluded = {})
      : ranks_per_node_(plan.ranks_per_node), course_(std::move(plan), specs(nodes), excluded) {}

  Actions feed(const Event& event) {
    Actions actions = course_.on(event, now);
    log.insert(log.end(), actions.begin(), actions.end());
    return actions;
  }
  // Lets time pass, in which the live agents report.
  void pass(double seconds) {
    for (double left = seconds; left > 0; left -= 1) {
      now += std::min(left, 1.0);
      for (const std::string& node : alive) {
        report(node);
      }
      feed(Tick{});
    }
  }
  void come_up(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) {
      alive.push_back(node);
      report(node);
    }
  }
  // Reports the node's ranks as the test has set them.
  void report(const std::string& node) {
    AgentReport r;
    r.settled = true;
    r.healthy = unfit != node;
    r.trouble = "tired";
    r.cleared = cleared[node];
    r.memory_step = saved(memory_step);
    r.oom_kills = oom_kills;
    for (const RankState& rank : ranks[node]) {
      r.ranks.push_back(rank);
    }
    feed(AgentHeard{node, r});
  }
  // Makes ranks of the current attempt work on these nodes.
  void ranks_work(const std::vector<std::string>& nodes) {
    int number = 0;
    for (const std::string& node : nodes) {
      ranks[node].clear();
      for (int i = 0; i < ranks_per_node_; ++i) {
        RankState rank;
        rank.page.pid = 100 + number;
        rank.page.rank = number++;
        rank.page.attempt = course_.attempt();
        rank.page.phase = ProgressPhase::train;
        rank.page.deadline_seconds = 30;
        rank.state = 'S';
        ranks[node].push_back(rank);
      }
    }
    for (const std::string& node : nodes) {
      report(node);
    }
  }
  // Ends the launcher and clears the old ranks of all nodes.
  void ends(std::optional<int> code, bool done = false, std::int64_t durable_step = -1) {
    feed(LauncherEnded{code, reason, done, saved(durable_step), logged_step});
    for (const std::string& node : alive) {
      cleared[node] = course_.attempt() + 1;
    }
    for (const std::string& node : std::vector<std::string>(alive)) {
      report(node);
    }
  }
  void dies(const std::string& node) {
    std::erase(alive, node);
    feed(AgentLost{node, "its connection is closed"});
  }

  template <class Kind>
  std::vector<Kind> all() const {
    std::vector<Kind> found;
    for (const Action& action : log) {
      if (const auto* one = std::get_if<Kind>(&action)) {
        found.push_back(*one);
      }
    }
    return found;
  }
  std::vector<std::string> last_nodes() const {
    std::vector<std::string> names;
    const std::vector<LaunchRanks> launches = all<LaunchRanks>();
    for (const NodeSpec& node : launches.back().nodes) {
      names.push_back(node.name);
    }
    return names;
  }
  int code() const { return all<Finish>().empty() ? -1 : all<Finish>().front().code; }
  std::string last_cause() const {
    std::string cause;
    for (const Note& note : all<Note>()) {
      cause = note.event == "attempt_end" ? note.fields.at("cause").get<std::string>() : cause;
    }
    return cause;
  }
  const Course& course() const { return course_; }

  double now = 0;
  std::vector<std::string> alive;
  std::string unfit;
  std::map<std::string, std::int64_t> cleared;
  std::map<std::string, std::vector<RankState>> ranks;
  std::int64_t memory_step = -1;
  std::int64_t oom_kills = 7;  // kills before the launch
  std::optional<StatedReason> reason;
  std::int64_t logged_step = -1;
  Actions log;

 private:
  SavedStep saved(std::int64_t step) const {
    return step < 0 ? SavedStep{} : SavedStep{course_.attempt(), step};
  }
  static std::vector<NodeSpec> specs(int count) {
    std::vector<NodeSpec> nodes;
    for (int i = 1; i <= count; ++i) {
      nodes.push_back({.name = "n" + std::to_string(i)});
    }
    return nodes;
  }
  int ranks_per_node_;
  Course course_;
};

using Names = std::vector<std::string>;

inline CoursePlan two_nodes() {
  CoursePlan plan;
  plan.nodes_wanted = plan.least_nodes = 2;
  plan.ranks_per_node = 2;
  return plan;
}

// Returns a course with two working nodes and a ready spare.
inline Play at_work(CoursePlan plan = two_nodes()) {
  Play play(std::move(plan), 3);
  play.feed(Started{});
  play.come_up({"n1", "n2", "n3"});
  play.ranks_work({"n1", "n2"});
  return play;
}

}  // namespace trireme

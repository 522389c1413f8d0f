// Course: what a launch does next. A state machine without effects: events go in, actions come out,
// and time is an argument, so that every course can be tested without a process.
//
//   gather --(nodes are ready)--> run --(launcher ended)--> settle --(old ranks gone)--> gather
//      |                           |                           |
//      +--(too few)--> over        +--> (finished, or final)---+--> over
//
// gather: agents start, pass their health check. run: the ranks work; a hang, a lost node or a
// launcher that outlives its ranks has them killed, which ends the launcher, too. settle: until
// every node of the attempt has no old rank any more, or is lost; only then may new ones start.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "slurm/policy/nodes.h"
#include "slurm/policy/verdict.h"
#include "slurm/wire/messages.h"

namespace trireme {

struct CoursePlan {
  int nodes_wanted = 1;
  int least_nodes = 1;
  int ranks_a_node = 1;
  std::function<bool(int nodes)> fits = [](int) { return true; };  // the run's layout
  std::string launcher = "mpirun";  // what starts the ranks, for messages
  bool in_slurm = false;            // a lack of nodes asks for a requeue
  int most_relaunches = 3;          // without a new checkpoint
  int most_memory_deaths = 2;
  // Seconds:
  double agents_start = 60;     // the first time: a health check may be part of it
  double agent_restart = 5;     // of a node whose agent died while the node may live
  double replaceable = 2;       // the same if the attempt ends anyway and other nodes are enough
  double silence = 10;          // of an agent, until its node counts as lost
  double hang_slack = 5;        // beyond a rank's own deadline: its own alarm comes first
  double stopped = 60;          // of a rank that is stopped, whatever its deadline
  double ranks_start = 120;     // until every rank has a page
  double launcher_grace = 1.5;  // of a launcher whose rank is gone, to end by itself
  double sudden_grace = 0.3;    // the same if no rank has an error to report, or a node is gone
  double launcher_end = 10;     // of a launcher whose ranks have all come to their end
  double killed_end = 15;       // of a launcher that was killed: then it is left to the kernel
  double old_ranks_end = 60;    // of ranks that were killed: then their node counts as lost
  double enough_nodes = 2;      // how long spares may keep those waiting that are enough
  double least_start = 60;      // of a start's deadline, once one was seen
  double most_start = 600;      // as a rank gives itself
  double start_factor = 20;     // of a start's deadline over the longest that was seen
};

// ---- Events. `now`: seconds of a clock that nobody sets.
struct Started {
  SavedStep durable;  // the newest checkpoint on disk
};
struct AgentHeard {  // the agent's connection is there, or it reports
  std::string node;
  AgentReport report;
};
struct AgentLost {  // its connection is closed, or it could not be started
  std::string node;
  std::string why;
};
struct LauncherEnded {
  std::optional<int> code;
  std::optional<StatedReason> reason;
  bool done = false;  // this attempt has written DONE
  SavedStep durable;
};
struct StopAsked {
  int signal = 0;
};
struct Tick {};
using Event = std::variant<Started, AgentHeard, AgentLost, LauncherEnded, StopAsked, Tick>;

// ---- Actions, to be done in their order.
struct StartAgent {
  std::string node;
  bool check_health = false;
};
struct DropAgent {  // cut its connection, end its process where it is ours
  std::string node;
};
struct ClearNode {  // its agent ends ranks below this generation
  std::string node;
  std::int64_t generation = 0;
};
struct LaunchRanks {
  std::int64_t generation = 0;
  std::vector<NodeSpec> nodes;
  double start_deadline = 0;  // seconds, for MPI to connect them; 0: not known from other starts
  bool has_saved = false;     // this launch has: from now on runs go on from what is newest
};
struct SetPartner {
  std::string node;
  std::string partner;
};
struct SignalRanks {
  int signal = 0;
};
struct KillRanks {};      // the launcher
struct LeaveLauncher {};  // it does not even die: it counts as ended
struct BlameNode {        // for the site's list
  std::string node;
  std::string why;
};
struct Note {  // for the journal; `text`, if any, for people, too
  std::string event;
  nlohmann::json fields;
  std::string text;
};
struct Finish {
  int code = 0;
  std::string why;
};
using Action = std::variant<StartAgent, DropAgent, ClearNode, LaunchRanks, SetPartner, SignalRanks,
                            KillRanks, LeaveLauncher, BlameNode, Note, Finish>;
using Actions = std::vector<Action>;

class Course {
 public:
  // Nodes in the order of preference. `excluded`: nodes that may not be used, and why.
  Course(CoursePlan plan, const std::vector<NodeSpec>& nodes,
         const std::map<std::string, std::string>& excluded = {});

  Actions on(const Event& event, double now);

  bool over() const { return stage_ == Stage::over; }
  std::int64_t generation() const { return generation_; }
  // Nodes that may be asked to do something now.
  std::vector<std::string> ready_nodes() const;

 private:
  enum class Stage { gather, run, settle, over };
  enum class Standing { starting, ready, lost, excluded };
  struct Node {
    NodeSpec spec;
    Standing standing = Standing::starting;
    bool was_ready = false;
    std::string why;
    double since = 0;  // of the standing
    double heard = 0;
    int rank_deaths = 0;                // first deaths of attempts
    int agent_deaths = 0;               // since the attempt began
    std::int64_t oom_kills_before = 0;  // of its machine, when the attempt began
    AgentReport report;
  };

  void leave_out(double gap);
  void on_heard(const AgentHeard& event);
  void on_lost(const AgentLost& event);
  void on_launcher_ended(const LauncherEnded& event);
  void on_stop(int signal);
  void on_tick();

  void look_at_ranks(const Node& node);
  void look_at_first_rank(const RankState& rank);
  void note_gone(const Node& node, const RankState& rank);
  void end_if_stale();
  bool stays_stopped(const RankState& rank);
  bool has_progressed() const;
  void look_at_limits();
  double agent_limit(const Node& node) const;
  void watch_attempt();
  void watch_launcher();
  double grace() const;
  void watch_the_end();
  void give_up_old_ranks();
  void note_status();
  void try_to_launch();
  std::string too_few_nodes(std::int64_t ready) const;
  void launch(const std::vector<std::size_t>& chosen);
  void try_to_conclude();
  void conclude(const Verdict& verdict);
  void exclude_suspects(const Verdict& verdict);
  void exclude(Node& node, const std::string& why);
  void lose(Node& node, const std::string& why, bool blame = true);
  void end_attempt(const std::string& why);
  void note_attempt(const Verdict& verdict);
  void finish(int code, const std::string& text);
  void note(std::string event, nlohmann::json fields, std::string text = "");

  Node* find(const std::string& name);
  bool in_use(const Node& node) const;
  std::vector<std::size_t> with(Standing standing) const;
  std::vector<Node*> used_nodes();
  int ranks_seen() const;
  std::string node_of_rank(int rank) const;
  bool ranks_are_over() const;

  CoursePlan plan_;
  std::vector<Node> nodes_;
  Stage stage_ = Stage::gather;
  double now_ = 0;
  double enough_since_ = -1;
  Actions out_;

  // The attempt.
  std::int64_t generation_ = 0;
  std::vector<std::size_t> used_;  // indices of nodes_, in the order of the ranks
  Evidence evidence_;
  std::map<int, double> stopped_since_;  // by rank, while it is
  double launched_ = 0;
  double waits_since_ = 0;  // launched_, or later by the time that was left out
  double first_gone_ = -1;
  double status_at_ = 0;
  double ranks_over_since_ = -1;
  double detected_ = -1;  // when it was first known to be over
  bool killing_ = false;
  double killing_since_ = -1;
  double settling_since_ = -1;
  bool first_step_seen_ = false;
  nlohmann::json first_rank_;  // rank 0's page as last seen, for the account

  // The launch.
  int stop_signal_ = 0;
  double stop_at_ = 0;
  int relaunches_without_progress_ = 0;
  bool last_was_io_ = false;  // an I/O error ended the last attempt; no checkpoint since
  int memory_deaths_ = 0;
  SavedStep newest_at_first_;  // when the launch began
  SavedStep newest_;           // checkpoint, on disk or in a node's memory
  SavedStep on_disk_;
  SavedStep newest_before_;   // when the attempt began
  double longest_start_ = 0;  // seconds until rank 0 was connected, of starts that led to a step
};

}  // namespace trireme

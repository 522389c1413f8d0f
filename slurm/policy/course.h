// Course decides what a launch does next. It is a state machine without effects: events go in,
// actions come out, and time is an argument, so that tests need no process.
//
//   gather --(nodes are ready)--> run --(launcher ended)--> settle --(old ranks gone)--> gather
//      |                           |                           |
//      +--(too few)--> over        +--> (finished, or final)---+--> over
//
// gather: agents start and run their health check. run: the ranks work; after a hang, the loss of a
// node, or if the launcher outlives its ranks, the launcher is killed. settle: wait until every
// node of the attempt is free of old ranks or lost; only then may new ranks start.
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
  int ranks_per_node = 1;
  // Returns whether the run's layout allows this number of nodes.
  std::function<bool(int nodes)> fits = [](int) { return true; };
  std::string launcher = "mpirun";  // the program that starts the ranks, for messages
  bool in_slurm = false;            // whether a lack of nodes leads to a requeue
  int most_relaunches = 3;          // without a new checkpoint in between
  int most_memory_deaths = 2;
  // Limits in seconds:
  double agents_start = 60;  // for the first start of the agents, which may include a health check
  double agent_restart = 5;  // for a node to get a new agent after its agent has died
  double replaceable = 2;    // the same if the attempt ends anyway and there are enough other nodes
  double silence = 10;       // without a message from an agent, until its node counts as lost
  double hang_slack = 5;     // beyond a rank's own deadline, so that its own alarm is first
  double stopped = 60;       // for a stopped rank, whatever its deadline
  double ranks_start = 120;  // until every rank has a progress page
  double launcher_grace = 1.5;  // for the launcher to end by itself after a rank is gone
  double sudden_grace = 0.3;    // the same if no rank reports an error or a node is gone
  double launcher_end = 10;     // for the launcher to end after all its ranks
  double killed_end = 15;       // for a killed launcher to end; after that it is ignored
  double old_ranks_end = 60;    // for killed ranks to end; after that their node counts as lost
  double enough_nodes = 2;      // how long to wait for spares once there are enough nodes
  double least_start = 60;      // least start deadline, once a start was seen
  double most_start = 600;      // greatest start deadline, equal to the ranks' default
  double start_factor = 20;     // start deadline as a multiple of the longest start seen
};

// ---- Events. `now` is in seconds on a monotonic clock.
struct Started {
  SavedStep durable;  // the newest checkpoint on disk
};
struct AgentHeard {  // the agent has connected or reported
  std::string node;
  AgentReport report;
};
struct AgentLost {  // its connection is closed, or it could not be started
  std::string node;
  std::string why;
};
struct LauncherEnded {
  std::optional<int> code = {};
  std::optional<StatedReason> reason = {};
  bool done = false;  // whether this attempt has written DONE
  SavedStep durable = {};
  std::int64_t logged_step = -1;  // the last in this attempt's metrics; -1 if there is none
};
struct StopAsked {
  int signal = 0;
};
struct Tick {};
using Event = std::variant<Started, AgentHeard, AgentLost, LauncherEnded, StopAsked, Tick>;

// ---- Actions, to be performed in their order.
struct StartAgent {
  std::string node;
  bool check_health = false;
};
struct DropAgent {  // close its connection, and end its process if this launch started it
  std::string node;
};
struct ClearNode {  // make its agent end the ranks of attempts below this one
  std::string node;
  std::int64_t attempt = 0;
};
struct LaunchRanks {
  std::int64_t attempt = 0;
  std::vector<NodeSpec> nodes;
  double start_deadline = 0;  // seconds for MPI to connect the ranks; 0 for the default
  bool has_saved = false;  // this launch has saved, so the run continues from its newest checkpoint
};
struct SetPartner {
  std::string node;
  std::string partner;
};
struct SignalRanks {
  int signal = 0;
};
struct KillRanks {};      // by killing the launcher
struct LeaveLauncher {};  // count a launcher that survives SIGKILL as ended
struct BlameNode {        // add it to the site list
  std::string node;
  std::string why;
};
struct Note {  // for the journal; `text`, if any, also for stderr
  std::string event;
  nlohmann::json fields;
  std::string text;
};
struct Finish {
  int code = 0;
  std::string why;
  std::int64_t step = 0;  // the last step of rank 0 that was seen
  std::string phase = "start";
};
using Action = std::variant<StartAgent, DropAgent, ClearNode, LaunchRanks, SetPartner, SignalRanks,
                            KillRanks, LeaveLauncher, BlameNode, Note, Finish>;
using Actions = std::vector<Action>;

class Course {
 public:
  // nodes: in the order of preference. excluded: nodes that must not be used, with the reason.
  Course(CoursePlan plan, const std::vector<NodeSpec>& nodes,
         const std::map<std::string, std::string>& excluded = {});

  Actions on(const Event& event, double now);

  bool over() const { return stage_ == Stage::over; }
  std::int64_t attempt() const { return attempt_.number; }
  // Returns the nodes whose agent is ready to take orders.
  std::vector<std::string> ready_nodes() const;

 private:
  enum class Stage { gather, run, settle, over };
  enum class Standing { starting, ready, lost, excluded };
  struct Node {
    NodeSpec spec;
    Standing standing = Standing::starting;
    bool was_ready = false;
    std::string why;
    double since = 0;  // since when it has this standing
    double heard = 0;
    int rank_deaths = 0;                // attempts in which its rank died first
    int agent_deaths = 0;               // since the attempt began
    std::int64_t oom_kills_before = 0;  // on its machine when the attempt began
    AgentReport report;
  };

  void leave_out(double gap);
  void on_heard(const AgentHeard& event);
  void on_lost(const AgentLost& event);
  void on_launcher_ended(const LauncherEnded& event);
  void on_stop(int signal);
  void on_tick();

  // What is known of the attempt that runs or ran last. Times are on the clock of the events.
  struct Attempt {
    std::int64_t number = 0;
    std::vector<std::size_t> nodes = {};  // indices into nodes_, in the order of the ranks
    double launched = 0;
    double waits_since = 0;  // launched, plus the time that leave_out() excludes
    double status_at = 0;    // when the latest status was noted
    Evidence evidence = {};
    std::map<int, double> stopped_since = {};  // for each rank that is stopped
    bool first_step_seen = false;
    nlohmann::json first_rank = {};  // rank 0's progress page as last seen, for the account
    std::optional<double> first_gone = {};
    std::optional<double> all_gone = {};
    std::optional<double> detected = {};  // when its end was first noticed
    std::optional<double> killed = {};    // when its launcher was killed
    std::optional<double> settling = {};  // when its launcher had ended
  };
  // A rank of the attempt, as its agent reported it last.
  struct SeenRank {
    const Node& node;
    const RankState& state;
  };

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
  // text: the line for people, by default `why`.
  void finish(int code, const std::string& why, std::string text = "");
  void note(std::string event, nlohmann::json fields, std::string text = "");

  Node* find(const std::string& name);
  bool in_use(const Node& node) const;
  std::vector<std::size_t> with(Standing standing) const;
  std::vector<Node*> used_nodes();
  std::vector<SeenRank> ranks_seen() const;
  std::string node_of_rank(int rank) const;
  bool ranks_are_over() const;

  CoursePlan plan_;
  std::vector<Node> nodes_;
  Stage stage_ = Stage::gather;
  double now_ = 0;
  std::optional<double> enough_since_;  // since when enough nodes are ready
  Actions out_;

  Attempt attempt_;

  // State of the launch:
  int stop_signal_ = 0;
  double stop_at_ = 0;
  int relaunches_without_progress_ = 0;
  bool last_was_io_ = false;  // an I/O error ended the last attempt; no checkpoint since
  int memory_deaths_ = 0;
  SavedStep newest_at_first_;  // newest checkpoint when the launch began
  SavedStep newest_;           // newest checkpoint, on disk or in a node's memory
  SavedStep on_disk_;
  SavedStep newest_before_;  // newest checkpoint when the attempt began
  // This is the longest time until rank 0 was connected, of starts that led to a step.
  double longest_start_ = 0;
};

}  // namespace trireme

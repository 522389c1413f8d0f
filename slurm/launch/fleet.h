// Fleet is the supervisor's view of the agents of a launch: the processes that it started, their
// connections and their reports. Owned by the supervisor; used by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "slurm/launch/commands.h"
#include "slurm/process/child.h"
#include "slurm/wire/gate.h"

namespace trireme {

struct FleetNews {
  std::string node;
  std::optional<AgentReport> report;  // nullopt if the agent is lost
  std::string why;                    // why the agent is lost
};

class Fleet {
 public:
  // Listens from now on. health: a shell command to run on every node, or empty.
  Fleet(LaunchSetting setting, std::string secret, std::string health);
  // Kills the processes that are left.
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  void start_agent(const std::string& node, bool check_health);
  void drop(const std::string& node);
  void order(const std::string& node, const Order& order);
  // Makes `node` copy its checkpoints to `partner`, or to no node if it is "".
  void set_partner(const std::string& node, const std::string& partner);
  void ping_all();

  // Starts the deputy on `node`, to requeue the Slurm job if the supervisor's node dies. There is
  // at most one deputy.
  void want_deputy(const std::string& node, const std::string& job);
  bool has_deputy() const { return deputy_.connection || deputy_.starter; }

  void add_to(std::vector<pollfd>& waiting) const;
  // Returns the time to poll the descriptors of add_to(), at most `most` milliseconds.
  int patience(int most) const { return gate_.patience(most); }
  // Returns what has happened since the last call; never waits.
  std::vector<FleetNews> look();
  // Says goodbye to all agents and waits at most `seconds` for them to end. If an agent has died
  // just before, another one is started to clean up.
  void dismiss(double seconds);

 private:
  struct Member {
    std::unique_ptr<Child> starter;  // the agent itself, or the ssh or srun that started it
    std::unique_ptr<Connection> connection;
    Hello hello;
    bool dismissed = false;
    bool wants_partner = false;
    std::string partner;
  };

  std::vector<std::string> agent_words(const std::string& node, bool check_health) const;
  std::unique_ptr<Child> start(const std::string& node, const std::vector<std::string>& words);
  void admit(Gate::Caller caller);
  void hear(const std::string& node, Member& member, std::vector<FleetNews>& news);
  void hear_deputy();
  void dismiss_deputy();
  void send_partner(const std::string& node);

  LaunchSetting setting_;
  std::string secret_;
  std::string health_;
  Gate gate_;
  std::map<std::string, Member> members_;
  Member deputy_;
  std::string deputy_node_;          // where the deputy was last started
  std::vector<FleetNews> failures_;  // agents that could not be started
  // Agents that were told to end, with the time until which they may clean up.
  std::vector<std::pair<std::unique_ptr<Child>, double>> leaving_;
};

}  // namespace trireme

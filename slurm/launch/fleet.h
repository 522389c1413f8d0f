// Fleet: the agents of a launch as the supervisor sees them: their processes where it started them,
// their connections, what they say. Owned by the supervisor; one thread.
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
  std::optional<AgentReport> report;  // none: the agent is lost
  std::string why;                    // it is lost
};

class Fleet {
 public:
  // `health`: a command for every node, or empty. Listens from now on.
  Fleet(LaunchSetting setting, std::string secret, std::string health);
  // Ends what is left.
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  void start_agent(const std::string& node, bool check_health);
  void drop(const std::string& node);
  void order(const std::string& node, const Order& order);
  // Copies of `node`'s checkpoints go to `partner`; "": to nobody.
  void set_partner(const std::string& node, const std::string& partner);
  void ping_all();

  // The deputy, on this node: it requeues the Slurm job when nobody else can. At most one lives.
  void want_deputy(const std::string& node, const std::string& job);
  bool has_deputy() const { return deputy_.connection || deputy_.starter; }

  void add_to(std::vector<pollfd>& waiting) const;
  // How long to poll that at most, where there is nothing else to do for `most` milliseconds.
  int patience(int most) const { return gate_.patience(most); }
  // What has happened since; never waits.
  std::vector<FleetNews> look();
  // Says farewell to all and waits for them to end, at most so long. Where an agent has died right
  // before, another one cleans up.
  void dismiss(double seconds);

 private:
  struct Member {
    std::unique_ptr<Child> starter;  // the agent itself, or the ssh or srun that leads to it
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
  std::string deputy_node_;          // where it was wanted last
  std::vector<FleetNews> failures_;  // of starts
  // Told to end, and given time to clean up; with the moment at which that is over.
  std::vector<std::pair<std::unique_ptr<Child>, double>> leaving_;
};

}  // namespace trireme

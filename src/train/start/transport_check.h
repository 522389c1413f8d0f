// TransportCheck compares what the ranks of a run use to reach each other with security.transport:
// before they are connected for tensors, when they are, and later, because MPI and UCX connect two
// ranks only when these first exchange something. Does nothing if the configuration asks for
// nothing. Every call is collective. Owned by the start of a run; used by the main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "mpi/communicator.h"
#include "mpi/links/link_book.h"
#include "mpi/network/transport_rule.h"
#include "src/base/log.h"
#include "src/train/run/run_config.h"

namespace trireme {

class TransportCheck {
 public:
  // Records an event in the site's audit log; empty on ranks other than 0, and without a log.
  using Audit = std::function<void(std::string_view event, const nlohmann::ordered_json& details)>;
  // `world`, the control group of MPI, and `log` outlive the check.
  TransportCheck(const SecurityConfig& config, Communicator& world, Log& log, Audit audit);

  // These throw PolicyError on all ranks alike if a rank breaks the rule, after rank 0 has recorded
  // the event transport.checked.
  void before_connecting();
  // links: how NCCL connects this rank; outlives the check. Also logs and records what is used if
  // all ranks obey.
  void after_connecting(const LinkBook& links);
  // Called after each step; checks after the first one and before saves.
  void at_step(std::int64_t step, bool saves);

 private:
  TransportUse observe() const;
  void judge(const TransportUse& use, const std::string& when, bool report);

  TransportRule rule_;
  Communicator& world_;
  Log& log_;
  Audit audit_;
  const LinkBook* links_ = nullptr;
  bool stepped_ = false;  // whether at_step() has been called
};

// Returns the kinds of a rank's links by which NCCL sends over the network past the kernel, as
// text.
std::vector<std::string> rdma_links(const LinkBook& links);

}  // namespace trireme

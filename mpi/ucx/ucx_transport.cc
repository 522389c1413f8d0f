#include "mpi/ucx/ucx_transport.h"

#include "mpi/agreement.h"
#include "mpi/ucx/ucx_check.h"
#include "mpi/ucx/ucx_devices.h"
#include "mpi/ucx/ucx_link.h"

namespace trireme {
namespace {

// Returns the text of the error on this rank, or "".
std::string fault_of(const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Runs `work` on every rank. If it fails on any, all throw ConfigError; ranks without an error of
// their own report those of the others.
void agree_on_success(Communicator& group, const std::function<void()>& work) {
  const std::string own = fault_of(work);
  const std::string all = gather_faults(group, own);
  if (!all.empty()) {
    throw ConfigError(own.empty() ? all : own);
  }
}

// Connects to the next rank and to the first one on another host, so that a fabric that does not
// connect the ranks fails at the start.
void connect_some(Communicator& group, UcxWorker& worker) {
  std::vector<int> some = {(group.rank() + 1) % group.size()};
  for (int r = 0; r < group.size(); ++r) {
    if (group.host(r) != group.host(group.rank())) {
      some.push_back(r);
      break;
    }
  }
  for (const int peer : some) {
    if (peer != group.rank() && worker.endpoint(peer) == nullptr) {
      throw ConfigError(fabric_fault(
          fmt::format("UCX cannot connect to rank {} (host {}): {}{}", peer, group.host(peer),
                      ucs_status_string(worker.error(peer)), last_ucx_message()),
          ucx_devices()));
    }
  }
}

}  // namespace

void check_ucx_here() { const UcxWorker worker(std::make_shared<UcxFabric>(1), 0, 1); }

std::unique_ptr<Transport> make_ucx_transport(Communicator& group) {
  std::shared_ptr<UcxFabric> fabric;
  std::unique_ptr<UcxWorker> worker;
  agree_on_success(group, [&] {
    fabric = std::make_shared<UcxFabric>(group.size());
    worker = std::make_unique<UcxWorker>(fabric, group.rank(), group.size());
  });
  worker->introduce(all_gather_text(group, worker->address()));
  agree_on_success(group, [&] { connect_some(group, *worker); });
  return std::make_unique<UcxLink>(std::move(fabric), std::move(worker), group.members());
}

}  // namespace trireme

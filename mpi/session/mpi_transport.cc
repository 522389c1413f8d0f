#include "mpi/session/mpi_transport.h"

#include <chrono>
#include <thread>

#include <mpi.h>

#include "mpi/collective/queued_communicator.h"
#include "mpi/session/mpi_check.h"
#include "src/base/unique_handle.h"

namespace trireme {
namespace {

// How long cancel_all() waits for transfers that are partly done.
constexpr std::chrono::seconds kCancelLimit{2};

struct CommTraits {
  using Handle = MPI_Comm;
  static MPI_Comm none() { return MPI_COMM_NULL; }
  static void close(MPI_Comm comm) { (void)MPI_Comm_free(&comm); }
};
using CommHandle = UniqueHandle<CommTraits>;

class MpiTransport : public Transport {
 public:
  MpiTransport(CommHandle comm, GroupMembers members)
      : Transport(std::move(members)), comm_(std::move(comm)) {
    mpi_check(MPI_Comm_set_errhandler(comm_.get(), MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }

  TransferId start_send(const void* data, std::int64_t bytes, int to, int tag) override;
  TransferId start_recv(void* data, std::int64_t bytes, int from, int tag) override;
  TransferId start_recv_of_any_length(void* data, std::int64_t, std::int64_t room, int from,
                                      int tag) override {
    const TransferId id = start_recv(data, room, from, tag);
    transfer(id).any_length = true;
    return id;
  }
  bool finished(TransferId id) override;
  void cancel_all() noexcept override;
  void pause(std::chrono::microseconds limit) override { std::this_thread::sleep_for(limit); }
  std::unique_ptr<Transport> split_off(const std::vector<int>& members) override;

 private:
  struct Transfer {
    MPI_Request request = MPI_REQUEST_NULL;
    int bytes = 0;
    bool sends = false;
    bool any_length = false;
  };
  TransferId free_slot();
  bool any_in_progress() noexcept;
  Transfer& transfer(TransferId id) { return transfers_[static_cast<std::size_t>(id)]; }

  CommHandle comm_;
  std::vector<Transfer> transfers_;  // by id; MPI_REQUEST_NULL if free
  std::vector<TransferId> free_;
};

TransferId MpiTransport::free_slot() {
  if (free_.empty()) {
    transfers_.emplace_back();
    return static_cast<TransferId>(transfers_.size()) - 1;
  }
  const TransferId id = free_.back();
  free_.pop_back();
  return id;
}

TransferId MpiTransport::start_send(const void* data, std::int64_t bytes, int to, int tag) {
  check(bytes >= 0 && bytes <= kMaxTransferBytes, "a transfer fits MPI's counts");
  const TransferId id = free_slot();
  transfer(id) = {MPI_REQUEST_NULL, static_cast<int>(bytes), true, false};
  mpi_check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, comm_.get(),
                      &transfer(id).request),
            "MPI_Isend");
  return id;
}

TransferId MpiTransport::start_recv(void* data, std::int64_t bytes, int from, int tag) {
  check(bytes >= 0 && bytes <= kMaxTransferBytes, "a transfer fits MPI's counts");
  const TransferId id = free_slot();
  transfer(id) = {MPI_REQUEST_NULL, static_cast<int>(bytes), false, false};
  mpi_check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, comm_.get(),
                      &transfer(id).request),
            "MPI_Irecv");
  return id;
}

bool MpiTransport::finished(TransferId id) {
  int done = 0;
  MPI_Status status;
  mpi_check(MPI_Test(&transfer(id).request, &done, &status), "MPI_Test");
  if (done == 0) {
    return false;
  }
  if (!transfer(id).sends && !transfer(id).any_length) {
    int bytes = 0;
    mpi_check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (bytes != transfer(id).bytes) {
      throw CommError(fmt::format(
          "a message of {} bytes met a receive of {}: the ranks run different operations", bytes,
          transfer(id).bytes));
    }
  }
  free_.push_back(id);
  return true;
}

// Makes progress. A transfer that failed has ended.
bool MpiTransport::any_in_progress() noexcept {
  bool any = false;
  for (Transfer& transfer : transfers_) {
    int done = 0;
    if (transfer.request != MPI_REQUEST_NULL &&
        MPI_Test(&transfer.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
      any = true;
    }
  }
  return any;
}

// Cancels receives that have not been matched, and waits for transfers that are partly done: MPI
// accesses their buffers whenever any thread calls it, and the watcher's does so all the time. What
// is left after the limit stays with MPI; its peer is lost or stopped. The communicator is not
// freed: others may still send to it, and MPI would deliver their messages to the next communicator
// that gets its number.
void MpiTransport::cancel_all() noexcept {
  for (Transfer& transfer : transfers_) {
    if (transfer.request != MPI_REQUEST_NULL && !transfer.sends) {
      (void)MPI_Cancel(&transfer.request);
    }
  }
  const auto end = std::chrono::steady_clock::now() + kCancelLimit;
  while (any_in_progress() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  for (Transfer& transfer : transfers_) {
    if (transfer.request != MPI_REQUEST_NULL) {
      (void)MPI_Request_free(&transfer.request);
    }
  }
  (void)comm_.release();
}

std::unique_ptr<Transport> MpiTransport::split_off(const std::vector<int>& members) {
  GroupMembers chosen = this->members().subset(members);
  MPI_Comm comm = MPI_COMM_NULL;
  mpi_check(MPI_Comm_split(comm_.get(), members.front(), chosen.rank(), &comm), "MPI_Comm_split");
  return std::make_unique<MpiTransport>(CommHandle(comm), std::move(chosen));
}

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(const std::vector<std::string>& hosts) {
  MPI_Comm comm = MPI_COMM_NULL;
  mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  int rank = 0;
  mpi_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return std::make_unique<MpiTransport>(CommHandle(comm), GroupMembers::of_world(rank, hosts));
}

}  // namespace trireme

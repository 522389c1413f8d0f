// UcxLink is the Transport of one group over UCX (ucx_transport.h). It owns the group's worker. Its
// functions take a lock, so that a split on the caller's thread may drive the worker while another
// thread drives the group's operations.
#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "mpi/collective/transport.h"
#include "mpi/communicator.h"
#include "mpi/ucx/ucx_worker.h"

namespace trireme {

class UcxLink : public Transport {
 public:
  UcxLink(std::shared_ptr<UcxFabric> fabric, std::unique_ptr<UcxWorker> worker,
          GroupMembers members)
      : Transport(std::move(members)), fabric_(std::move(fabric)), worker_(std::move(worker)) {}

  TransferId start_send(const void* data, std::int64_t bytes, int to, int tag) override;
  TransferId start_recv(void* data, std::int64_t bytes, int from, int tag) override;
  TransferId start_recv_of_any_length(void* data, std::int64_t bytes, std::int64_t room, int from,
                                      int tag) override;
  bool finished(TransferId id) override;
  void cancel_all() noexcept override;
  void pause(std::chrono::microseconds limit) override;
  void check_peers() override;
  std::unique_ptr<Transport> split_off(const std::vector<int>& members) override;

 private:
  // The functions from here to describe_loss() are called with the lock held.
  struct Transfer {
    ucs_status_ptr_t request = nullptr;  // UCX's request while in progress
    ucs_status_t status = UCS_OK;
    std::int64_t bytes = 0;
    std::int64_t received = 0;
    int peer = 0;
    bool sends = false;
    bool any_length = false;  // a receive of any length up to `bytes`
    bool in_progress() const { return status == UCS_INPROGRESS; }
  };
  Transfer& transfer(TransferId id) { return transfers_[static_cast<std::size_t>(id)]; }
  TransferId new_transfer(std::int64_t bytes, int peer, bool sends);
  TransferId start(const void* data, std::int64_t bytes, int to, std::uint32_t tag);
  ucp_request_param_t receipt(TransferId id);
  // Frees a finished transfer. Throws if it ended with an error.
  void settle(TransferId id);
  bool any_in_progress() const;
  static void took_off(Transfer& transfer, ucs_status_ptr_t request);
  static void on_sent(void* request, ucs_status_t status, void* transfer);
  static void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                          void* transfer);
  void check_outcome(const Transfer& transfer) const;
  std::string describe_loss(int peer, UcxWorker::PeerState state) const;

  // The following exchange the addresses for a split.
  std::vector<std::string> exchange_texts(const std::string& own, const std::vector<int>& members);
  void send_text(const std::string& text, int to);
  std::string receive_text(int from);
  void finish_text(TransferId id);
  // Drives the worker until done(), which is called with the lock held. Throws if `peer` is lost.
  void drive_until(const std::function<bool()>& done, int peer);

  std::shared_ptr<UcxFabric> fabric_;
  std::mutex mutex_;  // guards the members below
  std::unique_ptr<UcxWorker> worker_;
  std::deque<Transfer> transfers_;  // by id; UCX holds their addresses
  std::vector<TransferId> free_;
};

}  // namespace trireme

// UcxWorker is one group's progress engine in UCX (a ucp_worker) and its connections to the peers,
// which are made when they are first needed. Owned by a UcxLink; used by one thread at a time.
//
// A tag on the wire:  | 32 bits: the sender's rank in the group | 32 bits: tag |
//
// A rank that closes a connection in good order sends an empty message tagged kGoodbye first; a
// connection that breaks without one means that the peer died.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mpi/ucx/ucx_fabric.h"

namespace trireme {

// These tags are above those of the operations (transport.h).
inline constexpr std::uint32_t kAddressTag = 1U << 31;
inline constexpr std::uint32_t kGoodbye = kAddressTag + 1;

constexpr ucp_tag_t wire_tag(int sender, std::uint32_t tag) {
  return static_cast<ucp_tag_t>(sender) << 32 | tag;
}

class UcxWorker {
 public:
  enum class PeerState { well, departed, dead };

  // `rank` is this rank's number in a group of `size`. Throws ConfigError if the fabric has no
  // device to use.
  UcxWorker(std::shared_ptr<UcxFabric> fabric, int rank, int size);
  // Says goodbye to every peer and closes the connections. Takes about 2 s if a peer does not
  // respond.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h get() const { return worker_.get(); }
  // Returns what the peers need to connect, as opaque bytes.
  std::string address() const;
  // Sets the addresses of all ranks, in rank order. Must be called before endpoint().
  void introduce(std::vector<std::string> addresses);

  // Returns the connection to a peer, or null if the peer is lost or can't be reached; see error().
  ucp_ep_h endpoint(int peer);
  PeerState state(int peer) { return classified(peers_[static_cast<std::size_t>(peer)]).state; }
  // Returns why a peer is not well.
  ucs_status_t error(int peer) const { return peers_[static_cast<std::size_t>(peer)].error; }
  // Notes that the connection has carried data, so that closing it has to wait for the rest.
  void mark_used(int peer) { peers_[static_cast<std::size_t>(peer)].used = true; }

  // Returns whether anything happened.
  bool progress() { return ucp_worker_progress(get()) != 0; }
  // Processes everything that has arrived.
  void drain();
  // Returns a descriptor that becomes readable when there is something to progress, after a
  // successful arm(); or -1 if the transports in use have none.
  int event_fd() const { return event_fd_; }
  bool arm() { return ucp_worker_arm(get()) == UCS_OK; }

  // Closes the connections to these peers by force, after a goodbye. Afterwards our buffers are not
  // accessed through them, and the peers know that it was on purpose.
  void part_from(const std::vector<int>& peers) noexcept;

 private:
  struct WorkerTraits {
    using Handle = ucp_worker_h;
    static ucp_worker_h none() { return nullptr; }
    static void close(ucp_worker_h worker) { ucp_worker_destroy(worker); }
  };
  struct Peer {
    int rank = 0;
    std::string address;
    ucp_ep_h endpoint = nullptr;
    bool used = false;
    ucs_status_t error = UCS_OK;  // set by UCX, inside progress()
    PeerState state = PeerState::well;
  };
  using Requests = std::vector<ucs_status_ptr_t>;

  const Peer& classified(Peer& peer);
  void take_leave(Peer& peer, Requests& goodbyes, Requests& flushes) noexcept;
  // Waits until the requests have finished, but no longer than `limit`.
  void finish(Requests& requests, std::chrono::milliseconds limit) noexcept;
  static void on_error(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  std::shared_ptr<UcxFabric> fabric_;  // outlives the worker
  UniqueHandle<WorkerTraits> worker_;
  int rank_;
  int event_fd_ = -1;
  std::vector<Peer> peers_;  // by rank; never resized, since UCX holds their addresses
};

}  // namespace trireme

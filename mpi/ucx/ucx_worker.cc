#include "mpi/ucx/ucx_worker.h"

#include "mpi/ucx/ucx_check.h"
#include "mpi/ucx/ucx_devices.h"
#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

// How long part_from() waits: for the goodbyes, which follow all that was sent, to be handed to the
// network; for the network to have taken the data (UCX's flush may also wait for an answer of a
// busy peer, which is not worth more time); and for the connections to close.
constexpr std::chrono::milliseconds kGoodbyeLimit{1000};
constexpr std::chrono::milliseconds kFlushLimit{100};
constexpr std::chrono::milliseconds kCloseLimit{1000};

}  // namespace

UcxWorker::UcxWorker(std::shared_ptr<UcxFabric> fabric, int rank, int size)
    : fabric_(std::move(fabric)), rank_(rank), peers_(static_cast<std::size_t>(size)) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK;
  ucp_worker_h worker = nullptr;
  const ucs_status_t status = ucp_worker_create(fabric_->context(), &params, &worker);
  if (status == UCS_ERR_NO_DEVICE || status == UCS_ERR_UNREACHABLE) {
    throw ConfigError(
        fabric_fault("UCX found no usable device" + last_ucx_message(), ucx_devices()));
  }
  ucx_check(status, "ucp_worker_create");
  worker_.reset(worker);
  if (ucp_worker_get_efd(worker, &event_fd_) != UCS_OK) {
    event_fd_ = -1;
  }
}

UcxWorker::~UcxWorker() {
  std::vector<int> all;
  for (const Peer& peer : peers_) {
    all.push_back(peer.rank);
  }
  part_from(all);
}

std::string UcxWorker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  ucx_check(ucp_worker_get_address(get(), &address, &length), "ucp_worker_get_address");
  std::string bytes(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(get(), address);
  return bytes;
}

void UcxWorker::introduce(std::vector<std::string> addresses) {
  check(addresses.size() == peers_.size(), "every rank has an address");
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    peers_[r].rank = static_cast<int>(r);
    peers_[r].address = std::move(addresses[r]);
  }
}

ucp_ep_h UcxWorker::endpoint(int rank) {
  Peer& peer = peers_.at(static_cast<std::size_t>(rank));
  if (peer.endpoint != nullptr || classified(peer).state != PeerState::well) {
    return peer.error == UCS_OK ? peer.endpoint : nullptr;
  }
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_error, &peer};
  peer.error = ucp_ep_create(get(), &params, &peer.endpoint);
  if (peer.error != UCS_OK) {
    peer.endpoint = nullptr;
    peer.state = PeerState::dead;
  }
  return peer.endpoint;
}

void UcxWorker::on_error(void* peer, ucp_ep_h, ucs_status_t status) {
  static_cast<Peer*>(peer)->error = status;
}

// All that a peer sent before its connection ended has arrived by then, including its goodbye.
const UcxWorker::Peer& UcxWorker::classified(Peer& peer) {
  if (peer.error != UCS_OK && peer.state == PeerState::well) {
    drain();
    ucp_tag_recv_info_t info;
    const bool goodbye =
        ucp_tag_probe_nb(get(), wire_tag(peer.rank, kGoodbye), ~ucp_tag_t{0}, 0, &info) != nullptr;
    peer.state = goodbye ? PeerState::departed : PeerState::dead;
  }
  return peer;
}

void UcxWorker::drain() {
  constexpr int kEnough = 10000;
  for (int i = 0; i < kEnough && progress(); ++i) {
  }
}

void UcxWorker::part_from(const std::vector<int>& peers) noexcept {
  Requests goodbyes;
  Requests flushes;
  for (const int rank : peers) {
    take_leave(peers_[static_cast<std::size_t>(rank)], goodbyes, flushes);
  }
  finish(goodbyes, kGoodbyeLimit);
  finish(flushes, kFlushLimit);
  Requests requests;
  ucp_request_param_t force{};
  force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  force.flags = UCP_EP_CLOSE_FLAG_FORCE;
  for (const int rank : peers) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (peer.endpoint != nullptr) {
      requests.push_back(ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &force));
      peer.error = peer.error == UCS_OK ? UCS_ERR_CANCELED : peer.error;
    }
  }
  finish(requests, kCloseLimit);
}

// Does not wait for a connection that has carried nothing, because it may still wait for the peer's
// answer.
void UcxWorker::take_leave(Peer& peer, Requests& goodbyes, Requests& flushes) noexcept {
  if (peer.endpoint == nullptr || peer.error != UCS_OK) {
    return;
  }
  const ucp_request_param_t plain{};
  ucs_status_ptr_t goodbye =
      ucp_tag_send_nbx(peer.endpoint, nullptr, 0, wire_tag(rank_, kGoodbye), &plain);
  if (peer.used) {
    goodbyes.push_back(goodbye);
    flushes.push_back(ucp_ep_flush_nbx(peer.endpoint, &plain));
  } else if (UCS_PTR_IS_PTR(goodbye)) {
    ucp_request_free(goodbye);
  }
}

void UcxWorker::finish(Requests& requests, std::chrono::milliseconds limit) noexcept {
  const auto end = Clock::now() + limit;
  for (ucs_status_ptr_t request : requests) {
    if (!UCS_PTR_IS_PTR(request)) {
      continue;
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS && Clock::now() < end) {
      (void)progress();
    }
    ucp_request_free(request);
  }
  requests.clear();
}

}  // namespace trireme

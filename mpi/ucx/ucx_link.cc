#include "mpi/ucx/ucx_link.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <poll.h>

#include "mpi/ucx/ucx_check.h"
#include "src/base/check.h"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

// How long cancel_all() waits for transfers that are partly done.
constexpr std::chrono::seconds kCancelLimit{2};

// A split follows an operation of the whole group, so all ranks arrive at about the same time.
constexpr std::chrono::seconds kSplitLimit{60};

// Packs each text as | u32 length | bytes |.
std::string packed(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    const auto length = static_cast<std::uint32_t>(text.size());
    all.append(reinterpret_cast<const char*>(&length), sizeof(length));
    all += text;
  }
  return all;
}

std::vector<std::string> unpacked(const std::string& all) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size();) {
    std::uint32_t length = 0;
    check(at + sizeof(length) <= all.size(), "a length lies within its message");
    std::memcpy(&length, all.data() + at, sizeof(length));
    at += sizeof(length);
    check(at + length <= all.size(), "a text lies within its message");
    texts.push_back(all.substr(at, length));
    at += length;
  }
  return texts;
}

}  // namespace

TransferId UcxLink::new_transfer(std::int64_t bytes, int peer, bool sends) {
  check(bytes >= 0 && bytes <= kMaxTransferBytes,
        "a transfer does not exceed the longest that is allowed");
  TransferId id = static_cast<TransferId>(transfers_.size());
  if (free_.empty()) {
    transfers_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  transfer(id) = {nullptr, UCS_INPROGRESS, bytes, 0, peer, sends};
  return id;
}

// Stores the result of starting a transfer. If `request` is not a pointer, the transfer has
// finished without a callback; and if it is, the callback may have run already.
void UcxLink::took_off(Transfer& transfer, ucs_status_ptr_t request) {
  if (!UCS_PTR_IS_PTR(request)) {
    transfer.status = UCS_PTR_STATUS(request);
  } else if (transfer.in_progress()) {
    transfer.request = request;
  }
}

void UcxLink::on_sent(void* request, ucs_status_t status, void* transfer) {
  auto& self = *static_cast<Transfer*>(transfer);
  self.status = status;
  self.request = nullptr;
  ucp_request_free(request);
}

void UcxLink::on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                          void* transfer) {
  static_cast<Transfer*>(transfer)->received = static_cast<std::int64_t>(info->length);
  on_sent(request, status, transfer);
}

TransferId UcxLink::start_send(const void* data, std::int64_t bytes, int to, int tag) {
  const std::lock_guard lock(mutex_);
  return start(data, bytes, to, static_cast<std::uint32_t>(tag));
}

TransferId UcxLink::start(const void* data, std::int64_t bytes, int to, std::uint32_t tag) {
  const TransferId id = new_transfer(bytes, to, true);
  ucp_ep_h endpoint = worker_->endpoint(to);
  if (endpoint == nullptr) {
    transfer(id).status = worker_->error(to);
    return id;
  }
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_sent;
  param.user_data = &transfer(id);
  took_off(transfer(id), ucp_tag_send_nbx(endpoint, data, static_cast<std::size_t>(bytes),
                                          wire_tag(rank(), tag), &param));
  return id;
}

// Connects to the sender too; otherwise this rank would not notice its death.
TransferId UcxLink::start_recv(void* data, std::int64_t bytes, int from, int tag) {
  const std::lock_guard lock(mutex_);
  const TransferId id = new_transfer(bytes, from, false);
  (void)worker_->endpoint(from);
  const ucp_request_param_t param = receipt(id);
  took_off(transfer(id), ucp_tag_recv_nbx(worker_->get(), data, static_cast<std::size_t>(bytes),
                                          wire_tag(from, static_cast<std::uint32_t>(tag)),
                                          ~ucp_tag_t{0}, &param));
  return id;
}

TransferId UcxLink::start_recv_of_any_length(void* data, std::int64_t, std::int64_t room, int from,
                                             int tag) {
  const TransferId id = start_recv(data, room, from, tag);
  const std::lock_guard lock(mutex_);
  transfer(id).any_length = true;
  return id;
}

// Makes every receive call back, because UCX 1.13 does not report the message's length if a receive
// completes at once.
ucp_request_param_t UcxLink::receipt(TransferId id) {
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv = on_received;
  param.user_data = &transfer(id);
  return param;
}

bool UcxLink::finished(TransferId id) {
  const std::lock_guard lock(mutex_);
  Transfer& asked = transfer(id);
  if (asked.in_progress()) {
    (void)worker_->progress();
  }
  if (asked.in_progress()) {
    const auto state = worker_->state(asked.peer);
    if (asked.in_progress() && state != UcxWorker::PeerState::well) {
      throw CommError(describe_loss(asked.peer, state));
    }
  }
  if (asked.in_progress()) {
    return false;
  }
  settle(id);
  return true;
}

void UcxLink::settle(TransferId id) {
  free_.push_back(id);
  check_outcome(transfer(id));
  worker_->mark_used(transfer(id).peer);
}

void UcxLink::check_outcome(const Transfer& transfer) const {
  const bool truncated = transfer.status == UCS_ERR_MESSAGE_TRUNCATED;
  if (transfer.status != UCS_OK && !truncated) {
    const auto state = worker_->state(transfer.peer);
    throw CommError(state != UcxWorker::PeerState::well
                        ? describe_loss(transfer.peer, state)
                        : fmt::format("the transfer {} {} failed: {}{}",
                                      transfer.sends ? "to" : "from",
                                      members().describe(transfer.peer),
                                      ucs_status_string(transfer.status), last_ucx_message()));
  }
  if (!transfer.sends &&
      (truncated || (!transfer.any_length && transfer.received != transfer.bytes))) {
    const std::string length = transfer.received > transfer.bytes || !truncated
                                   ? fmt::format("of {} bytes", transfer.received)
                                   : "that is longer";
    throw CommError(
        fmt::format("a message {} met a receive of {}: the ranks run different operations", length,
                    transfer.bytes));
  }
}

std::string UcxLink::describe_loss(int peer, UcxWorker::PeerState state) const {
  return state == UcxWorker::PeerState::departed
             ? fmt::format(
                   "{} has left the group: it ended, or gave up after an error that it "
                   "reported itself",
                   members().describe(peer))
             : fmt::format(
                   "{} is gone: UCX lost the connection to it ({}). Look at what it printed "
                   "last and whether its host is alive",
                   members().describe(peer), ucs_status_string(worker_->error(peer)));
}

// Ignores ranks that left in good order, because they had nothing more to do for others.
void UcxLink::check_peers() {
  const std::lock_guard lock(mutex_);
  (void)worker_->progress();
  for (int peer = 0; peer < size(); ++peer) {
    if (const auto state = worker_->state(peer); state == UcxWorker::PeerState::dead) {
      throw CommError(describe_loss(peer, state));
    }
  }
}

bool UcxLink::any_in_progress() const {
  return std::any_of(transfers_.begin(), transfers_.end(),
                     [](const Transfer& each) { return each.in_progress(); });
}

// Cancels receives that have not been matched. Transfers that are partly done end with their
// connections, or at the latest with the worker.
void UcxLink::cancel_all() noexcept {
  const std::lock_guard lock(mutex_);
  if (worker_ == nullptr) {
    return;
  }
  std::vector<int> peers;
  for (Transfer& each : transfers_) {
    if (each.request != nullptr && !each.sends) {
      ucp_request_cancel(worker_->get(), each.request);
    }
    if (each.request != nullptr) {
      peers.push_back(each.peer);
    }
  }
  if (!peers.empty()) {
    worker_->part_from(peers);
  }
  const auto end = Clock::now() + kCancelLimit;
  while (any_in_progress() && Clock::now() < end) {
    (void)worker_->progress();
  }
  if (any_in_progress()) {
    worker_.reset();
  }
}

void UcxLink::pause(std::chrono::microseconds limit) {
  int fd = -1;
  {
    const std::lock_guard lock(mutex_);
    if (worker_ == nullptr || worker_->progress()) {
      return;
    }
    fd = worker_->event_fd();
    if (fd >= 0 && !worker_->arm()) {
      return;  // an event has just come
    }
  }
  if (fd < 0) {
    std::this_thread::sleep_for(limit);
    return;
  }
  pollfd waited{fd, POLLIN, 0};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{seconds.count(), std::chrono::nanoseconds(limit - seconds).count()};
  (void)::ppoll(&waited, 1, &time, nullptr);
}

// After an error, cancels everything, because the exchange's buffers are about to end.
void UcxLink::drive_until(const std::function<bool()>& done, int peer) {
  const auto end = Clock::now() + kSplitLimit;
  const auto step = [&] {
    const std::lock_guard lock(mutex_);
    (void)worker_->progress();
    if (done()) {
      return true;
    }
    if (const auto state = worker_->state(peer); state != UcxWorker::PeerState::well) {
      throw CommError(describe_loss(peer, state));
    }
    if (Clock::now() > end) {
      throw Hang(fmt::format("{}: cannot split the group: {} did not answer in time",
                             members().describe(rank()), members().describe(peer)));
    }
    return false;
  };
  try {
    while (!step()) {
      pause(std::chrono::microseconds(200));
    }
  } catch (const Error&) {
    cancel_all();
    throw;
  }
}

void UcxLink::send_text(const std::string& text, int to) {
  TransferId id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = start(text.data(), static_cast<std::int64_t>(text.size()), to, kAddressTag);
  }
  finish_text(id);
}

// The text's length is known when it has arrived.
std::string UcxLink::receive_text(int from) {
  {
    const std::lock_guard lock(mutex_);
    (void)worker_->endpoint(from);
  }
  ucp_tag_recv_info_t info{};
  ucp_tag_message_h message = nullptr;
  const auto arrived = [&] {
    message =
        ucp_tag_probe_nb(worker_->get(), wire_tag(from, kAddressTag), ~ucp_tag_t{0}, 1, &info);
    return message != nullptr;
  };
  drive_until(arrived, from);
  std::string text(info.length, '\0');
  TransferId id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = new_transfer(static_cast<std::int64_t>(text.size()), from, false);
    const ucp_request_param_t param = receipt(id);
    took_off(transfer(id),
             ucp_tag_msg_recv_nbx(worker_->get(), text.data(), text.size(), message, &param));
  }
  finish_text(id);
  return text;
}

void UcxLink::finish_text(TransferId id) {
  drive_until([&] { return !transfer(id).in_progress(); }, transfer(id).peer);
  const std::lock_guard lock(mutex_);
  settle(id);
}

// The first member gathers the texts and sends all of them to each member: two messages per member.
std::vector<std::string> UcxLink::exchange_texts(const std::string& own,
                                                 const std::vector<int>& members) {
  if (members.front() != rank()) {
    send_text(own, members.front());
    return unpacked(receive_text(members.front()));
  }
  std::vector<std::string> texts = {own};
  for (std::size_t i = 1; i < members.size(); ++i) {
    texts.push_back(receive_text(members[i]));
  }
  for (std::size_t i = 1; i < members.size(); ++i) {
    send_text(packed(texts), members[i]);
  }
  return texts;
}

std::unique_ptr<Transport> UcxLink::split_off(const std::vector<int>& members) {
  GroupMembers chosen = this->members().subset(members);
  auto worker = std::make_unique<UcxWorker>(fabric_, chosen.rank(), chosen.size());
  worker->introduce(exchange_texts(worker->address(), members));
  return std::make_unique<UcxLink>(fabric_, std::move(worker), std::move(chosen));
}

}  // namespace trireme

#include "mpi/ucx/ucx_transport.h"

#include <cstring>
#include <thread>

#include "mpi/agreement.h"
#include "mpi/ucx/ucx_check.h"
#include "mpi/ucx/ucx_devices.h"
#include "mpi/ucx/ucx_link.h"
#include "src/base/check.h"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

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

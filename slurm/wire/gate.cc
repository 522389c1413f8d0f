#include "slurm/wire/gate.h"

#include <algorithm>

#include <unistd.h>

#include "src/base/error.h"
#include "src/base/say.h"

namespace trireme {
namespace {

constexpr std::chrono::seconds kStrangerTime{5};
constexpr int kMostReported = 20;  // limits the log during a port scan

}  // namespace

Gate::Gate(const std::string& address, PortRange ports, LaunchSecret secret)
    : listener_(address, ports), secret_(std::move(secret)) {
  if (secret_.tls.is_on) {
    tls_.emplace(secret_);
  }
}

void Gate::add_to(std::vector<pollfd>& waiting) const {
  if (!rests()) {
    waiting.push_back({listener_.fd(), POLLIN, 0});
  }
  for (const auto& [address, strangers] : strangers_) {
    for (const Stranger& stranger : strangers) {
      waiting.push_back({stranger.connection.fd(), POLLIN, 0});
    }
  }
}

int Gate::patience(int most) const { return rests() ? std::min(most, kRestMilliseconds) : most; }

std::size_t Gate::strangers() const {
  std::size_t count = 0;
  for (const auto& [address, strangers] : strangers_) {
    count += strangers.size();
  }
  return count;
}

std::vector<Gate::Caller> Gate::look() {
  std::vector<Caller> callers;
  hear(callers);
  if (!rests()) {
    let_in();
  }
  return callers;
}

void Gate::hear(std::vector<Caller>& callers) {
  std::vector<pollfd> ready;
  for (const auto& [address, strangers] : strangers_) {
    for (const Stranger& stranger : strangers) {
      ready.push_back({stranger.connection.fd(), POLLIN, 0});
    }
  }
  ::poll(ready.data(), ready.size(), 0);
  auto state = ready.begin();
  const Clock::time_point oldest = Clock::now() - kStrangerTime;
  for (auto& [address, strangers] : strangers_) {
    for (auto stranger = strangers.begin(); stranger != strangers.end(); ++state) {
      const bool stays =
          !is_late(*stranger, oldest) && (state->revents == 0 || hear(*stranger, callers));
      stranger = stays ? std::next(stranger) : strangers.erase(stranger);
    }
  }
  std::erase_if(strangers_, [](const auto& one) { return one.second.empty(); });
}

bool Gate::is_late(const Stranger& stranger, Clock::time_point oldest) {
  if (stranger.since > oldest) {
    return false;
  }
  if (stranger.connection.is_opening()) {
    report(fmt::format("no TLS handshake was completed within {} s", kStrangerTime.count()));
  }
  return true;
}

bool Gate::hear(Stranger& stranger, std::vector<Caller>& callers) {
  try {
    const std::vector<std::string> texts = stranger.connection.receive();
    if (texts.empty()) {
      return stays_open(stranger.connection);
    }
    std::string welcome;
    Hello hello = stranger.door.accept(texts.front(), welcome, stranger.connection.binding());
    callers.push_back({std::move(stranger.connection), std::move(hello), std::move(welcome)});
  } catch (const DataError& error) {
    report(error.what());
  }
  return false;
}

bool Gate::stays_open(const Connection& connection) {
  if (!connection.trouble().why.empty()) {
    report(connection.trouble().why);
  }
  return !connection.closed();
}

void Gate::report(const std::string& why) {
  if (reported_++ < kMostReported) {
    say(fmt::format("trireme launch: refused a connection to port {}: {}", port(), why));
  }
}

void Gate::let_in() {
  for (int i = 0; i < kTurn; ++i) {
    auto connection = listener_.accept();
    if (!connection && !listener_.is_starved()) {
      return;
    }
    if (!connection) {  // no descriptor is free
      drop_oldest();
      break;
    }
    const Peer peer = connection->peer();
    if (const auto user = users_.user_of(connection->fd()); user && *user != ::getuid()) {
      continue;
    }
    if (strangers() >= kPlaces) {
      drop_oldest();
    }
    Stranger stranger{std::move(*connection), Doorkeeper(secret_), Clock::now()};
    if (tls_) {
      stranger.connection.encrypt(*tls_, TlsSide::listener);
    }
    stranger.connection.send(stranger.door.challenge());
    if (stays_open(stranger.connection)) {
      strangers_[peer.address].push_back(std::move(stranger));
    }
  }
  rests_until_ = Clock::now() + std::chrono::milliseconds(kRestMilliseconds);
}

void Gate::drop_oldest() {
  const auto most = std::max_element(
      strangers_.begin(), strangers_.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most != strangers_.end()) {
    most->second.pop_front();
    if (most->second.empty()) {
      strangers_.erase(most);
    }
  }
}

}  // namespace trireme

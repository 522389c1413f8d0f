// Ends of encrypted connections for tests: a gate that echoes, a caller, and a relay between them
// that sees, changes or cuts the bytes.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include "slurm/wire/gate.h"
#include "slurm/wire/handshake.h"

namespace trireme {

inline constexpr double kPatience = 20;  // seconds; reached only if something is wrong
inline constexpr const char* kHere = "127.0.0.1";
inline const std::string kCanary = "the canary that nobody but the two ends may see";

inline Connection next_caller(Listener& listener) {
  while (true) {
    if (auto connection = listener.accept()) {
      return std::move(*connection);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// Serves a gate on a thread of its own, answers each caller, and echoes one message of each.
class EchoGate {
 public:
  explicit EchoGate(LaunchSecret secret)
      : gate_(kHere, {}, std::move(secret)), thread_([this] { work(); }) {}
  ~EchoGate() {
    over_ = true;
    thread_.join();
  }
  EchoGate(const EchoGate&) = delete;
  EchoGate& operator=(const EchoGate&) = delete;
  int port() const { return gate_.port(); }
  int callers() const { return callers_; }
  // Returns why the connection of the last caller ended.
  Refusal trouble() {
    over_ = true;
    thread_.join();
    thread_ = std::thread([] {});
    return trouble_;
  }

 private:
  void work() {
    while (!over_ || gate_.strangers() > 0) {
      std::vector<pollfd> waiting;
      gate_.add_to(waiting);
      ::poll(waiting.data(), waiting.size(), gate_.patience(20));
      for (Gate::Caller& caller : gate_.look()) {
        ++callers_;
        caller.connection.trust();
        caller.connection.send(caller.welcome);
        if (const auto text = caller.connection.receive_one(kPatience)) {
          caller.connection.send(*text);
          caller.connection.drain(kPatience);
        }
        trouble_ = caller.connection.trouble();
      }
    }
  }

  Gate gate_;
  std::atomic<bool> over_ = false;
  std::atomic<int> callers_ = 0;
  Refusal trouble_;
  std::thread thread_;
};

// Passes the bytes of one connection on in both directions, through a function that may change
// them; a direction ends when the function leaves none.
class Relay {
 public:
  using Change = std::function<void(std::string& bytes, bool is_from_caller)>;
  Relay(int port, Change change)
      : port_(port), change_(std::move(change)), thread_([this] { work(); }) {}
  ~Relay() {
    over_ = true;
    thread_.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  int port() const { return listener_.port(); }

 private:
  void work() {
    std::optional<Connection> caller;
    while (!over_ && !(caller = listener_.accept())) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    std::optional<Connection> other = connect_to(kHere, port_, kPatience);
    while (!over_ && caller && other && pass(*caller, *other, true) &&
           pass(*other, *caller, false)) {
      std::array<pollfd, 2> waiting{{{caller->fd(), POLLIN, 0}, {other->fd(), POLLIN, 0}}};
      ::poll(waiting.data(), waiting.size(), 20);
    }
  }
  bool pass(Connection& from, Connection& to, bool is_from_caller) const {
    std::string bytes(64 << 10, '\0');
    const ssize_t got = ::recv(from.fd(), bytes.data(), bytes.size(), 0);
    if (got < 0) {
      return errno == EAGAIN;
    }
    bytes.resize(static_cast<std::size_t>(got));
    if (got > 0) {
      change_(bytes, is_from_caller);
    }
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t put = ::send(to.fd(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (put < 0 && errno != EAGAIN) {
        return false;
      }
      done += static_cast<std::size_t>(std::max<ssize_t>(put, 0));
    }
    return !bytes.empty();
  }

  int port_;
  Change change_;
  Listener listener_{kHere};
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// Calls, sends the text and returns what comes back, or why nothing does.
inline std::string echo(int port, const LaunchSecret& secret, const std::string& text,
                        ExitCode* code = nullptr) {
  Refusal refusal;
  auto connection =
      call({kHere}, port, secret, {.role = "agent", .node = "n1"}, kPatience, &refusal);
  std::optional<std::string> answer;
  if (connection) {
    connection->send(text);
    connection->drain(kPatience);
    answer = connection->receive_one(kPatience);
    refusal = connection->trouble();
  }
  if (code != nullptr) {
    *code = refusal.code;
  }
  return answer ? *answer : "refused: " + refusal.why;
}

}  // namespace trireme

// Gate accepts the connections of a launch's processes, and keeps callers apart until they have
// proved that they know the launch's secret (handshake.h). Anybody who reaches the port can
// connect, so strangers are limited: they take a bounded number of places, cost nothing while idle,
// and cannot keep others out.
//
// - At most kPlaces callers are unproved at a time. A further one replaces the oldest caller of the
//   address that has the most places.
// - The TLS handshake, if launch.tls is on, counts as part of the proof.
// - Callers of another user on this machine are disconnected at once (peer_users.h).
// - A turn accepts at most kTurn callers, and then the listener rests for kRestMilliseconds.
//
// Owned by one thread, which polls.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "slurm/wire/handshake.h"
#include "slurm/wire/peer_users.h"

namespace trireme {

class Gate {
 public:
  static constexpr std::size_t kPlaces = 256;
  static constexpr int kTurn = 64;
  static constexpr int kRestMilliseconds = 10;

  // A caller that knows the secret. `welcome` is the answer that completes its handshake.
  struct Caller {
    Connection connection;
    Hello hello;
    std::string welcome;
  };

  // Throws what TlsContext throws.
  Gate(const std::string& address, PortRange ports, LaunchSecret secret);

  int port() const { return listener_.port(); }
  // Adds the descriptors to poll. They exclude the listener while it rests.
  void add_to(std::vector<pollfd>& waiting) const;
  // Returns the time to poll, at most `most` milliseconds.
  int patience(int most) const;
  // Returns the callers that have proved themselves since the last call. Never waits.
  std::vector<Caller> look();
  // Returns the number of callers that have not proved themselves yet.
  std::size_t strangers() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Stranger {
    Connection connection;
    Doorkeeper door;
    Clock::time_point since;
  };

  void hear(std::vector<Caller>& callers);
  void report(const std::string& why);
  // Reports the trouble of a connection, if it has any. Returns whether it is still open.
  bool stays_open(const Connection& connection);
  bool is_late(const Stranger& stranger, Clock::time_point oldest);
  // Returns whether the stranger stays.
  bool hear(Stranger& stranger, std::vector<Caller>& callers);
  void let_in();
  void drop_oldest();
  bool rests() const { return Clock::now() < rests_until_; }

  Listener listener_;
  LaunchSecret secret_;
  std::optional<TlsContext> tls_;
  PeerUsers users_;
  std::map<std::uint32_t, std::list<Stranger>> strangers_;  // by address, oldest first
  Clock::time_point rests_until_{};
  int reported_ = 0;
};

}  // namespace trireme

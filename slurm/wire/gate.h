// Gate: where the processes of a launch call in. It listens, and keeps callers apart until they
// have proved that they know the launch's secret (handshake.h). Anybody who reaches the port can
// connect: strangers take a bounded number of places, wake nobody while they are idle, and keep
// nobody out.
//
// - At most kPlaces callers have yet to prove themselves. The next one takes the place of the
//   oldest one of the address that holds the most places.
// - Another user of this machine is sent away at once (peer_user.h).
// - A turn takes in at most kTurn callers, and then the listener rests for kRestMilliseconds.
//
// Owned by one thread, which polls.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include <poll.h>

#include "slurm/wire/handshake.h"
#include "slurm/wire/peer_user.h"

namespace trireme {

class Gate {
 public:
  static constexpr std::size_t kPlaces = 256;
  static constexpr int kTurn = 64;
  static constexpr int kRestMilliseconds = 10;

  // Somebody who knows the secret. `welcome` is the answer that lets them in.
  struct Caller {
    Connection connection;
    Hello hello;
    std::string welcome;
  };

  Gate(const std::string& address, PortRange ports, std::string secret);

  int port() const { return listener_.port(); }
  // What to poll. Not the listener while it rests.
  void add_to(std::vector<pollfd>& waiting) const;
  // How long to poll at most, where the owner has nothing to do for `most` milliseconds.
  int patience(int most) const;
  // Those who have proved themselves since the last call. Never waits.
  std::vector<Caller> look();
  // Callers who have yet to prove themselves.
  std::size_t strangers() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Stranger {
    Connection connection;
    Doorkeeper door;
    Clock::time_point since;
  };

  void hear(std::vector<Caller>& callers);
  // Whether it stays.
  bool hear(Stranger& stranger, std::vector<Caller>& callers);
  void let_in();
  void drop_oldest();
  bool rests() const { return Clock::now() < rests_until_; }

  Listener listener_;
  std::string secret_;
  PeerUsers users_;
  std::map<std::uint32_t, std::list<Stranger>> strangers_;  // by address; the oldest first
  Clock::time_point rests_until_{};
  int told_ = 0;
};

}  // namespace trireme

// Exchanges the first messages on a connection (secret.h), by which both sides learn that the other
// belongs to the launch before they believe anything else. Each object is used by one thread.
#pragma once

#include <optional>
#include <string>

#include "slurm/wire/connection.h"
#include "slurm/wire/messages.h"

namespace trireme {

// Doorkeeper is the listener's side, which never blocks: send challenge() first, then pass the
// answer to accept().
class Doorkeeper {
 public:
  explicit Doorkeeper(std::string secret) : secret_(std::move(secret)) {}
  std::string challenge();
  // Returns who the caller is, and the `welcome` to send. Throws DataError for a stranger.
  Hello accept(std::string_view text, std::string& welcome) const;

 private:
  std::string secret_;
  std::string nonce_;
};

// Connects as the caller, which blocks. `self` has neither nonce nor proof. Returns nullopt if the
// other side does not answer within `seconds` or does not know the secret.
std::optional<Connection> call(const std::vector<std::string>& addresses, int port,
                               const std::string& secret, Hello self, double seconds);

}  // namespace trireme

// Exchanges the first messages on a connection (secret.h), by which both sides learn that the other
// belongs to the launch before they believe anything else. In TLS, which comes first, the proofs
// also cover the connection, so that nobody can pass them on over two connections of his own. Each
// object is used by one thread.
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
  explicit Doorkeeper(LaunchSecret secret) : secret_(std::move(secret.text)) {}
  std::string challenge();
  // Returns who the caller is, and the `welcome` to send. binding: of the connection. Throws
  // DataError for a stranger.
  Hello accept(std::string_view text, std::string& welcome, std::string_view binding = "") const;

 private:
  std::string secret_;
  std::string nonce_;
};

// Connects as the caller, which blocks. `self` has neither nonce nor proof. Returns nullopt if the
// other side does not answer within `seconds` or does not know the secret; `refusal` then says why,
// if something has answered.
std::optional<Connection> call(const std::vector<std::string>& addresses, int port,
                               const LaunchSecret& secret, Hello self, double seconds,
                               Refusal* refusal = nullptr);

}  // namespace trireme

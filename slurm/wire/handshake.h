// The first words on a connection (secret.h): both sides know that the other belongs to the launch
// before anything else is believed. One thread each.
#pragma once

#include <optional>
#include <string>

#include "slurm/wire/connection.h"
#include "slurm/wire/messages.h"

namespace trireme {

// The listener's side, without waiting: send challenge() first, then give what comes to accept().
class Doorkeeper {
 public:
  explicit Doorkeeper(std::string secret) : secret_(std::move(secret)) {}
  std::string challenge();
  // DataError for a stranger; else who it is, and `welcome` is to be sent.
  Hello accept(std::string_view text, std::string& welcome) const;

 private:
  std::string secret_;
  std::string nonce_;
};

// The caller's side, waiting. `self` without nonce and proof. Nothing where the other side is not
// there within `seconds`, or does not know the secret.
std::optional<Connection> call(const std::vector<std::string>& addresses, int port,
                               const std::string& secret, Hello self, double seconds);

}  // namespace trireme

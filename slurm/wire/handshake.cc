#include "slurm/wire/handshake.h"

#include "slurm/wire/secret.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// Returns all that the caller says about itself. The proof covers it, so that nobody on the way can
// change its port or addresses.
std::string who(Hello hello) {
  hello.proof.clear();
  return to_json(hello);
}

// Returns whether the other side has proved that it knows the secret.
bool greet(Connection& connection, const std::string& secret, Hello self, double seconds) {
  try {
    const auto first = connection.receive_one(seconds);
    if (!first) {
      return false;
    }
    const Challenge challenge = parse_challenge(*first);
    self.nonce = fresh_secret();
    self.proof = proof_of(secret, "caller", challenge.nonce, self.nonce, who(self));
    connection.send(to_json(self));
    const auto answer = connection.receive_one(seconds);
    return answer &&
           same_proof(parse_welcome(*answer).proof,
                      proof_of(secret, "listener", self.nonce, challenge.nonce, who(self)));
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace

std::string Doorkeeper::challenge() {
  nonce_ = fresh_secret();
  return to_json(Challenge{nonce_});
}

Hello Doorkeeper::accept(std::string_view text, std::string& welcome) const {
  Hello hello = parse_hello(text);
  if (nonce_.empty() ||
      !same_proof(hello.proof, proof_of(secret_, "caller", nonce_, hello.nonce, who(hello)))) {
    throw DataError("the caller does not know the secret of this launch");
  }
  welcome = to_json(Welcome{proof_of(secret_, "listener", hello.nonce, nonce_, who(hello))});
  return hello;
}

std::optional<Connection> call(const std::vector<std::string>& addresses, int port,
                               const std::string& secret, Hello self, double seconds) {
  for (const std::string& address : addresses) {
    auto connection = connect_to(address, port, seconds);
    if (connection && greet(*connection, secret, self, seconds)) {
      connection->trust();
      return connection;
    }
  }
  return std::nullopt;
}

}  // namespace trireme

#include "slurm/wire/handshake.h"

#include "slurm/wire/secret.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// Returns all that the caller says about itself. The proof covers it, so that nobody on the way can
// change its port or addresses.
std::string who(Hello hello, std::string_view binding) {
  hello.proof.clear();
  return to_json(hello).append(binding);
}

// Says why no message has come.
Refusal silence_of(const Connection& connection, double seconds) {
  if (connection.closed()) {
    return connection.trouble();
  }
  return {connection.is_opening()
              ? fmt::format("there was no answer to the TLS handshake within {:g} s", seconds)
              : fmt::format("the other side accepted the connection, but said nothing for {:g} s: "
                            "launch.tls must be the same on both sides",
                            seconds),
          ExitCode::hang};
}

// Returns whether the other side has proved that it knows the secret, and otherwise why not.
std::optional<Refusal> greet(Connection& connection, const std::string& secret, Hello self,
                             double seconds) {
  try {
    const auto first = connection.receive_one(seconds);
    if (!first) {
      return silence_of(connection, seconds);
    }
    const Challenge challenge = parse_challenge(*first);
    self.nonce = fresh_secret();
    const std::string self_said = who(self, connection.binding());
    self.proof = proof_of(secret, "caller", challenge.nonce, self.nonce, self_said);
    connection.send(to_json(self));
    const auto answer = connection.receive_one(seconds);
    if (!answer) {
      return silence_of(connection, seconds);
    }
    if (!same_proof(parse_welcome(*answer).proof,
                    proof_of(secret, "listener", self.nonce, challenge.nonce, self_said))) {
      return Refusal{"the other side does not know the secret of this launch", ExitCode::refused};
    }
    return std::nullopt;
  } catch (const DataError& error) {
    return Refusal{error.what(), error.exit_code()};
  }
}

}  // namespace

std::string Doorkeeper::challenge() {
  nonce_ = fresh_secret();
  return to_json(Challenge{nonce_});
}

Hello Doorkeeper::accept(std::string_view text, std::string& welcome,
                         std::string_view binding) const {
  Hello hello = parse_hello(text);
  if (nonce_.empty() || !same_proof(hello.proof, proof_of(secret_, "caller", nonce_, hello.nonce,
                                                          who(hello, binding)))) {
    throw DataError("the caller does not know the secret of this launch");
  }
  welcome =
      to_json(Welcome{proof_of(secret_, "listener", hello.nonce, nonce_, who(hello, binding))});
  return hello;
}

std::optional<Connection> call(const std::vector<std::string>& addresses, int port,
                               const LaunchSecret& secret, Hello self, double seconds,
                               Refusal* refusal) {
  std::optional<TlsContext> context;
  if (secret.tls.is_on) {
    context.emplace(secret);
  }
  for (const std::string& address : addresses) {
    auto connection = connect_to(address, port, seconds);
    if (!connection) {
      continue;
    }
    if (context) {
      connection->encrypt(*context, TlsSide::caller);
    }
    const std::optional<Refusal> refused = greet(*connection, secret.text, self, seconds);
    if (!refused) {
      connection->trust();
      return connection;
    }
    if (refusal != nullptr && !refused->why.empty()) {
      *refusal = {fmt::format("{} port {}: {}", address, port, refused->why), refused->code};
    }
  }
  return std::nullopt;
}

}  // namespace trireme

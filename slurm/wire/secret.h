// The secret of a launch: a process that knows it belongs to the launch. The secret never travels
// over the network: each side proves that it knows the secret by authenticating a random number
// (nonce) chosen by the other side.
//
//   listener -> caller   challenge: nonce
//   caller -> listener   hello: who it is, its own nonce, proof("caller", both nonces, who)
//   listener -> caller   welcome: proof("listener", both nonces, who)
#pragma once

#include <string>
#include <string_view>

namespace trireme {

// Returns 64 hexadecimal digits from the system's random source.
std::string fresh_secret();
// Returns the HMAC-SHA-256 of the other arguments under the secret, as 64 hexadecimal digits.
std::string proof_of(std::string_view secret, std::string_view side, std::string_view their_nonce,
                     std::string_view own_nonce, std::string_view who);
// Compares in a time that depends on the lengths only.
bool same_proof(std::string_view a, std::string_view b);

}  // namespace trireme

// The secret of a launch identifies the processes that belong to it. It is never sent over the
// network: each side proves that it knows the secret by using it on a fresh number from the other
// side.
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
// Computes SHA-256 with a key, in the nested form of HMAC (RFC 2104). secret: 64 digits.
std::string proof_of(std::string_view secret, std::string_view side, std::string_view their_nonce,
                     std::string_view own_nonce, std::string_view who);
// Takes the same time for a wrong text as for the right one.
bool same_proof(std::string_view a, std::string_view b);

}  // namespace trireme

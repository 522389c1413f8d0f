// The secret of a launch: who knows it belongs to the launch. It never goes over the network: each
// side proves that it knows it, over a fresh number of the other.
//
//   listener -> caller   challenge: nonce
//   caller -> listener   hello: who it is, its own nonce, proof("caller", both nonces, who)
//   listener -> caller   welcome: proof("listener", both nonces, who)
#pragma once

#include <string>
#include <string_view>

namespace trireme {

// 64 hexadecimal digits, from the system's random source.
std::string fresh_secret();
// Keyed SHA-256 in the nested form of HMAC (RFC 2104): secret: 64 digits.
std::string proof_of(std::string_view secret, std::string_view side, std::string_view their_nonce,
                     std::string_view own_nonce, std::string_view who);
// Takes as long for a wrong text as for the right one.
bool same_proof(std::string_view a, std::string_view b);

}  // namespace trireme

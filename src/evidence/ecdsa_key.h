// Private keys of ECDSA on the curve P-256, as they stand in files: PKCS #8 (RFC 5208) with the
// ECPrivateKey of RFC 5915, as `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`
// writes it. Its length is fixed, so that no ASN.1 parser reads it:
//
//   prefix (36 bytes)   the private key, a number (32)   prefix (5)   the public key, a point (65)
//
// Pure functions; private to src/evidence.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "src/evidence/public_key.h"

namespace trireme {

using EcdsaSecret = std::array<unsigned char, 32>;  // big-endian; the caller wipes it

EcdsaSecret generate_ecdsa_secret();
// Returns the public key of the secret, or nothing if the number is 0 or too large.
std::optional<PublicKey> public_key_of_ecdsa(const EcdsaSecret& secret);
// Returns the contents of a file; the caller wipes them.
std::string to_pkcs8(const EcdsaSecret& secret, const PublicKey& public_key);
// Returns whether the bytes have the form above, whatever the numbers are. Then `secret` is set.
bool parse_pkcs8(std::string_view der, EcdsaSecret& secret);
// Returns whether the bytes, which have the form above, end with this public key.
bool ends_with_public_key(std::string_view der, const PublicKey& public_key);
// Returns a signature with SHA-256, in DER. Precondition: the secret has a public key.
std::string sign_with_ecdsa(const EcdsaSecret& secret, std::string_view message);

}  // namespace trireme

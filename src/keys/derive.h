// Derives keys with OpenSSL's key derivation functions, for the other files of this folder.
#pragma once

#include <string_view>

#include <openssl/params.h>

#include "src/keys/secret.h"

namespace trireme {

// Fills `derived` with the output of the function of this name (EVP_KDF). Returns false if OpenSSL
// lacks the function, or refuses the parameters, or has too little memory.
[[nodiscard]] bool derive_with(const char* function, const OSSL_PARAM* parameters, Secret& derived);

// Returns a parameter that refers to these bytes.
OSSL_PARAM octets_parameter(const char* name, std::string_view bytes);

}  // namespace trireme

// Opens wrapping keys by their URIs, which name a key without disclosing it, so that they may stand
// in configurations and on command lines:
//
//   file:PATH               a key file (key_file.h)
//   passphrase-file:PATH    a passphrase, the first line of a file (passphrase_key.h)
//   passphrase:             a passphrase that is asked for on the terminal (passphrase_key.h)
//   keyring:DESCRIPTION     a key in the keyring of the Linux kernel (keyring_key.h)
//   pkcs11:...              an AES key in a token (pkcs11_uri.h, token_key.h)
//
// Relative paths are relative to the working folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/keys/wrapping_key.h"

namespace trireme {

// Throws ConfigError for a text that is no such URI, and what the key's class says.
std::unique_ptr<WrappingKey> open_key(const std::string& uri);
// Returns the secret in a word of a command line that somebody wrote into a URI by mistake,
// although it is then refused: what follows `passphrase:`, or `pin-value=` up to `&`. Returns "" if
// there is none. Pure function.
std::string_view secret_in_uri(std::string_view word);
// Throws ConfigError unless open_key() would accept the form of the text.
void check_key_uri(const std::string& uri);

}  // namespace trireme

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

#include "src/keys/wrapping_key.h"

namespace trireme {

// Throws ConfigError for a text that is no such URI, and what the key's class says.
std::unique_ptr<WrappingKey> open_key(const std::string& uri);
// Throws ConfigError unless open_key() would accept the form of the text.
void check_key_uri(const std::string& uri);

}  // namespace trireme

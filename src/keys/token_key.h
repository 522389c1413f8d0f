// A token key is an AES-256 key in a token (PKCS#11), which encrypts and decrypts data keys and
// does not let its own bytes out. URIs name it (pkcs11_uri.h).
//
// The token wraps with CKM_AES_GCM as wrap_with() does (wrapping_key.h). The nonce is random, from
// this process; a token that chooses nonces itself and writes them back may do so. A recipient has
//
//   kind         "pkcs11"
//   key          32 hexadecimal digits: the first of the SHA-256 of
//                "trireme token key\n" + SERIAL + "\n" + OBJECT
//   name         the label of the key
//   wrapped      nonce (12 bytes), encrypted key (32), tag (16)
//   parameters   {"mechanism": "aes-gcm", "object": OBJECT}
//
// where SERIAL is the token's, and OBJECT is "id:" and the hexadecimal digits of the key's id, or
// "label:" and its label if it has no id. A copy of the key under the same id in another token,
// such as a spare, has another identity but unwraps as well.
#pragma once

#include <memory>
#include <string_view>

#include "src/keys/wrapping_key.h"

namespace trireme {

// Logs in and finds the key. Says on standard error if the token would hand out the key. Throws
//   ConfigError    for a wrong URI or module, and if several tokens or keys fit
//   NotFound       if the token, the key or the file of the PIN is absent
//   PolicyError    if the PIN is wrong or locked, or the key may not be used for this
//   DeviceError    if the token fails
// The key's wrap() and unwrap() log in once more if the token was reset, and otherwise throw
// DeviceError.
std::unique_ptr<WrappingKey> open_token_key(std::string_view uri);

// Makes the key that the URI names in the token, which generates it and will never hand it out, and
// opens it. The URI needs an object; if it has no id, the key gets a random one. Throws PolicyError
// if there is such a key, and what open_token_key() throws.
std::unique_ptr<WrappingKey> create_token_key(std::string_view uri);

}  // namespace trireme

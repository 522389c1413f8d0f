// A TokenSigner signs with a private key for ECDSA on the curve P-256 that is in a token (PKCS#11)
// and does not leave it. URIs name it (pkcs11_uri.h). The public key has to be in the token as
// well, with the same id, or the same label if the key has no id.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace trireme {

class TokenSigner {
 public:
  virtual ~TokenSigner() = default;
  // Returns the 65 bytes of the public key: 4, X and Y.
  virtual const std::string& point() const = 0;
  // Returns the 64 bytes of r and s over the SHA-256 of the message, which the token computes with
  // CKM_ECDSA. Logs in once more if the token was reset, and otherwise throws DeviceError. Callable
  // from any thread.
  virtual std::string sign(std::string_view message) const = 0;
  // Returns what messages call the key.
  virtual std::string title() const = 0;
};

// Logs in and finds the key. Says on standard error if the token would hand out the key. Throws
//   ConfigError    for a wrong URI or module, and if several tokens or keys fit
//   NotFound       if the token, the key, its public key or the file of the PIN is absent
//   PolicyError    if the PIN is wrong or locked, or the key is another one or may not sign
//   DeviceError    if the token fails
std::unique_ptr<TokenSigner> open_token_signer(std::string_view uri);

// Makes the key that the URI names in the token, which generates it and will never hand it out, and
// opens it. The URI needs an object; if it has no id, the key gets a random one. Throws PolicyError
// if there is such a key, and what open_token_signer() throws.
std::unique_ptr<TokenSigner> create_token_signer(std::string_view uri);

}  // namespace trireme

// Keys that sign evidence. They are in files, as other tools, such as openssl, write them, or in a
// token (HSM), which signs and does not let the private key out (src/keys/token_signer.h):
//
//   private key   Ed25519 (RFC 8410) or ECDSA on P-256 (ecdsa_key.h): PKCS #8 in PEM, not
//                 encrypted; mode 0600
//   token         ECDSA on P-256, named by a URI: pkcs11:token=NAME;object=NAME?...
//   public key    SubjectPublicKeyInfo in PEM. Its identity is the SHA-256 of the DER
//
// The contents of these files have fixed lengths, so that they are read without an ASN.1 parser.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "src/evidence/public_key.h"
#include "src/evidence/trust_file.h"

namespace trireme {

class TokenSigner;

// Returns whether the text names a key in a token instead of a file.
bool names_token(const std::filesystem::path& key);

// A SigningKey holds a private key, which is wiped from memory at its destruction, or a session
// with a token. Several threads may sign at once.
class SigningKey {
 public:
  using Seed = std::array<unsigned char, 32>;

  // Ed25519.
  explicit SigningKey(const Seed& seed);
  // The token signs one text to prove that the public key in it belongs to the private one. Throws
  // PolicyError if it does not.
  explicit SigningKey(std::unique_ptr<TokenSigner> token);
  static SigningKey generate(PublicKey::Kind kind = PublicKey::Kind::ed25519);
  // key: a file, or the URI of a key in a token. Throws PolicyError if anyone but its owner may
  // read or change the file, or if the owner is neither this user nor root; DataError if it holds
  // no such key; and what open_token_signer() throws.
  static SigningKey load(const std::filesystem::path& key);
  SigningKey(SigningKey&& other) noexcept;
  SigningKey& operator=(SigningKey&& other) noexcept;
  ~SigningKey();

  // Writes a new file that only this user can read. Throws PolicyError if the path exists. Not for
  // keys in tokens.
  void save(const std::filesystem::path& path) const;
  const PublicKey& public_key() const { return public_key_; }
  // Returns a signature as PublicKey::verifies() takes it. Throws DeviceError if a token has gone
  // away.
  std::string sign(std::string_view message) const;

 private:
  SigningKey(const Seed& secret, PublicKey public_key);

  Seed secret_{};                       // the seed of Ed25519, or the secret number of ECDSA
  std::unique_ptr<TokenSigner> token_;  // null for a key from a file
  PublicKey public_key_;
};

}  // namespace trireme

// A PublicKey checks signatures of evidence: Ed25519 (RFC 8032), or ECDSA on the curve P-256 with
// SHA-256 (FIPS 186-5), which is that of keys in tokens. Its form in files and for its identity
// is the DER of SubjectPublicKeyInfo, which has a fixed length for each of the two, 44 and 91
// bytes, so that no ASN.1 parser reads it:
//
//   Ed25519   prefix (12 bytes, RFC 8410)   the key (32)
//   P-256     prefix (26 bytes, RFC 5480)   04, X and Y of the point (65)
//
// A value.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

class PublicKey {
 public:
  enum class Kind { ed25519, ecdsa_p256 };
  using Bytes = std::array<unsigned char, 32>;  // of Ed25519
  static constexpr std::size_t kPointBytes = 65;
  static constexpr const char* kPemLabel = "PUBLIC KEY";

  explicit PublicKey(const Bytes& bytes);
  // Returns nothing if the 65 bytes are not a point of P-256 in its uncompressed form.
  static std::optional<PublicKey> of_point(std::string_view point);
  // Returns nothing for anything but the two forms above, whether or not the key is weak.
  static std::optional<PublicKey> of_der(std::string_view der);

  Kind kind() const { return kind_; }
  // Returns whether anyone can make signatures for an Ed25519 key, or its encoding is not
  // canonical: RFC 8032, section 5.1.3. No key generator returns such bytes. A point of P-256 is
  // never weak, since the order of the curve is a prime.
  bool is_weak() const;
  // Returns 64 hexadecimal digits, the SHA-256 of the DER.
  const std::string& id() const { return id_; }
  // signature: 64 bytes of Ed25519, or Ecdsa-Sig-Value in DER (RFC 3279, section 2.2.3).
  bool verifies(std::string_view message, std::string_view signature) const;
  std::string to_der() const;
  std::string to_pem() const;

 private:
  PublicKey(Kind kind, std::string_view raw);

  Kind kind_;
  std::string raw_;  // what follows the prefix
  std::string id_;
};

// No signature of such a key has more bytes.
inline constexpr std::size_t kMostSignatureBytes = 72;

// Returns whether the bytes have the length of a signature of Ed25519, or that which the DER of one
// of ECDSA states. Anything else was cut or is no signature.
bool has_signature_form(std::string_view signature);

// Returns the signature in DER for the 64 bytes of r and s, as tokens make it.
std::string ecdsa_signature(std::string_view r_and_s);

}  // namespace trireme

// Ed25519 keys (RFC 8032), with which evidence is signed, and their files. The files are those of
// other tools, such as openssl:
//
//   private key   PKCS #8 in PEM (RFC 8410), not encrypted; mode 0600
//   public key    SubjectPublicKeyInfo in PEM. Its identity is the SHA-256 of the 44 bytes of DER
//   trust file    any number of public keys. A line that begins with # before a key names it
//
// The contents of Ed25519's keys have fixed lengths, so that the files are read without an ASN.1
// parser.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// A PublicKey is a value.
class PublicKey {
 public:
  static constexpr std::size_t kBytes = 32;
  using Bytes = std::array<unsigned char, kBytes>;

  explicit PublicKey(const Bytes& bytes);
  // Returns whether the bytes are one of the encodings with which anyone can make signatures, or
  // one that is not canonical: RFC 8032, section 5.1.3. No key generator returns such bytes.
  static bool is_weak(const Bytes& bytes);
  // Returns 64 hexadecimal digits.
  const std::string& id() const { return id_; }
  bool verifies(std::string_view message, std::string_view signature) const;
  std::string to_pem() const;

 private:
  Bytes bytes_;
  std::string id_;
};

// A SigningKey holds a private key, which is wiped from memory at its destruction. Signing does not
// change it, so that several threads may sign at once.
class SigningKey {
 public:
  using Seed = std::array<unsigned char, 32>;

  explicit SigningKey(const Seed& seed);
  static SigningKey generate();
  // Throws PolicyError if anyone but its owner may read or change the file, or if the owner is
  // neither this user nor root. Throws DataError if it holds no such key.
  static SigningKey load(const std::filesystem::path& path);
  SigningKey(SigningKey&& other) noexcept;
  SigningKey& operator=(SigningKey&& other) noexcept;
  ~SigningKey();

  // Writes a new file that only this user can read. Throws PolicyError if the path exists.
  void save(const std::filesystem::path& path) const;
  const PublicKey& public_key() const { return public_key_; }
  // Returns the 64 bytes of a signature.
  std::string sign(std::string_view message) const;

 private:
  Seed seed_;
  PublicKey public_key_;
};

struct TrustedKey {
  PublicKey key;
  std::string name;  // as the trust file says; may be empty
};

// Reads a trust file, or the file of one public key. Throws ConfigError if it is another file, with
// a private key or without any PEM, and DataError that names `origin` and the line if anything else
// than keys and comments stands in it.
std::vector<TrustedKey> parse_trusted_keys(std::string_view text, const std::string& origin);
std::vector<TrustedKey> load_trusted_keys(const std::filesystem::path& path);

// Returns "Site A (key 2f6c1cb3f1f1ac1e)", or "key ..." if it has no name.
std::string name_of_key(const TrustedKey& key);
// Returns the first 16 digits of the identity of a key, which people compare.
std::string short_id(const std::string& key_id);

}  // namespace trireme

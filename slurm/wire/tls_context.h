// TlsContext holds what the TLS connections of a process have in common: TLS 1.3 and nothing older,
// one cipher suite (TLS_AES_256_GCM_SHA384), no resumption, and what authenticates both sides:
//
// - without certificates, an external pre-shared key (RFC 8446, section 4.2.11) with an ephemeral
//   Diffie-Hellman exchange (psk_dhe_ke). The key is HMAC-SHA-256(secret, "trireme launch tls
//   psk"), its identity "trireme-launch". There is no certificate to fall back to.
// - with certificates, those of the site, which both sides demand of each other. Names in them are
//   not compared: that the other side belongs to this launch is proved afterwards (handshake.h).
//
// Used by one thread.
#pragma once

#include <array>
#include <memory>

#include "slurm/wire/launch_secret.h"
#include "src/base/unique_handle.h"

struct ssl_ctx_st;

namespace trireme {

struct TlsContextTraits {
  using Handle = ssl_ctx_st*;
  static Handle none() { return nullptr; }
  static void close(Handle context);
};

class TlsContext {
 public:
  // Reads the files that secret.tls names. Throws NotFound or IoError if one cannot be read,
  // ConfigError if one is not what it should be, and PolicyError if others may read the key or if
  // the certificate is not valid now.
  explicit TlsContext(const LaunchSecret& secret);

  ssl_ctx_st* get() const { return context_.get(); }
  bool uses_certificates() const { return uses_certificates_; }

 private:
  struct WipedKey {
    std::array<unsigned char, 32> bytes{};
    ~WipedKey();
  };

  void use_key(const std::string& secret);
  void use_certificates(const TlsSetting& setting);
  std::unique_ptr<WipedKey> key_;  // the address is known to OpenSSL; null with certificates
  bool uses_certificates_ = false;
  UniqueHandle<TlsContextTraits> context_;
};

}  // namespace trireme

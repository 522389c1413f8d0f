#include "slurm/wire/tls_context.h"

#include <string_view>

#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "src/base/check.h"
#include "src/base/file.h"
#include "src/base/private_file.h"

namespace trireme {
namespace {

constexpr std::string_view kIdentity = "trireme-launch";
constexpr std::string_view kPskLabel = "trireme launch tls psk";
constexpr const char* kCipherSuite = "TLS_AES_256_GCM_SHA384";
constexpr std::int64_t kMostPemBytes = 1 << 20;

struct SessionTraits {
  using Handle = SSL_SESSION*;
  static Handle none() { return nullptr; }
  static void close(Handle session) { SSL_SESSION_free(session); }
};
struct MemoryTraits {
  using Handle = BIO*;
  static Handle none() { return nullptr; }
  static void close(Handle memory) { BIO_free(memory); }
};
struct PrivateKeyTraits {
  using Handle = EVP_PKEY*;
  static Handle none() { return nullptr; }
  static void close(Handle key) { EVP_PKEY_free(key); }
};
struct VerificationTraits {
  using Handle = X509_STORE_CTX*;
  static Handle none() { return nullptr; }
  static void close(Handle verification) { X509_STORE_CTX_free(verification); }
};

// Each handshake gets a session of its own, since sessions expire minutes after they were made.
SSL_SESSION* new_session(SSL* ssl, const std::array<unsigned char, 32>& key) {
  UniqueHandle<SessionTraits> session(SSL_SESSION_new());
  constexpr std::array<unsigned char, 2> kSuite = {0x13, 0x02};  // TLS_AES_256_GCM_SHA384
  const SSL_CIPHER* const suite = SSL_CIPHER_find(ssl, kSuite.data());
  const bool is_made = session && suite != nullptr &&
                       SSL_SESSION_set1_master_key(session.get(), key.data(), key.size()) == 1 &&
                       SSL_SESSION_set_cipher(session.get(), suite) == 1 &&
                       SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  return is_made ? session.release() : nullptr;
}

const std::array<unsigned char, 32>& key_of(SSL* ssl) {
  return *static_cast<const std::array<unsigned char, 32>*>(
      SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
}

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* identity_bytes,
              SSL_SESSION** session) {
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *identity_bytes = kIdentity.size();
  *session = new_session(ssl, key_of(ssl));
  return *session != nullptr ? 1 : 0;
}

int find_key(SSL* ssl, const unsigned char* identity, std::size_t identity_bytes,
             SSL_SESSION** session) {
  const bool is_ours =
      std::string_view(reinterpret_cast<const char*>(identity), identity_bytes) == kIdentity;
  *session = is_ours ? new_session(ssl, key_of(ssl)) : nullptr;
  return !is_ours || *session != nullptr ? 1 : 0;
}

// Keys under a passphrase are refused instead of asking for it on a terminal.
int no_passphrase(char*, int, int, void*) { return 0; }

void use_private_key(SSL_CTX* context, const std::filesystem::path& path) {
  const PrivateFile file(path, kMostPemBytes, "the private key of launch.tls");
  file.check_owner_only();
  const UniqueHandle<MemoryTraits> memory(
      BIO_new_mem_buf(file.text().data(), static_cast<int>(file.text().size())));
  const UniqueHandle<PrivateKeyTraits> key(
      PEM_read_bio_PrivateKey(memory.get(), nullptr, no_passphrase, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    throw ConfigError(
        fmt::format("launch.tls.key: {} is not the private key of launch.tls.certificate, in PEM "
                    "without a passphrase",
                    path.string()));
  }
}

// A launch with a certificate that nobody would accept ends at once, and not when the agents have
// failed to connect.
void check_own_certificate(SSL_CTX* context, const TlsSetting& setting) {
  const UniqueHandle<VerificationTraits> verification(X509_STORE_CTX_new());
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  check(X509_STORE_CTX_init(verification.get(), SSL_CTX_get_cert_store(context),
                            SSL_CTX_get0_certificate(context), chain) == 1,
        "OpenSSL can verify a certificate");
  if (X509_verify_cert(verification.get()) != 1) {
    throw PolicyError(fmt::format(
        "launch.tls.certificate: {} is not valid: {}: renew it, or name the authority that has "
        "issued it in launch.tls.ca",
        setting.certificate.string(),
        X509_verify_cert_error_string(X509_STORE_CTX_get_error(verification.get()))));
  }
}

}  // namespace

void TlsContextTraits::close(Handle context) { SSL_CTX_free(context); }

TlsContext::WipedKey::~WipedKey() { OPENSSL_cleanse(bytes.data(), bytes.size()); }

TlsContext::TlsContext(const LaunchSecret& secret)
    : uses_certificates_(secret.tls.uses_certificates()), context_(SSL_CTX_new(TLS_method())) {
  SSL_CTX* const context = context_.get();
  check(context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
            SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
            SSL_CTX_set_ciphersuites(context, kCipherSuite) == 1 &&
            SSL_CTX_set_num_tickets(context, 0) == 1,
        "OpenSSL has TLS 1.3 with AES-256-GCM");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (uses_certificates_) {
    use_certificates(secret.tls);
  } else {
    use_key(secret.text);
  }
}

void TlsContext::use_key(const std::string& secret) {
  key_ = std::make_unique<WipedKey>();
  unsigned int bytes = 0;
  check(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
             reinterpret_cast<const unsigned char*>(kPskLabel.data()), kPskLabel.size(),
             key_->bytes.data(), &bytes) != nullptr &&
            bytes == key_->bytes.size(),
        "OpenSSL has HMAC-SHA-256");
  SSL_CTX_set_app_data(context_.get(), &key_->bytes);
  SSL_CTX_set_psk_use_session_callback(context_.get(), offer_key);
  SSL_CTX_set_psk_find_session_callback(context_.get(), find_key);
}

void TlsContext::use_certificates(const TlsSetting& setting) {
  SSL_CTX* const context = context_.get();
  for (const std::filesystem::path& path : {setting.certificate, setting.ca}) {
    (void)read_file(path, kMostPemBytes);  // for an error that says what is wrong with the file
  }
  if (SSL_CTX_use_certificate_chain_file(context, setting.certificate.c_str()) != 1) {
    throw ConfigError(fmt::format("launch.tls.certificate: {} holds no certificate in PEM",
                                  setting.certificate.string()));
  }
  if (SSL_CTX_load_verify_locations(context, setting.ca.c_str(), nullptr) != 1) {
    throw ConfigError(
        fmt::format("launch.tls.ca: {} holds no certificate in PEM", setting.ca.string()));
  }
  use_private_key(context, setting.key);
  check_own_certificate(context, setting);
  ERR_clear_error();
}

}  // namespace trireme

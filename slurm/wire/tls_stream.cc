#include "slurm/wire/tls_stream.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "src/base/check.h"

namespace trireme {
namespace {

// OpenSSL's own socket BIO would raise SIGPIPE when the other side is gone.
int socket_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int write_to_socket(BIO* bio, const char* from, int bytes) {
  BIO_clear_retry_flags(bio);
  const auto put = ::send(socket_of(bio), from, static_cast<std::size_t>(bytes), MSG_NOSIGNAL);
  if (put < 0 && (errno == EAGAIN || errno == EINTR)) {
    BIO_set_retry_write(bio);
  }
  return static_cast<int>(put);
}

int read_from_socket(BIO* bio, char* to, int bytes) {
  BIO_clear_retry_flags(bio);
  const auto got = ::recv(socket_of(bio), to, static_cast<std::size_t>(bytes), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    BIO_set_retry_read(bio);
  }
  return static_cast<int>(got);
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "launch socket");
    check(made != nullptr && BIO_meth_set_write(made, write_to_socket) == 1 &&
              BIO_meth_set_read(made, read_from_socket) == 1 &&
              BIO_meth_set_ctrl(made, control_socket) == 1,
          "OpenSSL can use a socket of ours");
    return made;
  }();
  return method;
}

bool is_one_of(int reason, std::initializer_list<int> reasons) {
  return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
}

bool means_plain(int reason) {
  return is_one_of(
      reason, {SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST,
               SSL_R_PACKET_LENGTH_TOO_LONG, SSL_R_RECORD_LENGTH_MISMATCH, SSL_R_BAD_RECORD_TYPE});
}

bool means_old_version(int reason) {
  return is_one_of(reason, {SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW,
                            SSL_R_NO_PROTOCOLS_AVAILABLE, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION,
                            SSL_R_INAPPROPRIATE_FALLBACK, SSL_R_WRONG_SSL_VERSION});
}

bool means_refused_certificate(int reason) {
  return is_one_of(reason,
                   {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
                    SSL_R_TLSV1_ALERT_UNKNOWN_CA, SSL_R_SSLV3_ALERT_BAD_CERTIFICATE});
}

bool means_wrong_key(int reason) {
  return is_one_of(
      reason, {SSL_R_BINDER_DOES_NOT_VERIFY, SSL_R_BAD_PSK, SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM,
               SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SUITABLE_KEY_SHARE,
               SSL_R_MISSING_PSK_KEX_MODES_EXTENSION, SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER,
               SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, SSL_R_TLSV1_ALERT_DECRYPT_ERROR,
               SSL_R_CERTIFICATE_VERIFY_FAILED, SSL_R_MISSING_SIGALGS_EXTENSION});
}

}  // namespace

void TlsStreamTraits::close(Handle stream) { SSL_free(stream); }

TlsStream::TlsStream(const TlsContext& context, TlsSide side, int socket)
    : stream_(SSL_new(context.get())), uses_certificates_(context.uses_certificates()) {
  BIO* const bio = BIO_new(socket_method());
  check(stream_.get() != nullptr && bio != nullptr, "OpenSSL has memory for a connection");
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(bio, 1);
  SSL_set_bio(stream_.get(), bio, bio);
  if (side == TlsSide::listener) {
    SSL_set_accept_state(stream_.get());
    // Without certificates, the listener has none either, so that nothing but the key is accepted.
    SSL_set_verify(
        stream_.get(),
        uses_certificates_ ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_NONE,
        nullptr);
  } else {
    SSL_set_connect_state(stream_.get());
    SSL_set_verify(stream_.get(), SSL_VERIFY_PEER, nullptr);
  }
}

std::ptrdiff_t TlsStream::read(char* to, std::size_t bytes) {
  if (!trouble_.why.empty()) {
    return -1;
  }
  ERR_clear_error();
  return judge(
      SSL_read(stream_.get(), to, static_cast<int>(std::min<std::size_t>(bytes, INT_MAX))));
}

std::ptrdiff_t TlsStream::write(std::string_view from) {
  if (!trouble_.why.empty()) {
    return -1;
  }
  ERR_clear_error();
  return judge(SSL_write(stream_.get(), from.data(),
                         static_cast<int>(std::min<std::size_t>(from.size(), INT_MAX))));
}

std::ptrdiff_t TlsStream::judge(int result) {
  if (!is_open_ && SSL_is_init_finished(stream_.get()) == 1) {
    note_open();
    if (!is_open_) {
      return -1;
    }
  }
  if (result > 0) {
    return result;
  }
  const int code = SSL_get_error(stream_.get(), result);
  if (code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE) {
    return 0;
  }
  if (code == SSL_ERROR_SSL) {
    trouble_ = reason();
  }
  ERR_clear_error();
  return -1;
}

// Never trusts that OpenSSL has authenticated the other side as it should: an error in how it is
// set up would otherwise go unnoticed.
void TlsStream::note_open() {
  const bool is_known = uses_certificates_ ? SSL_get0_peer_certificate(stream_.get()) != nullptr &&
                                                 SSL_get_verify_result(stream_.get()) == X509_V_OK
                                           : SSL_session_reused(stream_.get()) == 1;
  is_open_ = is_known && SSL_version(stream_.get()) == TLS1_3_VERSION;
  if (!is_open_) {
    trouble_ = {"the other side of a TLS connection has not authenticated itself",
                ExitCode::refused};
  }
}

Refusal TlsStream::reason() const {
  const unsigned long error = ERR_peek_error();
  const int reason = ERR_GET_REASON(error);
  const char* const words = ERR_reason_error_string(error);
  const std::string said = words != nullptr ? words : "unknown error";
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) {
    return {"TLS failed: " + said, ExitCode::refused};
  }
  if (uses_certificates_ && means_refused_certificate(reason)) {
    return {
        fmt::format("the other side refuses the certificate of this one: {}: see launch.tls", said),
        ExitCode::refused};
  }
  if (is_open_) {
    return {fmt::format("TLS data was changed or cut on its way: {}", said), ExitCode::bad_data};
  }
  if (means_plain(reason)) {
    return {"the other side does not speak TLS: launch.tls must be the same on both sides",
            ExitCode::refused};
  }
  if (means_old_version(reason)) {
    return {"the other side offers no TLS 1.3, and nothing older is accepted", ExitCode::refused};
  }
  if (uses_certificates_ && reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return {fmt::format("the certificate of the other side is not valid: {}",
                        X509_verify_cert_error_string(SSL_get_verify_result(stream_.get()))),
            ExitCode::refused};
  }
  if (uses_certificates_ && reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    return {"the other side has no certificate, but launch.tls demands one", ExitCode::refused};
  }
  if (!uses_certificates_ && means_wrong_key(reason)) {
    return {"the other side does not know the secret of this launch, by which TLS authenticates it",
            ExitCode::refused};
  }
  return {"the TLS handshake failed: " + said, ExitCode::refused};
}

std::size_t TlsStream::pending() const {
  return static_cast<std::size_t>(std::max(SSL_pending(stream_.get()), 0));
}

void TlsStream::close_write() {
  if (is_open_ && trouble_.why.empty()) {
    ERR_clear_error();
    (void)SSL_shutdown(stream_.get());
    ERR_clear_error();
  }
}

std::string TlsStream::binding() const {
  constexpr std::string_view kLabel = "EXPORTER-Channel-Binding";
  std::string bytes(32, '\0');
  if (!is_open_) {
    return "";
  }
  check(SSL_export_keying_material(stream_.get(), reinterpret_cast<unsigned char*>(bytes.data()),
                                   bytes.size(), kLabel.data(), kLabel.size(), nullptr, 0, 0) == 1,
        "OpenSSL exports keying material");
  return bytes;
}

}  // namespace trireme

#include "src/keys/token_signer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <optional>

#include <openssl/evp.h>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/keys/pkcs11_error.h"
#include "src/keys/pkcs11_session.h"
#include "src/keys/secret.h"

namespace trireme {
namespace {

constexpr std::size_t kHashBytes = 32;
constexpr std::size_t kRawSignatureBytes = 64;
constexpr std::size_t kEcPointBytes = 65;
// The curve P-256 (secp256r1) as an object identifier in DER, as CKA_EC_PARAMS holds it.
constexpr std::string_view kCurve("\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07", 10);
// What stands before a point in CKA_EC_POINT: an octet string of 65 bytes.
constexpr std::string_view kPointHead("\x04\x41", 2);

struct SigningConnection {
  Pkcs11Session session;
  CK_OBJECT_HANDLE key;
  std::string label;
  std::string point;
  bool is_extractable;
};

void check_can_sign(const Pkcs11Session& session) {
  CK_MECHANISM_INFO info{};
  const CK_RV result = session.calls().C_GetMechanismInfo(session.token().slot, CKM_ECDSA, &info);
  const bool lacks_it = result == CKR_OK && (info.flags & CKF_SIGN) == 0;
  session.check_result(lacks_it ? CKR_MECHANISM_INVALID : result, "cannot sign with CKM_ECDSA");
}

// Returns the only key of a class that the URI names.
CK_OBJECT_HANDLE only_key(const Pkcs11Session& session, const Pkcs11Uri& uri, CK_OBJECT_CLASS kind,
                          const std::string& where) {
  const std::vector<CK_OBJECT_HANDLE> keys = session.find_keys(uri, kind);
  if (keys.empty()) {
    throw NotFound(
        fmt::format("{} is absent: correct the URI, or make it with `trireme audit "
                    "keygen --pkcs11`",
                    where));
  }
  if (keys.size() > 1) {
    throw ConfigError(where + " is there several times: add id= to the URI");
  }
  return keys.front();
}

// Returns the point of the public key that belongs to a private one. Most tokens tell it only for
// an object of its own.
std::string point_of(const Pkcs11Session& session, CK_OBJECT_HANDLE key, const Pkcs11Uri& uri,
                     const std::string& where) {
  std::string point = session.text_of(key, CKA_EC_POINT);
  if (point.empty()) {
    Pkcs11Uri beside = uri;
    beside.id = session.text_of(key, CKA_ID);
    beside.object = beside.id.empty() ? session.text_of(key, CKA_LABEL) : "";
    point = session.text_of(only_key(session, beside, CKO_PUBLIC_KEY, "the public key of " + where),
                            CKA_EC_POINT);
  }
  return point.starts_with(kPointHead) && point.size() == kPointHead.size() + kEcPointBytes
             ? point.substr(kPointHead.size())
             : point;
}

SigningConnection connect_to_signer(const Pkcs11Uri& uri, TokenPin& pin) {
  Pkcs11Session session(Pkcs11Module(uri.module_path), uri, pin);
  const std::string where =
      fmt::format("token '{}': the private key {}", printable(session.token().label),
                  uri.object.empty() ? "with this id" : printable(uri.object));
  const CK_OBJECT_HANDLE key = only_key(session, uri, CKO_PRIVATE_KEY, where);
  const std::string curve = session.text_of(key, CKA_EC_PARAMS);
  if (session.number_of(key, CKA_KEY_TYPE) != CK_ULONG{CKK_EC} ||
      !session.flag_of(key, CKA_SIGN).value_or(true) || (!curve.empty() && curve != kCurve)) {
    throw PolicyError(where + " is no key for ECDSA on P-256 that may sign: use another one");
  }
  check_can_sign(session);
  std::string label = session.text_of(key, CKA_LABEL);
  std::string point = point_of(session, key, uri, where);
  if (point.size() != kEcPointBytes) {
    throw PolicyError(where + " has a public key that is no point of P-256: use another one");
  }
  const bool is_extractable = session.flag_of(key, CKA_EXTRACTABLE).value_or(true) ||
                              !session.flag_of(key, CKA_SENSITIVE).value_or(false);
  return {std::move(session), key, std::move(label), std::move(point), is_extractable};
}

class EcTokenSigner final : public TokenSigner {
 public:
  EcTokenSigner(Pkcs11Uri uri, TokenPin pin);

  const std::string& point() const override { return point_; }
  std::string sign(std::string_view message) const override;
  std::string title() const override { return title_; }

 private:
  void reconnect() const;
  CK_RV sign_hash(std::array<unsigned char, kHashBytes>& hash, std::string& signature) const;

  Pkcs11Uri uri_;
  mutable std::mutex mutex_;
  mutable TokenPin pin_;
  mutable std::optional<SigningConnection> connection_;
  std::string point_;
  std::string title_;
};

EcTokenSigner::EcTokenSigner(Pkcs11Uri uri, TokenPin pin)
    : uri_(std::move(uri)),
      pin_(std::move(pin)),
      connection_(connect_to_signer(uri_, pin_)),
      point_(connection_->point),
      title_(fmt::format("signing key '{}' in the token '{}'", printable(connection_->label),
                         printable(connection_->session.token().label))) {
  if (connection_->is_extractable) {
    say(
        fmt::format("warning: {} can be read out of the token: whoever has the PIN can copy it; "
                    "make a key that is sensitive and not extractable",
                    title_));
  }
}

// What was there at the start is not a wrong configuration now.
void EcTokenSigner::reconnect() const {
  connection_.reset();
  try {
    connection_ = connect_to_signer(uri_, pin_);
  } catch (const NotFound& error) {
    throw DeviceError(fmt::format("{} has gone away: {}", title_, error.what()));
  }
  if (connection_->point != point_) {
    connection_.reset();
    throw PolicyError(title_ + " is another key now: start again with the right token");
  }
}

CK_RV EcTokenSigner::sign_hash(std::array<unsigned char, kHashBytes>& hash,
                               std::string& signature) const {
  const CK_FUNCTION_LIST& calls = connection_->session.calls();
  const CK_SESSION_HANDLE session = connection_->session.handle();
  CK_MECHANISM mechanism{CKM_ECDSA, nullptr, 0};
  if (const CK_RV begun = calls.C_SignInit(session, &mechanism, connection_->key);
      begun != CKR_OK) {
    return begun;
  }
  signature.assign(kRawSignatureBytes, '\0');
  CK_ULONG bytes = signature.size();
  const CK_RV done = calls.C_Sign(session, hash.data(), hash.size(),
                                  reinterpret_cast<unsigned char*>(signature.data()), &bytes);
  return done == CKR_OK && bytes != kRawSignatureBytes ? CK_RV{CKR_DATA_LEN_RANGE} : done;
}

std::string EcTokenSigner::sign(std::string_view message) const {
  std::array<unsigned char, kHashBytes> hash{};
  check(
      EVP_Digest(message.data(), message.size(), hash.data(), nullptr, EVP_sha256(), nullptr) == 1,
      "OpenSSL computes SHA-256");
  const std::lock_guard lock(mutex_);
  std::string signature;
  CK_RV result = connection_ ? sign_hash(hash, signature) : CK_RV{CKR_SESSION_HANDLE_INVALID};
  if (is_lost(result)) {
    reconnect();
    result = sign_hash(hash, signature);
  }
  if (result != CKR_OK) {
    pkcs11_check(result, title_ + ": cannot sign");
  }
  return signature;
}

void generate_pair(const Pkcs11Session& session, Pkcs11Uri& uri) {
  CK_OBJECT_CLASS public_key = CKO_PUBLIC_KEY;
  CK_OBJECT_CLASS private_key = CKO_PRIVATE_KEY;
  CK_KEY_TYPE ec = CKK_EC;
  CK_BBOOL yes = CK_TRUE;
  CK_BBOOL no = CK_FALSE;
  std::string curve(kCurve);
  CK_ATTRIBUTE public_attributes[] = {{CKA_CLASS, &public_key, sizeof public_key},
                                      {CKA_KEY_TYPE, &ec, sizeof ec},
                                      {CKA_TOKEN, &yes, sizeof yes},
                                      {CKA_VERIFY, &yes, sizeof yes},
                                      {CKA_EC_PARAMS, curve.data(), curve.size()},
                                      {CKA_LABEL, uri.object.data(), uri.object.size()},
                                      {CKA_ID, uri.id.data(), uri.id.size()}};
  CK_ATTRIBUTE private_attributes[] = {{CKA_CLASS, &private_key, sizeof private_key},
                                       {CKA_KEY_TYPE, &ec, sizeof ec},
                                       {CKA_TOKEN, &yes, sizeof yes},
                                       {CKA_PRIVATE, &yes, sizeof yes},
                                       {CKA_SENSITIVE, &yes, sizeof yes},
                                       {CKA_EXTRACTABLE, &no, sizeof no},
                                       {CKA_SIGN, &yes, sizeof yes},
                                       {CKA_LABEL, uri.object.data(), uri.object.size()},
                                       {CKA_ID, uri.id.data(), uri.id.size()}};
  CK_MECHANISM mechanism{CKM_EC_KEY_PAIR_GEN, nullptr, 0};
  CK_OBJECT_HANDLE made_public = 0;
  CK_OBJECT_HANDLE made_private = 0;
  session.check_result(
      session.calls().C_GenerateKeyPair(session.handle(), &mechanism, public_attributes,
                                        std::size(public_attributes), private_attributes,
                                        std::size(private_attributes), &made_public, &made_private),
      fmt::format("cannot make the key '{}'", printable(uri.object)));
}

}  // namespace

std::unique_ptr<TokenSigner> open_token_signer(std::string_view uri) {
  Pkcs11Uri parsed = parse_pkcs11_uri(uri);
  TokenPin pin(parsed.pin_source);
  return std::make_unique<EcTokenSigner>(std::move(parsed), std::move(pin));
}

std::unique_ptr<TokenSigner> create_token_signer(std::string_view uri) {
  Pkcs11Uri parsed = parse_pkcs11_uri(uri);
  if (parsed.object.empty()) {
    throw ConfigError("the URI of a new key needs object=NAME");
  }
  TokenPin pin(parsed.pin_source);
  const Pkcs11Session session(Pkcs11Module(parsed.module_path), parsed, pin,
                              Pkcs11Session::Use::write);
  session.prepare_new_key(parsed, {CKO_PRIVATE_KEY, CKO_PUBLIC_KEY});
  check_can_sign(session);
  generate_pair(session, parsed);
  return open_token_signer(uri);  // while this session lasts, the user is logged in
}

}  // namespace trireme

#include "src/keys/token_key.h"

#include <functional>

#include <nlohmann/json.hpp>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/keys/pkcs11_error.h"
#include "src/keys/token_connection.h"

namespace trireme {
namespace {

constexpr std::string_view kMechanism = "aes-gcm";
constexpr std::size_t kIvBytes = 12;
constexpr std::size_t kSealedKeyBytes = DataKey::kBytes + 16;
constexpr std::size_t kIdentityDigits = 32;

// Holds the parameters of CKM_AES_GCM, which point to the nonce and the additional data.
struct GcmMechanism {
  GcmMechanism(unsigned char* iv, std::string& additional)
      : parameters{iv,
                   kIvBytes,
                   kIvBytes * 8,
                   reinterpret_cast<unsigned char*>(additional.data()),
                   additional.size(),
                   128},
        mechanism{CKM_AES_GCM, &parameters, sizeof parameters} {}
  GcmMechanism(const GcmMechanism&) = delete;
  GcmMechanism& operator=(const GcmMechanism&) = delete;

  CK_GCM_PARAMS parameters;
  CK_MECHANISM mechanism;
};

class TokenKey final : public WrappingKey {
 public:
  TokenKey(Pkcs11Uri uri, TokenPin pin);

  Recipient wrap(const DataKey& key) override;
  std::optional<DataKey> unwrap(const Recipient& recipient, std::string_view data_key_id) override;
  std::string title() const override { return title_; }

 private:
  // Runs an operation, which returns CK_RV, and once more after another login if the session was
  // lost.
  CK_RV run(const std::function<CK_RV(const TokenConnection&)>& operation);
  void reconnect();
  CK_RV decrypt(std::string_view wrapped, std::string additional, Secret& plain);
  void check_result(CK_RV result, std::string_view what) const;

  Pkcs11Uri uri_;
  TokenPin pin_;
  std::optional<TokenConnection> connection_;
  std::string object_;
  std::string id_;
  std::string name_;
  std::string title_;
};

TokenKey::TokenKey(Pkcs11Uri uri, TokenPin pin)
    : uri_(std::move(uri)), pin_(std::move(pin)), connection_(connect_to_key(uri_, pin_)) {
  const Pkcs11Token& token = connection_->session.token();
  const TokenKeyFacts& facts = connection_->facts;
  object_ = object_text(facts);
  id_ = sha256_hex(fmt::format("trireme token key\n{}\n{}", token.serial, object_))
            .substr(0, kIdentityDigits);
  name_ = facts.label;
  title_ =
      fmt::format("key '{}' in the token '{}' ({})", printable(name_), printable(token.label), id_);
  if (facts.is_extractable) {
    say(
        fmt::format("warning: {} can be read out of the token: whoever has the PIN can copy it; "
                    "make a key that is sensitive and not extractable",
                    title_));
  }
}

void TokenKey::check_result(CK_RV result, std::string_view what) const {
  if (result != CKR_OK) {
    pkcs11_check(result, fmt::format("{}: {}", title_, what));
  }
}

// What was there at the start is not a wrong configuration now.
void TokenKey::reconnect() {
  connection_.reset();
  try {
    connection_ = connect_to_key(uri_, pin_);
  } catch (const NotFound& error) {
    throw DeviceError(fmt::format("{} has gone away: {}", title_, error.what()));
  }
}

CK_RV TokenKey::run(const std::function<CK_RV(const TokenConnection&)>& operation) {
  if (connection_) {
    if (const CK_RV result = operation(*connection_); !is_lost(result)) {
      return result;
    }
  }
  reconnect();
  return operation(*connection_);
}

Recipient TokenKey::wrap(const DataKey& key) {
  std::string wrapped;
  std::string additional = recipient_context(key.id());
  const CK_RV result = run([&](const TokenConnection& connection) {
    const CK_FUNCTION_LIST& calls = connection.session.calls();
    wrapped.assign(kIvBytes + kSealedKeyBytes, '\0');
    auto* const out = reinterpret_cast<unsigned char*>(wrapped.data());
    fill_random(out, kIvBytes);
    GcmMechanism gcm(out, additional);
    const CK_SESSION_HANDLE session = connection.session.handle();
    if (const CK_RV begun = calls.C_EncryptInit(session, &gcm.mechanism, connection.key);
        begun != CKR_OK) {
      return begun;
    }
    auto* const plain = const_cast<unsigned char*>(key.bytes().data());  // only read
    CK_ULONG bytes = kSealedKeyBytes;
    const CK_RV done = calls.C_Encrypt(session, plain, DataKey::kBytes, out + kIvBytes, &bytes);
    return done == CKR_OK && bytes != kSealedKeyBytes ? CK_RV{CKR_DATA_LEN_RANGE} : done;
  });
  check_result(result, "cannot encrypt");
  return {std::string(kPkcs11Kind), id_, name_, std::move(wrapped),
          JsonValue(nlohmann::json{{"mechanism", kMechanism}, {"object", object_}})};
}

CK_RV TokenKey::decrypt(std::string_view wrapped, std::string additional, Secret& plain) {
  return run([&](const TokenConnection& connection) {
    const CK_FUNCTION_LIST& calls = connection.session.calls();
    std::string text(wrapped);  // the functions take pointers to what they do not change
    auto* const in = reinterpret_cast<unsigned char*>(text.data());
    GcmMechanism gcm(in, additional);
    const CK_SESSION_HANDLE session = connection.session.handle();
    if (const CK_RV begun = calls.C_DecryptInit(session, &gcm.mechanism, connection.key);
        begun != CKR_OK) {
      return begun;
    }
    CK_ULONG bytes = plain.bytes();
    const CK_RV done =
        calls.C_Decrypt(session, in + kIvBytes, kSealedKeyBytes, plain.data(), &bytes);
    return done == CKR_OK && bytes != DataKey::kBytes ? CK_RV{CKR_ENCRYPTED_DATA_INVALID} : done;
  });
}

std::optional<DataKey> TokenKey::unwrap(const Recipient& recipient, std::string_view data_key_id) {
  if (recipient.kind != kPkcs11Kind) {
    return std::nullopt;
  }
  const bool is_this = recipient.key == id_;
  const bool may_be_copy = text_field(*recipient.parameters, "object") == object_;
  if (!is_this && !may_be_copy) {
    return std::nullopt;
  }
  if (text_field(*recipient.parameters, "mechanism") != kMechanism) {
    throw DataError(
        fmt::format("what is wrapped for {} is of a mechanism that this version does "
                    "not know: {}",
                    title_, printable(text_field(*recipient.parameters, "mechanism"))));
  }
  Secret plain(kIvBytes + kSealedKeyBytes);  // some modules want room for the encrypted text
  CK_RV result = CKR_ENCRYPTED_DATA_LEN_RANGE;
  if (recipient.wrapped.size() == kIvBytes + kSealedKeyBytes) {
    result = decrypt(recipient.wrapped, recipient_context(data_key_id), plain);
  }
  if (!is_refused_text(result)) {
    check_result(result, "cannot decrypt");
    DataKey key(Secret(plain.view().substr(0, DataKey::kBytes)));
    if (key.id() == data_key_id) {
      return key;
    }
  }
  if (!is_this) {
    return std::nullopt;
  }
  throw DataError(
      fmt::format("cannot decrypt what is wrapped for {} ({}): it was changed, unless the token "
                  "fails with other files as well",
                  title_, result == CKR_OK ? "another data key" : result_text(result)));
}

}  // namespace

std::unique_ptr<WrappingKey> open_token_key(std::string_view uri) {
  Pkcs11Uri parsed = parse_pkcs11_uri(uri);
  TokenPin pin(parsed.pin_source);
  return std::make_unique<TokenKey>(std::move(parsed), std::move(pin));
}

}  // namespace trireme

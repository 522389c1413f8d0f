#include "src/keys/token_connection.h"

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

std::string hex_digits(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) {
    digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return digits;
}

}  // namespace

std::string object_text(const TokenKeyFacts& facts) {
  return facts.id.empty() ? "label:" + facts.label : "id:" + hex_digits(facts.id);
}

void check_has_gcm(const Pkcs11Session& session) {
  CK_MECHANISM_INFO info{};
  const CK_RV result = session.calls().C_GetMechanismInfo(session.token().slot, CKM_AES_GCM, &info);
  constexpr CK_FLAGS kBoth = CKF_ENCRYPT | CKF_DECRYPT;
  const bool lacks_it = result == CKR_OK && (info.flags & kBoth) != kBoth;
  session.check_result(lacks_it ? CKR_MECHANISM_INVALID : result,
                       "cannot encrypt and decrypt with CKM_AES_GCM");
}

TokenConnection connect_to_key(const Pkcs11Uri& uri, TokenPin& pin) {
  Pkcs11Session session(Pkcs11Module(uri.module_path), uri, pin);
  const std::vector<CK_OBJECT_HANDLE> keys = session.find_keys(uri);
  const std::string where =
      fmt::format("token '{}': the key {}", printable(session.token().label),
                  uri.object.empty() ? "with id " + hex_digits(uri.id) : printable(uri.object));
  if (keys.empty()) {
    throw NotFound(where +
                   " is absent: correct the URI, or make it with `trireme keys create --pkcs11`");
  }
  if (keys.size() > 1) {
    throw ConfigError(where + " is there several times: add id= to the URI");
  }
  TokenKeyFacts facts = session.facts(keys.front());
  if (!facts.is_aes_256 || !facts.may_encrypt || !facts.may_decrypt) {
    throw PolicyError(where + " is no AES-256 key that may encrypt and decrypt: use another one");
  }
  check_has_gcm(session);
  return {std::move(session), keys.front(), std::move(facts)};
}

}  // namespace trireme

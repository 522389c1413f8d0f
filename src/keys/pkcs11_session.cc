#include "src/keys/pkcs11_session.h"

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/keys/pkcs11_error.h"
#include "src/keys/secret.h"

namespace trireme {
namespace {

constexpr CK_ULONG kKeyBytes = 32;
constexpr CK_ULONG kMostTextBytes = 4096;
constexpr std::size_t kNewIdBytes = 8;

}  // namespace

Pkcs11Session::Pkcs11Session(const Pkcs11Module& module, const Pkcs11Uri& uri, TokenPin& pin,
                             Use use)
    : token_(module.token(uri)) {
  const CK_FLAGS flags =
      CK_FLAGS{CKF_SERIAL_SESSION} | (use == Use::write ? CK_FLAGS{CKF_RW_SESSION} : CK_FLAGS{0});
  CK_SESSION_HANDLE handle = 0;
  check_result(module.calls().C_OpenSession(token_.slot, flags, nullptr, nullptr, &handle),
               "cannot open a session");
  session_.reset({&module.calls(), handle});
  if ((token_.flags & CKF_LOGIN_REQUIRED) != 0 && !is_logged_in()) {
    log_in(pin);
  }
}

void Pkcs11Session::check_result(CK_RV result, std::string_view what) const {
  if (result != CKR_OK) {
    pkcs11_check(result, fmt::format("token '{}': {}", printable(token_.label), what));
  }
}

bool Pkcs11Session::is_logged_in() const {
  CK_SESSION_INFO info{};
  return calls().C_GetSessionInfo(handle(), &info) == CKR_OK &&
         (info.state == CKS_RO_USER_FUNCTIONS || info.state == CKS_RW_USER_FUNCTIONS);
}

void Pkcs11Session::check_may_try_pin() const {
  if ((token_.flags & CKF_USER_PIN_INITIALIZED) == 0) {
    check_result(CKR_USER_PIN_NOT_INITIALIZED, "cannot log in");
  }
  if ((token_.flags & CKF_USER_PIN_LOCKED) != 0) {
    check_result(CKR_PIN_LOCKED, "cannot log in");
  }
  if ((token_.flags & CKF_USER_PIN_FINAL_TRY) != 0) {
    throw PolicyError(
        fmt::format("token '{}': did not try the PIN, since one more wrong one locks the token: "
                    "log in once by hand with the right one (for example pkcs11-tool --login "
                    "--list-objects), and correct pin-source",
                    printable(token_.label)));
  }
}

void Pkcs11Session::log_in(TokenPin& pin) const {
  check_may_try_pin();
  CK_RV result = CKR_OK;
  if ((token_.flags & CKF_PROTECTED_AUTHENTICATION_PATH) != 0) {  // the token has a PIN pad
    result = calls().C_Login(handle(), CKU_USER, nullptr, 0);
  } else {
    const Secret& digits = pin.get(printable(token_.label));
    auto* const data = const_cast<unsigned char*>(digits.data());  // C_Login only reads it
    result = calls().C_Login(handle(), CKU_USER, data, digits.bytes());
  }
  if (is_refused_pin(result)) {
    pin.mark_refused();
  }
  if (result != CKR_USER_ALREADY_LOGGED_IN) {
    check_result(result, "cannot log in");
  }
}

void Pkcs11Session::prepare_new_key(Pkcs11Uri& uri,
                                    std::initializer_list<CK_OBJECT_CLASS> kinds) const {
  for (const CK_OBJECT_CLASS kind : kinds) {
    if (!find_keys(uri, kind).empty()) {
      throw PolicyError(fmt::format("token '{}': there is a key '{}' already: choose another name",
                                    printable(token_.label), printable(uri.object)));
    }
  }
  if (uri.id.empty()) {
    Secret id(kNewIdBytes);
    fill_random(id.data(), id.bytes());
    uri.id = id.view();
  }
}

std::vector<CK_OBJECT_HANDLE> Pkcs11Session::find_keys(const Pkcs11Uri& uri,
                                                       CK_OBJECT_CLASS kind) const {
  std::string label = uri.object;
  std::string id = uri.id;
  std::vector<CK_ATTRIBUTE> wanted = {{CKA_CLASS, &kind, sizeof kind}};
  if (!label.empty()) {
    wanted.push_back({CKA_LABEL, label.data(), label.size()});
  }
  if (!id.empty()) {
    wanted.push_back({CKA_ID, id.data(), id.size()});
  }
  check_result(calls().C_FindObjectsInit(handle(), wanted.data(), wanted.size()),
               "cannot search for the key");
  std::vector<CK_OBJECT_HANDLE> found(100);
  CK_ULONG count = 0;
  const CK_RV result = calls().C_FindObjects(handle(), found.data(), found.size(), &count);
  (void)calls().C_FindObjectsFinal(handle());
  check_result(result, "cannot search for the key");
  found.resize(count);
  return found;
}

std::string Pkcs11Session::text_of(CK_OBJECT_HANDLE key, CK_ATTRIBUTE_TYPE type) const {
  CK_ATTRIBUTE attribute{type, nullptr, 0};
  if (calls().C_GetAttributeValue(handle(), key, &attribute, 1) != CKR_OK ||
      attribute.ulValueLen > kMostTextBytes) {
    return "";
  }
  std::string text(attribute.ulValueLen, '\0');
  attribute.pValue = text.data();
  return calls().C_GetAttributeValue(handle(), key, &attribute, 1) == CKR_OK ? text : "";
}

std::optional<bool> Pkcs11Session::flag_of(CK_OBJECT_HANDLE key, CK_ATTRIBUTE_TYPE type) const {
  CK_BBOOL flag = CK_FALSE;
  CK_ATTRIBUTE attribute{type, &flag, sizeof flag};
  const bool is_known = calls().C_GetAttributeValue(handle(), key, &attribute, 1) == CKR_OK;
  return is_known ? std::optional(flag != CK_FALSE) : std::nullopt;
}

std::optional<CK_ULONG> Pkcs11Session::number_of(CK_OBJECT_HANDLE key,
                                                 CK_ATTRIBUTE_TYPE type) const {
  CK_ULONG number = 0;
  CK_ATTRIBUTE attribute{type, &number, sizeof number};
  const bool is_known = calls().C_GetAttributeValue(handle(), key, &attribute, 1) == CKR_OK;
  return is_known ? std::optional(number) : std::nullopt;
}

TokenKeyFacts Pkcs11Session::facts(CK_OBJECT_HANDLE key) const {
  TokenKeyFacts facts;
  facts.label = text_of(key, CKA_LABEL);
  facts.id = text_of(key, CKA_ID);
  facts.is_aes_256 = number_of(key, CKA_KEY_TYPE) == CK_ULONG{CKK_AES} &&
                     number_of(key, CKA_VALUE_LEN).value_or(kKeyBytes) == kKeyBytes;
  facts.may_encrypt = flag_of(key, CKA_ENCRYPT).value_or(true);
  facts.may_decrypt = flag_of(key, CKA_DECRYPT).value_or(true);
  facts.is_extractable =
      flag_of(key, CKA_EXTRACTABLE).value_or(true) || !flag_of(key, CKA_SENSITIVE).value_or(false);
  return facts;
}

}  // namespace trireme

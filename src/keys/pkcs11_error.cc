#include "src/keys/pkcs11_error.h"

#include <algorithm>
#include <iterator>

#include "src/base/error.h"

namespace trireme {
namespace {

enum class Action { policy, device, memory };

struct Meaning {
  CK_RV result;
  const char* name;
  Action action;
  const char* advice;
};

constexpr char kWrongPin[] =
    "the PIN is wrong; each further try with it may lock the token, so correct pin-source first";
constexpr char kLocked[] =
    "too many wrong PINs were tried; the token's security officer can unlock it (for example "
    "pkcs11-tool --login --login-type so --init-pin)";
constexpr char kNoPin[] =
    "the token has no user PIN yet: its security officer sets one (for example pkcs11-tool --login "
    "--login-type so --init-pin)";
constexpr char kGone[] = "the token or its connection has gone away: check that it is attached";
constexpr char kFailed[] = "the token failed: see its log";
constexpr char kUnable[] =
    "the token or the key does not allow this: use an AES-256 key that may encrypt and decrypt, in "
    "a token that supports CKM_AES_GCM";
constexpr char kFull[] = "the token has no room left";
constexpr char kReadOnly[] = "the token cannot be changed";

constexpr Meaning kMeanings[] = {
    {CKR_PIN_INCORRECT, "CKR_PIN_INCORRECT", Action::policy, kWrongPin},
    {CKR_PIN_INVALID, "CKR_PIN_INVALID", Action::policy, kWrongPin},
    {CKR_PIN_LEN_RANGE, "CKR_PIN_LEN_RANGE", Action::policy, kWrongPin},
    {CKR_PIN_EXPIRED, "CKR_PIN_EXPIRED", Action::policy,
     "the PIN has expired: set a new one (for example pkcs11-tool --login --change-pin)"},
    {CKR_PIN_LOCKED, "CKR_PIN_LOCKED", Action::policy, kLocked},
    {CKR_USER_PIN_NOT_INITIALIZED, "CKR_USER_PIN_NOT_INITIALIZED", Action::policy, kNoPin},
    {CKR_USER_NOT_LOGGED_IN, "CKR_USER_NOT_LOGGED_IN", Action::policy,
     "the token wants a login that it was not given"},
    {CKR_USER_ANOTHER_ALREADY_LOGGED_IN, "CKR_USER_ANOTHER_ALREADY_LOGGED_IN", Action::policy,
     "this process has logged in as another user"},
    {CKR_SESSION_COUNT, "CKR_SESSION_COUNT", Action::policy,
     "the token has too many sessions: end other programs that use it"},
    {CKR_SESSION_READ_ONLY, "CKR_SESSION_READ_ONLY", Action::policy, kReadOnly},
    {CKR_TOKEN_WRITE_PROTECTED, "CKR_TOKEN_WRITE_PROTECTED", Action::policy, kReadOnly},
    {CKR_MECHANISM_INVALID, "CKR_MECHANISM_INVALID", Action::policy, kUnable},
    {CKR_MECHANISM_PARAM_INVALID, "CKR_MECHANISM_PARAM_INVALID", Action::policy, kUnable},
    {CKR_KEY_FUNCTION_NOT_PERMITTED, "CKR_KEY_FUNCTION_NOT_PERMITTED", Action::policy, kUnable},
    {CKR_KEY_TYPE_INCONSISTENT, "CKR_KEY_TYPE_INCONSISTENT", Action::policy, kUnable},
    {CKR_KEY_SIZE_RANGE, "CKR_KEY_SIZE_RANGE", Action::policy, kUnable},
    {CKR_FUNCTION_NOT_SUPPORTED, "CKR_FUNCTION_NOT_SUPPORTED", Action::policy, kUnable},
    {CKR_ATTRIBUTE_VALUE_INVALID, "CKR_ATTRIBUTE_VALUE_INVALID", Action::policy, kUnable},
    {CKR_TEMPLATE_INCONSISTENT, "CKR_TEMPLATE_INCONSISTENT", Action::policy, kUnable},
    {CKR_DEVICE_REMOVED, "CKR_DEVICE_REMOVED", Action::device, kGone},
    {CKR_TOKEN_NOT_PRESENT, "CKR_TOKEN_NOT_PRESENT", Action::device, kGone},
    {CKR_TOKEN_NOT_RECOGNIZED, "CKR_TOKEN_NOT_RECOGNIZED", Action::device, kGone},
    {CKR_SLOT_ID_INVALID, "CKR_SLOT_ID_INVALID", Action::device, kGone},
    {CKR_SESSION_HANDLE_INVALID, "CKR_SESSION_HANDLE_INVALID", Action::device, kGone},
    {CKR_SESSION_CLOSED, "CKR_SESSION_CLOSED", Action::device, kGone},
    {CKR_CRYPTOKI_NOT_INITIALIZED, "CKR_CRYPTOKI_NOT_INITIALIZED", Action::device, kGone},
    {CKR_KEY_HANDLE_INVALID, "CKR_KEY_HANDLE_INVALID", Action::device, kGone},
    {CKR_OBJECT_HANDLE_INVALID, "CKR_OBJECT_HANDLE_INVALID", Action::device, kGone},
    {CKR_OPERATION_ACTIVE, "CKR_OPERATION_ACTIVE", Action::device, kFailed},
    {CKR_DEVICE_ERROR, "CKR_DEVICE_ERROR", Action::device, kFailed},
    {CKR_GENERAL_ERROR, "CKR_GENERAL_ERROR", Action::device, kFailed},
    {CKR_FUNCTION_FAILED, "CKR_FUNCTION_FAILED", Action::device, kFailed},
    {CKR_ARGUMENTS_BAD, "CKR_ARGUMENTS_BAD", Action::device, kFailed},
    {CKR_DEVICE_MEMORY, "CKR_DEVICE_MEMORY", Action::device, kFull},
    {CKR_HOST_MEMORY, "CKR_HOST_MEMORY", Action::memory, "this machine has too little memory"},
    {CKR_DATA_INVALID, "CKR_DATA_INVALID", Action::device, kFailed},
    {CKR_DATA_LEN_RANGE, "CKR_DATA_LEN_RANGE", Action::device, kFailed},
    {CKR_ENCRYPTED_DATA_INVALID, "CKR_ENCRYPTED_DATA_INVALID", Action::device, kFailed},
    {CKR_ENCRYPTED_DATA_LEN_RANGE, "CKR_ENCRYPTED_DATA_LEN_RANGE", Action::device, kFailed},
    {CKR_SIGNATURE_INVALID, "CKR_SIGNATURE_INVALID", Action::device, kFailed},
    {CK_RV{0x42}, "CKR_AEAD_DECRYPT_FAILED", Action::device, kFailed},  // since PKCS#11 3.0
};

const Meaning* meaning_of(CK_RV result) {
  const auto* const found = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                         [&](const Meaning& m) { return m.result == result; });
  return found == std::end(kMeanings) ? nullptr : found;
}

bool is_one_of(CK_RV result, std::initializer_list<CK_RV> results) {
  return std::find(results.begin(), results.end(), result) != results.end();
}

}  // namespace

std::string result_text(CK_RV result) {
  const Meaning* const meaning = meaning_of(result);
  return meaning == nullptr ? fmt::format("error {:#x}", result) : meaning->name;
}

bool is_lost(CK_RV result) {
  return is_one_of(result,
                   {CKR_SESSION_HANDLE_INVALID, CKR_SESSION_CLOSED, CKR_DEVICE_REMOVED,
                    CKR_TOKEN_NOT_PRESENT, CKR_USER_NOT_LOGGED_IN, CKR_KEY_HANDLE_INVALID,
                    CKR_OBJECT_HANDLE_INVALID, CKR_CRYPTOKI_NOT_INITIALIZED, CKR_OPERATION_ACTIVE});
}

bool is_refused_text(CK_RV result) {
  return is_one_of(result, {CKR_GENERAL_ERROR, CKR_FUNCTION_FAILED, CKR_ARGUMENTS_BAD,
                            CKR_DATA_INVALID, CKR_DATA_LEN_RANGE, CKR_ENCRYPTED_DATA_INVALID,
                            CKR_ENCRYPTED_DATA_LEN_RANGE, CKR_SIGNATURE_INVALID, CK_RV{0x42}});
}

bool is_refused_pin(CK_RV result) {
  return is_one_of(result, {CKR_PIN_INCORRECT, CKR_PIN_INVALID, CKR_PIN_LEN_RANGE, CKR_PIN_EXPIRED,
                            CKR_PIN_LOCKED});
}

void pkcs11_check(CK_RV result, std::string_view what) {
  if (result == CKR_OK) {
    return;
  }
  const Meaning* const meaning = meaning_of(result);
  const Action action = meaning == nullptr ? Action::device : meaning->action;
  const std::string text = fmt::format("{} ({}): {}", what, result_text(result),
                                       meaning == nullptr ? kFailed : meaning->advice);
  switch (action) {
    case Action::policy:
      throw PolicyError(text);
    case Action::memory:
      throw ResourceError(text);
    case Action::device:
      throw DeviceError(text);
  }
}

}  // namespace trireme

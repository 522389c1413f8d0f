#include "src/keys/pkcs11_module.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/base/file_writers.h"
#include "src/base/printable.h"
#include "src/keys/pkcs11_error.h"

namespace trireme {
namespace {

CK_FUNCTION_LIST* load_calls(const std::string& path) {
  if (path.find('/') != std::string::npos) {  // others are looked for in the system's folders
    refuse_if_all_can_write(path, "run code here and read keys");
  }
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const error = ::dlerror();
    throw ConfigError(
        fmt::format("cannot load the PKCS#11 module {}: {}: name the file of the token's vendor as "
                    "module-path=/PATH.so in the URI of the key{}",
                    printable(path), printable(error == nullptr ? "" : error),
                    path == kUsualModule ? ", or install p11-kit (Debian: p11-kit-modules)" : ""));
  }
  const auto get_list =
      reinterpret_cast<CK_C_GetFunctionList>(::dlsym(library, "C_GetFunctionList"));
  if (get_list == nullptr) {
    throw ConfigError(
        fmt::format("{} is not a PKCS#11 module: it has no C_GetFunctionList; correct module-path",
                    printable(path)));
  }
  CK_FUNCTION_LIST* calls = nullptr;
  pkcs11_check(get_list(&calls),
               fmt::format("the PKCS#11 module {} has no functions", printable(path)));
  return calls;
}

// Fields of fixed length are padded with blanks.
template <std::size_t bytes>
std::string padded_text(const unsigned char (&field)[bytes]) {
  const std::string_view text(reinterpret_cast<const char*>(field), bytes);
  const std::string_view before_zero = text.substr(0, text.find('\0'));
  return std::string(before_zero.substr(0, before_zero.find_last_not_of(' ') + 1));
}

bool fits(const Pkcs11Token& token, const Pkcs11Uri& uri) {
  const auto same = [](const std::string& wanted, const std::string& value) {
    return wanted.empty() || wanted == value;
  };
  return same(uri.token, token.label) && same(uri.serial, token.serial) &&
         same(uri.manufacturer, token.manufacturer) && same(uri.model, token.model);
}

std::string list_text(const std::vector<Pkcs11Token>& tokens) {
  std::vector<std::string> names;
  for (const Pkcs11Token& token : tokens) {
    if ((token.flags & CKF_TOKEN_INITIALIZED) != 0) {
      names.push_back(
          fmt::format("'{}' (serial {})", printable(token.label), printable(token.serial)));
    }
  }
  return names.empty() ? "no token" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Pkcs11Module::Pkcs11Module(const std::string& path) : path_(path), calls_(load_calls(path)) {
  CK_C_INITIALIZE_ARGS arguments{};
  arguments.flags = CKF_OS_LOCKING_OK;
  CK_RV result = calls_->C_Initialize(&arguments);
  if (result == CKR_CANT_LOCK || result == CKR_NEED_TO_CREATE_THREADS) {
    result = calls_->C_Initialize(nullptr);
  }
  if (result != CKR_CRYPTOKI_ALREADY_INITIALIZED) {
    pkcs11_check(result, fmt::format("the PKCS#11 module {} does not start: check its own "
                                     "configuration",
                                     printable(path)));
  }
}

std::vector<Pkcs11Token> Pkcs11Module::tokens() const {
  std::vector<CK_SLOT_ID> slots;
  CK_RV result = CKR_BUFFER_TOO_SMALL;
  while (result == CKR_BUFFER_TOO_SMALL) {  // a token may be attached between the calls
    CK_ULONG count = 0;
    result = calls_->C_GetSlotList(CK_TRUE, nullptr, &count);
    if (result == CKR_OK) {
      slots.resize(count);
      result = calls_->C_GetSlotList(CK_TRUE, slots.data(), &count);
      slots.resize(result == CKR_OK ? count : 0);
    }
  }
  pkcs11_check(result, fmt::format("{}: cannot list the tokens", printable(path_)));
  std::vector<Pkcs11Token> tokens;
  for (const CK_SLOT_ID slot : slots) {
    CK_TOKEN_INFO info{};
    if (calls_->C_GetTokenInfo(slot, &info) == CKR_OK) {  // otherwise it was just removed
      tokens.push_back({slot, padded_text(info.label), padded_text(info.serialNumber),
                        padded_text(info.manufacturerID), padded_text(info.model), info.flags});
    }
  }
  return tokens;
}

Pkcs11Token Pkcs11Module::token(const Pkcs11Uri& uri) const {
  const std::vector<Pkcs11Token> all = tokens();
  std::vector<Pkcs11Token> fitting;
  for (const Pkcs11Token& token : all) {
    if (fits(token, uri)) {
      fitting.push_back(token);
    }
  }
  const std::string wanted =
      uri.token.empty() ? "with serial " + printable(uri.serial) : "'" + printable(uri.token) + "'";
  if (fitting.empty()) {
    throw NotFound(
        fmt::format("the token {} is absent; {} has {}: attach it, or correct the URI of the key",
                    wanted, printable(path_), list_text(all)));
  }
  if (fitting.size() > 1) {
    throw ConfigError(fmt::format("{} has several tokens {}: {}; add serial= to the URI of the key",
                                  printable(path_), wanted, list_text(fitting)));
  }
  return fitting.front();
}

}  // namespace trireme

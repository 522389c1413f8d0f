// A PKCS#11 module for tests: the module that FAULTY_TOKEN_MODULE names, except that its functions
// fail as the environment variable FAULTY_TOKEN says. Its words are separated by blanks:
//
//   C_Login=0xa4        each call returns this result and does nothing else
//   C_Encrypt=0x32*1    only the first call since the variable was changed
//   flags+0x80          C_GetTokenInfo sets these flags
//   flags-0x8           C_GetTokenInfo removes these flags
//   absent              there is no token
//
// If it is @FILE, these words are read from the file at each call, so that a test can change them
// while a program runs.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

#include <dlfcn.h>
#include <p11-kit/pkcs11.h>

namespace {

CK_FUNCTION_LIST real;
CK_FUNCTION_LIST faulty;

struct Faults {
  std::string text;
  std::map<std::string, int> calls;
};

std::istringstream words() {
  const char* const variable = std::getenv("FAULTY_TOKEN");
  std::string text = variable == nullptr ? "" : variable;
  if (text.starts_with("@")) {
    std::ifstream file(text.substr(1));
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  return std::istringstream(text);
}

// Counts the calls of each function since FAULTY_TOKEN was changed.
int count_call(const std::string& name) {
  static Faults faults;
  if (const std::string text = words().str(); text != faults.text) {
    faults = {text, {}};
  }
  return ++faults.calls[name];
}

CK_RV fault_of(const std::string& name) {
  const int call = count_call(name);
  std::istringstream all = words();
  for (std::string word; all >> word;) {
    if (!word.starts_with(name + "=")) {
      continue;
    }
    const std::size_t star = word.find('*');
    const int most = star == std::string::npos ? call : std::stoi(word.substr(star + 1));
    if (call <= most) {
      return std::stoul(word.substr(name.size() + 1), nullptr, 16);
    }
  }
  return CKR_OK;
}

// Defines the function `NAME` of the faulty module.
#define FAULTY(NAME, PARAMETERS, ARGUMENTS)               \
  CK_RV faulty_##NAME PARAMETERS {                        \
    const CK_RV fault = fault_of(#NAME);                  \
    return fault == CKR_OK ? real.NAME ARGUMENTS : fault; \
  }
FAULTY(C_Initialize, (void* arguments), (arguments))
FAULTY(C_OpenSession,
       (CK_SLOT_ID slot, CK_FLAGS flags, void* data, CK_NOTIFY notify, CK_SESSION_HANDLE* session),
       (slot, flags, data, notify, session))
FAULTY(C_Login,
       (CK_SESSION_HANDLE session, CK_USER_TYPE user, unsigned char* pin, unsigned long bytes),
       (session, user, pin, bytes))
FAULTY(C_GetMechanismInfo, (CK_SLOT_ID slot, CK_MECHANISM_TYPE type, CK_MECHANISM_INFO* info),
       (slot, type, info))
FAULTY(C_FindObjectsInit,
       (CK_SESSION_HANDLE session, CK_ATTRIBUTE* attributes, unsigned long count),
       (session, attributes, count))
FAULTY(C_EncryptInit, (CK_SESSION_HANDLE session, CK_MECHANISM* mechanism, CK_OBJECT_HANDLE key),
       (session, mechanism, key))
FAULTY(C_Encrypt,
       (CK_SESSION_HANDLE session, unsigned char* plain, unsigned long bytes, unsigned char* out,
        unsigned long* out_bytes),
       (session, plain, bytes, out, out_bytes))
FAULTY(C_DecryptInit, (CK_SESSION_HANDLE session, CK_MECHANISM* mechanism, CK_OBJECT_HANDLE key),
       (session, mechanism, key))
FAULTY(C_Decrypt,
       (CK_SESSION_HANDLE session, unsigned char* in, unsigned long bytes, unsigned char* out,
        unsigned long* out_bytes),
       (session, in, bytes, out, out_bytes))
FAULTY(C_SignInit, (CK_SESSION_HANDLE session, CK_MECHANISM* mechanism, CK_OBJECT_HANDLE key),
       (session, mechanism, key))
FAULTY(C_GenerateKey,
       (CK_SESSION_HANDLE session, CK_MECHANISM* mechanism, CK_ATTRIBUTE* attributes,
        unsigned long count, CK_OBJECT_HANDLE* key),
       (session, mechanism, attributes, count, key))
#undef FAULTY

CK_RV faulty_C_GetSlotList(unsigned char present, CK_SLOT_ID* slots, unsigned long* count) {
  std::istringstream all = words();
  for (std::string word; all >> word;) {
    if (word == "absent") {
      *count = 0;
      return CKR_OK;
    }
  }
  return real.C_GetSlotList(present, slots, count);
}

CK_RV faulty_C_GetTokenInfo(CK_SLOT_ID slot, CK_TOKEN_INFO* info) {
  const CK_RV result = real.C_GetTokenInfo(slot, info);
  std::istringstream all = words();
  for (std::string word; all >> word;) {
    if (word.starts_with("flags+")) {
      info->flags |= std::stoul(word.substr(6), nullptr, 16);
    } else if (word.starts_with("flags-")) {
      info->flags &= ~std::stoul(word.substr(6), nullptr, 16);
    }
  }
  return result;
}

}  // namespace

extern "C" CK_RV C_GetFunctionList(CK_FUNCTION_LIST** list) {
  const char* const path = std::getenv("FAULTY_TOKEN_MODULE");
  void* const library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const auto get_list =
      library == nullptr
          ? nullptr
          : reinterpret_cast<CK_C_GetFunctionList>(::dlsym(library, "C_GetFunctionList"));
  CK_FUNCTION_LIST* found = nullptr;
  if (get_list == nullptr || get_list(&found) != CKR_OK) {
    return CKR_GENERAL_ERROR;
  }
  real = *found;
  faulty = real;
  faulty.C_Initialize = faulty_C_Initialize;
  faulty.C_OpenSession = faulty_C_OpenSession;
  faulty.C_Login = faulty_C_Login;
  faulty.C_GetMechanismInfo = faulty_C_GetMechanismInfo;
  faulty.C_FindObjectsInit = faulty_C_FindObjectsInit;
  faulty.C_EncryptInit = faulty_C_EncryptInit;
  faulty.C_Encrypt = faulty_C_Encrypt;
  faulty.C_DecryptInit = faulty_C_DecryptInit;
  faulty.C_Decrypt = faulty_C_Decrypt;
  faulty.C_SignInit = faulty_C_SignInit;
  faulty.C_GenerateKey = faulty_C_GenerateKey;
  faulty.C_GetSlotList = faulty_C_GetSlotList;
  faulty.C_GetTokenInfo = faulty_C_GetTokenInfo;
  *list = &faulty;
  return CKR_OK;
}

// Pkcs11Session is a session with a token in which the user has logged in. Move-only; used by one
// thread at a time. The login belongs to the process: it lasts until the last session ends.
#pragma once

#include <initializer_list>
#include <optional>

#include "src/base/unique_handle.h"
#include "src/keys/pkcs11_module.h"
#include "src/keys/token_pin.h"

namespace trireme {

// What a token says about a key.
struct TokenKeyFacts {
  std::string label;
  std::string id;  // bytes
  bool is_aes_256 = false;
  bool may_encrypt = false;
  bool may_decrypt = false;
  bool is_extractable = false;  // or readable
};

class Pkcs11Session {
 public:
  enum class Use { read, write };

  // Throws what Pkcs11Module::token() and TokenPin::get() throw, and PolicyError or DeviceError if
  // the token does not let the user in. A PIN is not tried if one more wrong one would lock the
  // token.
  Pkcs11Session(const Pkcs11Module& module, const Pkcs11Uri& uri, TokenPin& pin,
                Use use = Use::read);

  const Pkcs11Token& token() const { return token_; }
  const CK_FUNCTION_LIST& calls() const { return *session_.get().calls; }
  CK_SESSION_HANDLE handle() const { return session_.get().handle; }

  // Returns the keys of a class that the URI names, by default the secret ones.
  std::vector<CK_OBJECT_HANDLE> find_keys(const Pkcs11Uri& uri,
                                          CK_OBJECT_CLASS kind = CKO_SECRET_KEY) const;
  // Prepares making a key: checks that the URI names no key of these classes and gives it a random
  // id if it has none. Throws PolicyError if there is such a key.
  void prepare_new_key(Pkcs11Uri& uri, std::initializer_list<CK_OBJECT_CLASS> kinds) const;
  TokenKeyFacts facts(CK_OBJECT_HANDLE key) const;
  // Return an attribute of a key: "" or nothing if the token does not tell it.
  std::string text_of(CK_OBJECT_HANDLE key, CK_ATTRIBUTE_TYPE type) const;
  std::optional<bool> flag_of(CK_OBJECT_HANDLE key, CK_ATTRIBUTE_TYPE type) const;
  std::optional<CK_ULONG> number_of(CK_OBJECT_HANDLE key, CK_ATTRIBUTE_TYPE type) const;
  // Throws unless the result is CKR_OK. The message is "token 'NAME': WHAT".
  void check_result(CK_RV result, std::string_view what) const;

 private:
  struct Open {
    const CK_FUNCTION_LIST* calls = nullptr;
    CK_SESSION_HANDLE handle = 0;
    friend bool operator==(const Open&, const Open&) = default;
  };
  struct OpenTraits {
    using Handle = Open;
    static Handle none() { return {}; }
    static void close(Handle open) { (void)open.calls->C_CloseSession(open.handle); }
  };

  void log_in(TokenPin& pin) const;
  void check_may_try_pin() const;
  bool is_logged_in() const;

  Pkcs11Token token_;
  UniqueHandle<OpenTraits> session_;
};

}  // namespace trireme

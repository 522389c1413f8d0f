// SoftTokens are tokens of SoftHSM in a temporary folder, named "first" and "second", with the PIN
// "5678". There is one instance per process, because a module reads its configuration once.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/core.h>
#include <sys/stat.h>

#include "src/keys/pkcs11_session.h"
#include "tests/support/temp_folder.h"

namespace trireme {

class SoftTokens {
 public:
  static SoftTokens& instance() {
    static SoftTokens tokens;
    return tokens;
  }

  // False if SoftHSM is not installed.
  bool exist() const { return exist_; }
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }

  // Writes a file that only this user can read, and returns its path.
  std::filesystem::path file(const std::string& name, const std::string& text) const {
    std::filesystem::remove(path(name));
    std::ofstream(path(name)) << text;
    ::chmod(path(name).c_str(), 0600);
    return path(name);
  }

  // rest: such as "token=first;object=key".
  std::string uri(const std::string& rest, const std::string& module = kModule) const {
    return fmt::format("pkcs11:{}?module-path={}&pin-source=file:{}", rest, module,
                       path("pin").string());
  }
  std::string faulty_uri(const std::string& rest) const { return uri(rest, FAULTY_TOKEN_PATH); }

  // Opens a session that may write.
  Pkcs11Session session(const std::string& token) const {
    TokenPin pin(path("pin"));
    const Pkcs11Uri where = parse_pkcs11_uri(uri("object=any;token=" + token));
    return {Pkcs11Module(where.module_path), where, pin, Pkcs11Session::Use::write};
  }

  // Puts a key into a token, which the token would also hand out.
  void import_key(const std::string& token, std::string label, std::string id, std::string bytes,
                  bool may_encrypt = true) const {
    CK_OBJECT_CLASS secret_key = CKO_SECRET_KEY;
    CK_KEY_TYPE aes = CKK_AES;
    CK_BBOOL yes = CK_TRUE;
    CK_BBOOL no = CK_FALSE;
    CK_BBOOL encrypt = may_encrypt ? CK_TRUE : CK_FALSE;
    CK_ATTRIBUTE attributes[] = {{CKA_CLASS, &secret_key, sizeof secret_key},
                                 {CKA_KEY_TYPE, &aes, sizeof aes},
                                 {CKA_TOKEN, &yes, sizeof yes},
                                 {CKA_SENSITIVE, &no, sizeof no},
                                 {CKA_EXTRACTABLE, &yes, sizeof yes},
                                 {CKA_ENCRYPT, &encrypt, sizeof encrypt},
                                 {CKA_DECRYPT, &yes, sizeof yes},
                                 {CKA_LABEL, label.data(), label.size()},
                                 {CKA_ID, id.data(), id.size()},
                                 {CKA_VALUE, bytes.data(), bytes.size()}};
    const Pkcs11Session open = session(token);
    CK_OBJECT_HANDLE key = 0;
    open.check_result(
        open.calls().C_CreateObject(open.handle(), attributes, std::size(attributes), &key),
        "cannot import");
  }

 private:
  static constexpr const char* kModule = "/usr/lib/softhsm/libsofthsm2.so";

  SoftTokens() {
    std::filesystem::create_directory(path("tokens"));
    const auto configuration =
        file("softhsm2.conf", fmt::format("directories.tokendir = {}\nobjectstore.backend = file\n"
                                          "log.level = ERROR\n",
                                          path("tokens").string()));
    ::setenv("SOFTHSM2_CONF", configuration.c_str(), 1);
    ::setenv("FAULTY_TOKEN_MODULE", kModule, 1);
    file("pin", "5678\n");
    exist_ = std::filesystem::exists(kModule) && make("first") && make("second");
  }
  static bool make(const std::string& label) {
    return std::system(fmt::format("softhsm2-util --init-token --free --label {} --so-pin 1234 "
                                   "--pin 5678 >/dev/null",
                                   label)
                           .c_str()) == 0;
  }

  TempFolder folder_;
  bool exist_ = false;
};

}  // namespace trireme

// Pkcs11Uri names an AES key or a signing key in a token (a hardware security module, a smart card,
// or SoftHSM) by the URI scheme of RFC 7512:
//
//   pkcs11:token=NAME;object=NAME?module-path=/PATH/MODULE.so&pin-source=file:/PATH
//
// The path may use token, serial, manufacturer and model to choose the token, and object, id and
// type to choose the key; type is secret-key or private, and does not matter. The query may use
// module-path and pin-source. Characters may be written as %XX. Pure functions.
#pragma once

#include <string>

namespace trireme {

inline constexpr std::string_view kPkcs11Kind = "pkcs11";
// The module that offers all modules which p11-kit is configured for.
inline constexpr std::string_view kUsualModule = "p11-kit-proxy.so";

// What is empty may be anything. At least one of token and serial, and one of object and id, are
// given.
struct Pkcs11Uri {
  std::string token = {};
  std::string serial = {};
  std::string manufacturer = {};
  std::string model = {};
  std::string object = {};
  std::string id = {};  // bytes
  std::string module_path = std::string(kUsualModule);
  std::string pin_source = {};  // a path; empty: ask on the terminal
};

// uri: begins with "pkcs11:". Throws ConfigError for a text that is no such URI, or holds a PIN.
Pkcs11Uri parse_pkcs11_uri(std::string_view uri);

}  // namespace trireme

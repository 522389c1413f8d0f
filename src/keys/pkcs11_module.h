// Pkcs11Module is a module: the library through which tokens of one vendor are used. It is loaded
// at run time, and stays loaded and initialized until the process ends, because others in the
// process may use it. A value; usable from any thread, unless the module has no locks of its own.
#pragma once

#include <string>
#include <vector>

#include <p11-kit/pkcs11.h>

#include "src/keys/pkcs11_uri.h"

namespace trireme {

struct Pkcs11Token {
  CK_SLOT_ID slot = 0;
  std::string label;
  std::string serial;
  std::string manufacturer;
  std::string model;
  CK_FLAGS flags = 0;
};

class Pkcs11Module {
 public:
  // Throws ConfigError if the file cannot be loaded or is no module, and DeviceError if the module
  // does not start.
  explicit Pkcs11Module(const std::string& path);

  const CK_FUNCTION_LIST& calls() const { return *calls_; }
  std::vector<Pkcs11Token> tokens() const;
  // Returns the token that the URI names. Throws NotFound if it is absent, and ConfigError if there
  // are several.
  Pkcs11Token token(const Pkcs11Uri& uri) const;

 private:
  std::string path_;
  CK_FUNCTION_LIST* calls_ = nullptr;
};

}  // namespace trireme

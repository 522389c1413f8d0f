#include "src/keys/token_pin.h"

#include "src/base/error.h"
#include "src/keys/secret_source.h"

namespace trireme {

const Secret& TokenPin::get(const std::string& token) {
  if (is_refused_) {
    throw PolicyError(fmt::format(
        "token '{}': the PIN was refused before and is not tried again: start again with the right "
        "one",
        token));
  }
  if (!pin_) {
    pin_ = source_.empty()
               ? ask_secret(fmt::format("PIN of the token '{}':", token),
                            "write the PIN to a file that only you can read, and name it as "
                            "pin-source=file:/PATH in the URI of the key")
               : read_secret_line(source_, "a PIN");
  }
  return *pin_;
}

}  // namespace trireme

// Parses any bytes as the URI of a key, which is accepted or refused with a ConfigError. No key is
// opened.
#include "src/keys/key_uri.h"
#include "src/keys/pkcs11_uri.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string text(text_of(data, bytes));
  refuses_only_with<ConfigError>([&] { check_key_uri(text); });
  refuses_only_with<ConfigError>([&] {
    const Pkcs11Uri uri = parse_pkcs11_uri(text);
    require(!uri.token.empty() || !uri.serial.empty());
    require(!uri.object.empty() || !uri.id.empty());
    require(uri.module_path == kUsualModule || uri.module_path.starts_with('/'));
    require(uri.pin_source.empty() || uri.pin_source.starts_with('/'));
    check_key_uri(text);
  });
  return 0;
}

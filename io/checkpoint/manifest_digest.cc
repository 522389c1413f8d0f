#include "io/checkpoint/manifest_digest.h"

#include "src/base/digest.h"

namespace trireme {
namespace {

constexpr std::string_view kPrefix = "{\"digest\": \"sha256:";
constexpr std::string_view kZeros =
    "0000000000000000000000000000000000000000000000000000000000000000";

std::string digest_of(std::string_view text) {
  Sha256 digest;
  digest.update(text.substr(0, kPrefix.size()));
  digest.update(kZeros);
  digest.update(text.substr(kPrefix.size() + kZeros.size()));
  return digest.finish_hex();
}

}  // namespace

std::string sealed(const std::string& fields) {
  std::string text = std::string(kPrefix) + std::string(kZeros) + "\",\n" + fields;
  return text.replace(kPrefix.size(), kZeros.size(), digest_of(text));
}

bool is_sealed(std::string_view text) {
  return text.size() >= kPrefix.size() + kZeros.size() && text.starts_with(kPrefix) &&
         text.substr(kPrefix.size(), kZeros.size()) == digest_of(text);
}

}  // namespace trireme

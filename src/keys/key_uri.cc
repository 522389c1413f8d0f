#include "src/keys/key_uri.h"

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/keys/key_file.h"

namespace trireme {
namespace {

struct KeyUri {
  std::string scheme;
  std::string rest;
};

KeyUri parse_key_uri(const std::string& uri) {
  const std::size_t colon = uri.find(':');
  const KeyUri parsed{uri.substr(0, colon),
                      colon == std::string::npos ? "" : uri.substr(colon + 1)};
  if (parsed.scheme != kFileKind || parsed.rest.empty()) {
    throw ConfigError(fmt::format("'{}' names no key: write file:PATH", printable(uri)));
  }
  return parsed;
}

}  // namespace

void check_key_uri(const std::string& uri) { (void)parse_key_uri(uri); }

std::unique_ptr<WrappingKey> open_key(const std::string& uri) {
  const KeyUri parsed = parse_key_uri(uri);
  return KeyFile::load(parsed.rest);
}

}  // namespace trireme

#include "io/checkpoint/keys_file.h"

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostKeysBytes = std::int64_t{16} << 20;

std::string keys_text(const std::filesystem::path& file) {
  try {
    return read_file(file, kMostKeysBytes);
  } catch (const NotFound&) {
    throw DataError(
        fmt::format("{} is missing, without which nothing opens the checkpoint", file.string()));
  }
}

}  // namespace

WrappedKeys read_keys_file(const std::filesystem::path& folder, const Manifest& manifest) {
  const std::filesystem::path file = folder / kKeysFileName;
  WrappedKeys keys = parse_wrapped_keys(keys_text(file), file.string());
  if (keys.data_key != manifest.data_key || keys.contents != manifest.seal) {
    throw DataError(fmt::format(
        "{}: belongs to another manifest: one of them was replaced or changed", file.string()));
  }
  if (keys.recipients.empty()) {
    throw DataError(
        fmt::format("{}: the key of this checkpoint was destroyed, and nothing opens it any more: "
                    "remove {}",
                    file.string(), folder.string()));
  }
  return keys;
}

}  // namespace trireme

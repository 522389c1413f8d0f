#include "src/keys/keys_file.h"

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostKeysBytes = std::int64_t{16} << 20;

std::string text_of(const std::filesystem::path& file, const char* what) {
  try {
    return read_file(file, kMostKeysBytes);
  } catch (const NotFound&) {
    throw DataError(
        fmt::format("{} is missing, without which nothing opens the {}", file.string(), what));
  }
}

}  // namespace

WrappedKeys read_keys_file(const SealedFolder& sealed) {
  const std::filesystem::path file = sealed.folder / kKeysFileName;
  WrappedKeys keys = parse_wrapped_keys(text_of(file, sealed.what), file.string());
  if (keys.data_key != sealed.data_key || keys.contents != sealed.seal) {
    throw DataError(fmt::format(
        "{}: belongs to another manifest: one of them was replaced or changed", file.string()));
  }
  if (keys.recipients.empty()) {
    throw DataError(
        fmt::format("{}: the key of this {} was destroyed, and nothing opens it any more: remove "
                    "{}. Whoever may write there can also make it look so: if nobody has "
                    "destroyed the key, restore {} from a copy",
                    file.string(), sealed.what, sealed.folder.string(), kKeysFileName));
  }
  return keys;
}

}  // namespace trireme

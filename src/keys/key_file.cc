#include "src/keys/key_file.h"

#include <algorithm>
#include <sstream>

#include "src/base/base64.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/private_file.h"

namespace trireme {
namespace {

constexpr std::string_view kMark = "TRIREME-KEY-1 ";
constexpr std::int64_t kMostBytes = 4096;

[[noreturn]] void refuse_key_file(const std::filesystem::path& path, std::string_view what) {
  throw DataError(
      fmt::format("{}: {}; make a key with `trireme keys create`", printable(path.string()), what));
}

// Returns the key in a line of the file.
DataKey parse_key(const std::filesystem::path& path, std::string_view digits) {
  std::string bytes;
  try {
    bytes = from_base64(digits);
  } catch (const DataError&) {
    refuse_key_file(path, "the key is not base64");
  }
  if (bytes.size() != DataKey::kBytes) {
    wipe(bytes.data(), bytes.size());
    refuse_key_file(path, "the key does not have 32 bytes");
  }
  if (std::all_of(bytes.begin(), bytes.end(), [&](char byte) { return byte == bytes[0]; })) {
    wipe(bytes.data(), bytes.size());
    refuse_key_file(path, "all bytes of the key are equal, so that anyone can guess it");
  }
  Secret secret{std::string_view(bytes)};
  wipe(bytes.data(), bytes.size());
  return DataKey(std::move(secret));
}

}  // namespace

std::unique_ptr<KeyFile> KeyFile::load(const std::filesystem::path& path) {
  const PrivateFile file(path, kMostBytes, "an encryption key");
  file.check_owner_only();
  std::string name;
  std::string_view rest = file.text();
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.starts_with(kMark)) {
      if (rest.find_first_not_of(" \r\n") != std::string_view::npos) {
        refuse_key_file(path, "something follows the key");
      }
      const std::string_view digits = line.substr(kMark.size());
      DataKey key = parse_key(path, digits.substr(0, digits.find_last_not_of(" \r") + 1));
      return std::unique_ptr<KeyFile>(new KeyFile(path, std::move(name), std::move(key)));
    }
    if (line.starts_with('#')) {
      const std::size_t word = line.find_first_not_of("# \t");
      name = word == std::string_view::npos ? "" : printable(line.substr(word));
    } else if (line.find_first_not_of(" \r") != std::string_view::npos) {
      break;
    }
  }
  refuse_key_file(path, "this is no encryption key");
}

void KeyFile::create(const std::filesystem::path& path, std::string_view name) {
  std::string digits = to_base64(DataKey::generate().bytes().view());
  std::string text = fmt::format("# {}\n{}{}\n", name, kMark, digits);
  wipe(digits.data(), digits.size());
  try {
    write_private_file(path, text);
  } catch (const Error&) {
    wipe(text.data(), text.size());
    throw;
  }
  wipe(text.data(), text.size());
}

std::string KeyFile::title() const {
  return fmt::format("key file {} ({})", printable(path_.string()), id());
}

}  // namespace trireme

// KeyFile is a wrapping key in a file that only its owner can read:
//
//   # NAME                                  what people call the key; may be missing
//   TRIREME-KEY-1 <base64 of 32 bytes>
//
// held_key.h says how it is identified and used.
#pragma once

#include <filesystem>
#include <memory>

#include "src/keys/held_key.h"

namespace trireme {

class KeyFile final : public HeldKey {
 public:
  // Throws NotFound if there is no such file, PolicyError if others can use it, and DataError if it
  // holds no key.
  static std::unique_ptr<KeyFile> load(const std::filesystem::path& path);
  // Makes a key and writes it to a new file. name: one line, may be empty. Throws PolicyError if
  // the path exists.
  static void create(const std::filesystem::path& path, std::string_view name);

  std::string title() const override;

 private:
  KeyFile(std::filesystem::path path, std::string name, DataKey key)
      : HeldKey(kFileKind, std::move(name), std::move(key)), path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace trireme

// KeyFile is a wrapping key in a file that only its owner can read:
//
//   # NAME                                  what people call the key; may be missing
//   TRIREME-KEY-1 <base64 of 32 bytes>
//
// Its identity is that of DataKey: HKDF-SHA256 of the bytes with the info "trireme id".
#pragma once

#include <filesystem>
#include <memory>

#include "src/keys/wrapping_key.h"

namespace trireme {

class KeyFile final : public WrappingKey {
 public:
  // Throws NotFound if there is no such file, PolicyError if others can use it, and DataError if it
  // holds no key.
  static std::unique_ptr<KeyFile> load(const std::filesystem::path& path);
  // Makes a key and writes it to a new file. name: one line, may be empty. Throws PolicyError if
  // the path exists.
  static void create(const std::filesystem::path& path, std::string_view name);

  const std::string& id() const { return key_.id(); }
  const std::string& name() const { return name_; }

  Recipient wrap(const DataKey& key) override;
  std::optional<DataKey> unwrap(const Recipient& recipient, std::string_view data_key_id) override;
  std::string title() const override;

 private:
  KeyFile(std::filesystem::path path, std::string name, DataKey key)
      : path_(std::move(path)), name_(std::move(name)), key_(std::move(key)) {}

  std::filesystem::path path_;
  std::string name_;
  DataKey key_;
};

inline constexpr std::string_view kFileKind = "file";

}  // namespace trireme

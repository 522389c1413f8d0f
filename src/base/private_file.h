// Reads a file that holds a secret: a key, a passphrase, a PIN. What is checked is what is read,
// also if another file takes the name meanwhile. The text is wiped from memory at destruction, and
// the process writes no core files from the first such file on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace trireme {

class PrivateFile {
 public:
  // what: such as "a private key". Throws NotFound, PolicyError or IoError if the file can't be
  // read, and DataError if it is longer than `most_bytes`.
  PrivateFile(const std::filesystem::path& path, std::int64_t most_bytes, std::string_view what);
  ~PrivateFile();
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;

  const std::string& text() const { return text_; }
  const std::filesystem::path& path() const { return path_; }
  // Throws PolicyError if others than its owner may read or change the file, or if its owner is
  // neither this user nor root.
  void check_owner_only() const;

 private:
  std::filesystem::path path_;
  std::string what_;
  std::string text_;
  unsigned mode_ = 0;
  unsigned owner_ = 0;
};

// Sees to it that the system writes no core file of this process, which could hold a secret.
void forbid_core_files();

// Writes a new file that only this user can read. Throws PolicyError if the path exists; leaves
// nothing behind if it fails.
void write_private_file(const std::filesystem::path& path, std::string_view text);

}  // namespace trireme

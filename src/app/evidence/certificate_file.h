// Writes the certificate of `trireme erase` so that the same command can finish an interrupted one,
// and a full disk cannot prevent it:
//
//   erased.json.draft   says what shall be erased, signed; written before anything is erased
//   erased.json.room    blanks on the disk; becomes the certificate
//   erased.json         the certificate
//
// Private to that command; used by one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "src/base/file.h"
#include "src/evidence/certificate.h"

namespace trireme {

class CertificateFile {
 public:
  // Reads the draft of an interrupted command, if there is one. If that command had written its
  // certificate, removes the draft. Throws PolicyError if `key` has not signed what has its name.
  CertificateFile(const std::filesystem::path& path, const SigningKey& key);

  // The draft of an interrupted command.
  const std::optional<Erasure>& draft() const { return draft_; }
  // The erasure whose certificate an interrupted command had written as its last deed but one.
  const std::optional<Erasure>& finished() const { return finished_; }
  // The absolute path of the certificate, and that of the draft.
  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& draft_path() const { return draft_path_; }

  // Throws ConfigError if the certificate lies in the folder that is erased, PolicyError if its
  // file exists and is not empty, and what check_named_file() throws.
  void check_place(const std::filesystem::path& folder) const;
  // Writes the draft durably, unless there is one that says the same, and takes the room. If that
  // fails, removes what it has written.
  void begin(const Erasure& erasure);
  // Writes the certificate into the room, gives it its name, and removes the draft.
  void finish(const std::string& text);

 private:
  void take_room(std::int64_t bytes);

  std::filesystem::path path_;
  std::filesystem::path draft_path_;
  std::filesystem::path room_path_;
  const SigningKey& key_;
  std::optional<Erasure> draft_;
  std::optional<Erasure> finished_;
  std::optional<File> room_;
};

}  // namespace trireme

// RecordFolder is an open folder of a registry's records, such as models/chat/versions. It is
// reached from the registry's folder without following a symbolic link, and all that is read and
// written in it stays in it, so that nobody who may write to a registry can lead another user's
// command elsewhere. For one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/file.h"

namespace trireme {

class RecordFolder {
 public:
  // path: of the folder below `root`, which itself may be reached through links. Return nothing if
  // it does not exist or is a file; the second makes it. Throw DataError for a symbolic link in its
  // place.
  static std::optional<RecordFolder> open(const std::filesystem::path& root,
                                          const std::filesystem::path& path);
  static RecordFolder open_or_make(const std::filesystem::path& root,
                                   const std::filesystem::path& path);

  std::vector<std::string> names() const;  // of everything in it, sorted
  // Throws NotFound if there is no such file, DataError for a link or anything but a file, and for
  // more than kMostRecordBytes.
  std::string read(const std::string& name) const;
  // Writes a file durably. Returns false if the name is taken.
  bool add(const std::string& name, std::string_view text) const;
  // Removes a file if it is there.
  void remove(const std::string& name) const;

 private:
  RecordFolder(int fd, std::filesystem::path path) : folder_(fd), path_(std::move(path)) {}

  UniqueHandle<FileDescriptorTraits> folder_;
  std::filesystem::path path_;  // for messages
};

}  // namespace trireme

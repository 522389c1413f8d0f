// Files: the one door to the file system. Every call retries EINTR and short transfers, checks
// every return code, close included, and throws IoError, NotFound or PolicyError with path and
// reason. A File belongs to one thread at a time, but read_at may be called from many threads at
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/unique_handle.h"

namespace trireme {

struct FileDescriptorTraits {
  using Handle = int;
  static int none() { return -1; }
  static void close(int fd);
};

class File {
 public:
  static File open_to_read(const std::filesystem::path& path);
  // Fails if the path exists already.
  static File create_new(const std::filesystem::path& path);
  static File open_to_append(const std::filesystem::path& path);
  // An existing file, to read and write at offsets.
  static File open_to_update(const std::filesystem::path& path);

  // Reads up to `bytes` at `offset`; fewer only at the end of the file.
  std::int64_t read_at(std::int64_t offset, void* to, std::int64_t bytes) const;
  // Reads exactly `bytes`; a shorter file is a DataError that names the byte.
  void read_exactly_at(std::int64_t offset, void* to, std::int64_t bytes) const;
  void write(const void* from, std::int64_t bytes);
  void write_at(std::int64_t offset, const void* from, std::int64_t bytes);
  // Reserves space so that a full disk is met before data is written. Where the file system can't,
  // nothing happens.
  void reserve(std::int64_t bytes);
  std::int64_t size() const;
  // To stable storage. After a failure the file's contents must be taken as lost.
  void sync();
  // Hints that the range will be read soon, or not again.
  void will_need(std::int64_t offset, std::int64_t bytes) const;
  void wont_need(std::int64_t offset, std::int64_t bytes) const;
  // Closes and reports what close() has to say; the destructor closes silently.
  void close();

  int fd() const { return handle_.get(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  File(int fd, std::filesystem::path path) : handle_(fd), path_(std::move(path)) {}

  UniqueHandle<FileDescriptorTraits> handle_;
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes = 1 << 30);
// Writes beside the path, syncs, renames over it, syncs the folder: readers see the old or the new.
void write_file_durably(const std::filesystem::path& path, std::string_view contents);
void sync_directory(const std::filesystem::path& path);
// rename(2), refusing to replace anything, then sync of the parent folder.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);
// With all folders above it; each new name is synced in the folder that holds it.
void make_directories(const std::filesystem::path& path);
// Whether the path, or what there is of it, lies on a file system that is mounted read-only.
bool is_read_only(const std::filesystem::path& path);
// Free bytes an unprivileged writer may use.
std::int64_t free_bytes(const std::filesystem::path& path);
// The error for errno `code` on `path`: NotFound, PolicyError or IoError by what the operator must
// do.
[[noreturn]] void throw_errno(int code, std::string_view operation,
                              const std::filesystem::path& path);
// The same of what std::filesystem has to say.
[[noreturn]] void throw_as_error(const std::filesystem::filesystem_error& error);

}  // namespace trireme

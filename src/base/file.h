// Reads and writes files. Every call retries after EINTR and short transfers, checks all return
// codes including that of close(), and throws IoError, NotFound or PolicyError with the path and
// the reason. A File belongs to one thread at a time, except that several threads may call read_at
// at once.
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
  // Throws if the path exists already.
  static File create_new(const std::filesystem::path& path);
  static File open_to_append(const std::filesystem::path& path);
  // Throws PolicyError if the path is a symbolic link, which could lead out of a run's folder.
  static File open_to_append_unlinked(const std::filesystem::path& path);
  // Opens an existing file for reading and writing at offsets.
  static File open_to_update(const std::filesystem::path& path);

  // Reads up to `bytes` at `offset`, and fewer only at the end of the file.
  std::int64_t read_at(std::int64_t offset, void* to, std::int64_t bytes) const;
  // Reads exactly `bytes`. Throws DataError that names the byte at which the file ends if it is too
  // short.
  void read_exactly_at(std::int64_t offset, void* to, std::int64_t bytes) const;
  void write(const void* from, std::int64_t bytes);
  void write_at(std::int64_t offset, const void* from, std::int64_t bytes);
  // Reserves space, so that a full disk is found before data is written. Does nothing if the file
  // system does not support it.
  void reserve(std::int64_t bytes);
  std::int64_t size() const;
  // Syncs to stable storage. After a failure, the contents of the file must be considered lost.
  void sync();
  // Hints that the range will be read soon, or not again.
  void will_need(std::int64_t offset, std::int64_t bytes) const;
  void wont_need(std::int64_t offset, std::int64_t bytes) const;
  // Closes the file and throws if close() reports an error, which the destructor ignores.
  void close();

  int fd() const { return handle_.get(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  File(int fd, std::filesystem::path path) : handle_(fd), path_(std::move(path)) {}

  UniqueHandle<FileDescriptorTraits> handle_;
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes = 1 << 30);
// Writes a temporary file beside the path, syncs it, renames it over the path and syncs the folder.
// Readers see the old or the new contents. A FIFO, socket or folder of that name is replaced or
// left to the system to refuse; devices, and links to anything but files, are refused
// (PolicyError).
void write_file_durably(const std::filesystem::path& path, std::string_view contents);
// Does the same with a file that a person has named: only a regular file is replaced, else throws
// PolicyError.
void write_named_file(const std::filesystem::path& path, std::string_view contents);
void sync_directory(const std::filesystem::path& path);
// Renames without replacing anything (else throws), then syncs the parent folder.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);
// Creates a folder and its parents, and syncs each parent in which it creates one.
void make_directories(const std::filesystem::path& path);
// Returns whether the path, or its nearest existing parent, is on a file system mounted read-only.
bool is_read_only(const std::filesystem::path& path);
// Returns the free bytes that an unprivileged writer may use.
std::int64_t free_bytes(const std::filesystem::path& path);
// Throws the error for errno `code` on `path`: NotFound, PolicyError or IoError, depending on what
// the operator must do.
[[noreturn]] void throw_errno(int code, std::string_view operation,
                              const std::filesystem::path& path);
// Throws the same kind of error for an error of std::filesystem.
[[noreturn]] void throw_as_error(const std::filesystem::filesystem_error& error);

}  // namespace trireme

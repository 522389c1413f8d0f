// H5File is a file of libhdf5, reduced to what datasets need: contiguous storage at known offsets,
// attributes of the root group, and a slow way to read integers of any file (H5Integers). Owns its
// handle. Only one thread at a time may use a file. libhdf5 serializes all threads, so the data
// path does not use it and reads at the offsets that this class reports. Locking is off
// (H5Pset_file_locking), because shards are written once under a temporary name. Files are not
// trusted: external links, external storage and virtual datasets are refused, no filter plugin is
// loaded, and each operation that reads metadata or values has a limit of CPU time (HangGuard).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/h5/h5_handle.h"
#include "io/h5/h5_integers.h"
#include "io/h5/hang_guard.h"

namespace trireme {

enum class H5Type { u8, u16, u32, u64 };

// H5DatasetInfo holds the properties of a dataset.
struct H5DatasetInfo {
  std::vector<std::int64_t> extents;  // outermost first
  bool integers = false;
  bool little_endian = false;
  bool has_sign = false;
  int element_bytes = 0;
  bool contiguous = false;
  // First byte in the file if the storage is contiguous and allocated, or -1.
  std::int64_t offset = -1;
  std::int64_t storage_bytes = 0;

  std::int64_t elements() const;
};

class H5File {
 public:
  // Creates a file, replacing an old one. Objects of 1 KiB and more start at multiples of
  // `alignment_bytes`. The file contains no timestamps, so equal content gives equal bytes.
  static H5File create(const std::filesystem::path& path, std::int64_t alignment_bytes);
  // limit: CPU time for each later operation and for this one.
  static H5File open_to_read(const std::filesystem::path& path,
                             std::chrono::milliseconds limit = kHangLimit);

  // Creates a contiguous one-dimensional dataset: little-endian, allocated at once, without fill
  // values. Returns its first byte's offset in the file, or -1 if it is empty.
  std::int64_t create_contiguous(const std::string& name, H5Type type, std::int64_t elements);
  void set_attribute(const std::string& name, const std::string& text);
  void set_attribute(const std::string& name, std::int64_t value);

  // These return nothing if there is no such attribute or dataset, and throw DataError if it has
  // another type or its values lie in other files.
  std::optional<std::string> text_attribute(const std::string& name) const;
  std::optional<std::int64_t> integer_attribute(const std::string& name) const;
  std::optional<H5DatasetInfo> dataset(const std::string& name) const;
  // Returns whether the path leads to anything, be it a link that leads nowhere. Checks only the
  // last link of a path.
  bool has_link(const std::string& name) const;
  // Opens a dataset of integers for reading; see H5Integers for what it refuses.
  std::optional<H5Integers> integers(const std::string& name) const;

  // Opens a dataset that this program has created. Throws DataError if there is none.
  H5Handle open_own(const std::string& name) const;
  void flush();
  // Flushes, closes, and throws if that fails. libhdf5 1.10 does not report metadata lost to a full
  // disk, so a program that wrote a file has to read it back.
  void close();
  const std::filesystem::path& path() const { return path_; }

 private:
  H5File(H5Handle handle, std::filesystem::path path, std::chrono::milliseconds limit = kHangLimit)
      : handle_(std::move(handle)), path_(std::move(path)), limit_(limit) {}
  H5Handle open_attribute(const std::string& name) const;

  H5Handle handle_;
  std::filesystem::path path_;
  std::chrono::milliseconds limit_;
};

}  // namespace trireme

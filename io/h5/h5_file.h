// H5File: a file of libhdf5, reduced to what datasets need: contiguous storage at known offsets,
// attributes of the root group, and a slow way to read anybody's integers (H5Integers).
// Owns its handle. One thread at a time may use a file; libhdf5 itself lets one thread in at a
// time, so the data path stays out of here: it reads at the offsets that this class reports.
// Locks are off (H5Pset_file_locking): shards are written once, under a temporary name.
// A file may come from anybody: nothing here follows it into other files. External links, external
// storage and virtual datasets are refused, and no filter plugin is loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/h5/h5_handle.h"
#include "io/h5/h5_integers.h"

namespace trireme {

enum class H5Type { u16, u32, u64 };

// What a dataset is made of.
struct H5DatasetInfo {
  std::vector<std::int64_t> extents;  // outermost first
  bool integers = false;
  bool little_endian = false;
  bool has_sign = false;
  int element_bytes = 0;
  bool contiguous = false;
  std::int64_t offset = -1;  // byte in the file where contiguous, allocated storage starts, or -1
  std::int64_t storage_bytes = 0;

  std::int64_t elements() const;
};

class H5File {
 public:
  // A new file (an old one is replaced). Objects of 1 KiB and more start at multiples of
  // `alignment_bytes`. No time of day enters the file: the same content gives the same bytes.
  static H5File create(const std::filesystem::path& path, std::int64_t alignment_bytes);
  static H5File open_to_read(const std::filesystem::path& path);

  // A contiguous one-dimensional dataset: little endian, allocated now, never filled. Returns the
  // byte where it starts; -1 when it is empty.
  std::int64_t create_contiguous(const std::string& name, H5Type type, std::int64_t elements);
  void set_attribute(const std::string& name, const std::string& text);
  void set_attribute(const std::string& name, std::int64_t value);

  // Nothing where there is no such attribute or dataset; DataError where it has another type, or
  // where its values lie in other files.
  std::optional<std::string> text_attribute(const std::string& name) const;
  std::optional<std::int64_t> integer_attribute(const std::string& name) const;
  std::optional<H5DatasetInfo> dataset(const std::string& name) const;
  // Opens a dataset of integers for reading; see H5Integers for what is refused.
  std::optional<H5Integers> integers(const std::string& name) const;

  // Closes and reports. libhdf5 1.10 says nothing when a full disk swallowed metadata: whoever
  // wrote the file has to read it back.
  void close();
  const std::filesystem::path& path() const { return path_; }

 private:
  H5File(H5Handle handle, std::filesystem::path path)
      : handle_(std::move(handle)), path_(std::move(path)) {}
  H5Handle open_attribute(const std::string& name) const;

  H5Handle handle_;
  std::filesystem::path path_;
};

}  // namespace trireme

// H5Bytes is an HDF5 file that holds one contiguous dataset of bytes, /bytes, read and written by
// libhdf5 itself: for benchmarks of HDF5, since training reads past the library. Owns its handles;
// one writer per file, one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>

#include "io/h5/h5_file.h"

namespace trireme {

class H5Bytes {
 public:
  // Creates a file, replacing an old one, with room for `bytes` bytes (more than 0).
  static H5Bytes create(const std::filesystem::path& path, std::int64_t bytes);
  // Throws DataError if there is no such dataset.
  static H5Bytes open(const std::filesystem::path& path);

  // Bytes [offset, offset + bytes) must lie in the dataset.
  void write(std::int64_t offset, const void* from, std::int64_t bytes);
  void read(std::int64_t offset, void* to, std::int64_t bytes) const;
  // Writes everything to stable storage.
  void sync();
  void close();

 private:
  H5Bytes(H5File file, H5Handle dataset) : file_(std::move(file)), dataset_(std::move(dataset)) {}
  H5Handle selection(std::int64_t offset, std::int64_t bytes) const;

  H5File file_;
  H5Handle dataset_;
};

}  // namespace trireme

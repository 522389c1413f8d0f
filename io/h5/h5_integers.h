// H5Integers is a one-dimensional dataset of integers, open for reading, in a file that is not
// trusted. The constructor checks that the file holds every value it claims, because HDF5 returns
// fill values, without an error, for values that were never written. Chunks are decompressed here
// and not by libhdf5 1.10, which reads beyond its buffer if a chunk is too short. The last chunk is
// kept, so that a sequential reader decompresses each chunk once. Owns its handles; for one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "io/h5/h5_chunk.h"
#include "io/h5/h5_handle.h"

namespace trireme {

class H5Integers {
 public:
  // dataset: opened without a chunk cache, with all values in this file. Throws DataError with
  // advice unless it is one-dimensional, holds integers of 1, 2, 4 or 8 bytes, has all of its
  // storage allocated, is no larger than the file's size allows, and is stored unfiltered or with
  // deflate (gzip), shuffle and fletcher32 only.
  // limit: CPU time for each read.
  H5Integers(H5Handle dataset, std::string name, std::filesystem::path path,
             std::chrono::milliseconds limit);

  std::int64_t size() const { return elements_; }
  // Reads elements [first, first + count), which must lie in the dataset. to: i64 [count]. A value
  // above the range of i64 is read as the largest i64.
  void read(std::int64_t first, std::int64_t count, std::int64_t* to);

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  void check_shape();
  void check_storage(std::int64_t creation, std::int64_t file_bytes);
  void check_chunks(std::int64_t creation);
  void read_plain(std::int64_t first, std::int64_t count, std::int64_t* to) const;
  void load_chunk(std::int64_t index);

  H5Handle dataset_;
  std::string name_;
  std::filesystem::path path_;
  std::chrono::milliseconds limit_;
  H5Handle type_;
  std::int64_t elements_ = 0;
  std::int64_t element_bytes_ = 0;
  std::int64_t chunk_elements_ = 0;  // 0: unfiltered, read by libhdf5
  bool partial_chunks_are_plain_ = false;
  std::vector<ChunkFilter> filters_;
  std::vector<std::byte> chunk_;  // decompressed chunk number chunk_index_
  std::int64_t chunk_index_ = -1;
};

// Returns the text of a value that H5Integers has read: "5", and for the largest i64, as which
// larger values are read, "9223372036854775807 or more".
std::string integer_text(std::int64_t value);

}  // namespace trireme

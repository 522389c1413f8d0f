// H5Integers: a one-dimensional dataset of integers in a file that anybody may have written, open
// for reading. Opening it checks that the file holds every value it promises: HDF5 itself returns
// fill values, without an error, for whatever was never written.
// Chunks are decompressed here, not by libhdf5 1.10, which reads beyond its buffer where a chunk is
// shorter than it should be. The last chunk is kept, so reading from front to back decompresses
// each chunk once. Owns its handles; one thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "io/h5/h5_chunk.h"
#include "io/h5/h5_handle.h"

namespace trireme {

class H5Integers {
 public:
  // dataset: opened without a chunk cache; its values lie in the file. DataError, with a way out,
  // unless it is one-dimensional, of integers of 1, 2, 4 or 8 bytes, complete (all of its storage
  // is allocated), within what a file of its size can hold, and stored plainly or with the filters
  // deflate (gzip), shuffle and fletcher32.
  H5Integers(H5Handle dataset, std::string name, std::filesystem::path path);

  std::int64_t size() const { return elements_; }
  // Elements [first, first + count), which must lie in the dataset. to: i64 [count]. A value
  // beyond the range of i64 reads as its largest value.
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
  H5Handle type_;
  std::int64_t elements_ = 0;
  std::int64_t element_bytes_ = 0;
  std::int64_t chunk_elements_ = 0;  // 0: no filters, libhdf5 reads the values
  bool partial_chunks_are_plain_ = false;
  std::vector<ChunkFilter> filters_;
  std::vector<std::byte> chunk_;  // the decompressed chunk number chunk_index_
  std::int64_t chunk_index_ = -1;
};

}  // namespace trireme

#include "io/h5/h5_integers.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "io/h5/h5_check.h"
#include "io/h5/hang_guard.h"
#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Path = std::filesystem::path;

// The number of elements converted at a time. H5Tconvert works in place on elements of up to 8
// bytes.
constexpr std::int64_t kConvertElements = std::int64_t{1} << 16;

std::vector<ChunkFilter> filters_of(std::int64_t creation, const std::string& where,
                                    const Path& path) {
  const int count = h5_check(H5Pget_nfilters(creation), "read the filters in", path);
  std::vector<ChunkFilter> filters;
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    char label[64] = {};
    const H5Z_filter_t filter =
        h5_check(H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr,
                                sizeof label, label, nullptr),
                 "read the filters in", path);
    switch (filter) {
      case H5Z_FILTER_DEFLATE:
        filters.push_back(ChunkFilter::deflate);
        break;
      case H5Z_FILTER_SHUFFLE:
        filters.push_back(ChunkFilter::shuffle);
        break;
      case H5Z_FILTER_FLETCHER32:
        filters.push_back(ChunkFilter::fletcher32);
        break;
      default:
        throw DataError(fmt::format(
            "{} is stored with filter {}{}: only gzip (deflate), shuffle and fletcher32 are "
            "supported; store it again with one of these: h5repack -f GZIP=1 {} NEW.h5",
            where, filter, label[0] == '\0' ? "" : fmt::format(" ({:.63})", label), path.string()));
    }
  }
  return filters;
}

}  // namespace

std::string integer_text(std::int64_t value) {
  const bool may_be_more = value == std::numeric_limits<std::int64_t>::max();
  return fmt::format("{}{}", value, may_be_more ? " or more" : "");
}

H5Integers::H5Integers(H5Handle dataset, std::string name, Path path,
                       std::chrono::milliseconds limit)
    : dataset_(std::move(dataset)), name_(std::move(name)), path_(std::move(path)), limit_(limit) {
  check_shape();
  const H5Handle creation(h5_check(H5Dget_create_plist(dataset_.get()), "read", path_));
  const H5Handle file(h5_check(H5Iget_file_id(dataset_.get()), "read", path_));
  hsize_t file_bytes = 0;
  h5_check(H5Fget_filesize(file.get(), &file_bytes), "read the size of", path_);
  check_storage(creation.get(), static_cast<std::int64_t>(file_bytes));
}

void H5Integers::refuse(const std::string& why) const {
  throw DataError(fmt::format("{}: {} {}", path_.string(), name_, why));
}

void H5Integers::check_shape() {
  type_ = H5Handle(h5_check(H5Dget_type(dataset_.get()), "read the type in", path_));
  const H5Handle space(h5_check(H5Dget_space(dataset_.get()), "read the shape in", path_));
  element_bytes_ = static_cast<std::int64_t>(H5Tget_size(type_.get()));
  const bool known_size =
      element_bytes_ == 1 || element_bytes_ == 2 || element_bytes_ == 4 || element_bytes_ == 8;
  if (H5Tget_class(type_.get()) != H5T_INTEGER || !known_size ||
      H5Sget_simple_extent_type(space.get()) != H5S_SIMPLE ||
      H5Sget_simple_extent_ndims(space.get()) != 1) {
    refuse("is not a one-dimensional dataset of integers of 1, 2, 4 or 8 bytes");
  }
  hsize_t extent = 0;
  h5_check(H5Sget_simple_extent_dims(space.get(), &extent, nullptr), "read the shape in", path_);
  if (extent > static_cast<hsize_t>(INT64_MAX / element_bytes_)) {
    refuse("claims more elements than fit into 64 bits: the file is damaged");
  }
  elements_ = static_cast<std::int64_t>(extent);
}

// Bounds everything that is read later by the size of the file.
void H5Integers::check_storage(std::int64_t creation, std::int64_t file_bytes) {
  const std::int64_t bytes = elements_ * element_bytes_;
  if (!may_decode_to(file_bytes, bytes)) {
    refuse(fmt::format("claims {} elements, more than fit into a file of {}: the file is damaged",
                       elements_, format_bytes(file_bytes)));
  }
  if (elements_ == 0) {
    return;
  }
  if (H5Pget_layout(creation) == H5D_CHUNKED) {
    check_chunks(creation);
    return;
  }
  const auto stored = static_cast<std::int64_t>(H5Dget_storage_size(dataset_.get()));
  if (stored != bytes) {
    refuse(
        fmt::format("has storage for {} of its {} bytes: the program that wrote the file did not "
                    "finish, and HDF5 would return fill values for the rest. Write the file again",
                    stored, bytes));
  }
}

void H5Integers::check_chunks(std::int64_t creation) {
  hsize_t extent = 0;
  h5_check(H5Pget_chunk(creation, 1, &extent), "read the chunks in", path_);
  const auto chunk_elements = static_cast<std::int64_t>(extent);
  const H5Handle space(h5_check(H5Dget_space(dataset_.get()), "read the shape in", path_));
  hsize_t found = 0;
  h5_check(H5Dget_num_chunks(dataset_.get(), space.get(), &found), "count the chunks in", path_);
  const std::int64_t wanted = (elements_ - 1) / chunk_elements + 1;
  if (static_cast<std::int64_t>(found) != wanted) {
    refuse(
        fmt::format("has {} of its {} chunks: the program that wrote the file did not finish, and "
                    "HDF5 would return fill values for the rest. Write the file again, or shrink "
                    "the dataset to the chunks that exist",
                    found, wanted));
  }
  unsigned options = 0;
  h5_check(H5Pget_chunk_opts(creation, &options), "read the chunks in", path_);
  partial_chunks_are_plain_ = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
  filters_ = filters_of(creation, fmt::format("{}: {}", path_.string(), name_), path_);
  chunk_elements_ = filters_.empty() ? 0 : chunk_elements;
}

void H5Integers::read(std::int64_t first, std::int64_t count, std::int64_t* to) {
  check(first >= 0 && count >= 0 && first <= elements_ && count <= elements_ - first,
        "a range of elements lies in the dataset");
  if (count == 0) {
    return;
  }
  const HangGuard guard(path_, limit_);
  if (chunk_elements_ == 0) {
    read_plain(first, count, to);
    return;
  }
  while (count > 0) {
    load_chunk(first / chunk_elements_);
    const std::int64_t within = first % chunk_elements_;
    const std::int64_t some = std::min({count, chunk_elements_ - within, kConvertElements});
    std::memcpy(to, chunk_.data() + within * element_bytes_,
                static_cast<std::size_t>(some * element_bytes_));
    h5_check(H5Tconvert(type_.get(), H5T_NATIVE_INT64, static_cast<std::size_t>(some), to, nullptr,
                        H5P_DEFAULT),
             "convert integers of", path_);
    first += some;
    count -= some;
    to += some;
  }
}

void H5Integers::read_plain(std::int64_t first, std::int64_t count, std::int64_t* to) const {
  const auto start = static_cast<hsize_t>(first);
  const auto extent = static_cast<hsize_t>(count);
  const H5Handle source(h5_check(H5Dget_space(dataset_.get()), "read", path_));
  h5_check(H5Sselect_hyperslab(source.get(), H5S_SELECT_SET, &start, nullptr, &extent, nullptr),
           "select elements in", path_);
  const H5Handle memory(h5_check(H5Screate_simple(1, &extent, nullptr), "read", path_));
  h5_check(H5Dread(dataset_.get(), H5T_NATIVE_INT64, memory.get(), source.get(), H5P_DEFAULT, to),
           "read a dataset of", path_);
}

void H5Integers::load_chunk(std::int64_t index) {
  if (index == chunk_index_) {
    return;
  }
  const auto start = static_cast<hsize_t>(index * chunk_elements_);
  const std::int64_t chunk_bytes = chunk_elements_ * element_bytes_;
  const std::string where = fmt::format("has a damaged chunk at element {}", start);
  hsize_t raw_bytes = 0;
  h5_check(H5Dget_chunk_storage_size(dataset_.get(), &start, &raw_bytes), "find a chunk of", path_);
  const auto stored_bytes = static_cast<std::int64_t>(raw_bytes);
  // No filter makes a chunk much larger than its data.
  if (!may_decode_to(stored_bytes, chunk_bytes) || stored_bytes / 2 > chunk_bytes + 1024) {
    refuse(fmt::format("{}: {} bytes are stored for a chunk of {}; restore the file from a copy",
                       where, stored_bytes, chunk_bytes));
  }
  std::vector<std::byte> stored(static_cast<std::size_t>(stored_bytes));
  std::uint32_t skipped = 0;
  h5_check(H5Dread_chunk(dataset_.get(), H5P_DEFAULT, &start, &skipped, stored.data()),
           "read a chunk of", path_);
  const bool partial = elements_ - index * chunk_elements_ < chunk_elements_;
  if (partial && partial_chunks_are_plain_) {
    skipped = ~std::uint32_t{0};
  }
  chunk_index_ = -1;
  chunk_.clear();
  try {
    chunk_ = decode_chunk(stored, filters_, skipped, element_bytes_, chunk_bytes);
  } catch (const DataError& error) {
    refuse(fmt::format("{}: {}; restore the file from a copy", where, error.what()));
  }
  chunk_index_ = index;
}

}  // namespace trireme

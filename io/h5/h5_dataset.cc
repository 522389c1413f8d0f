#include "io/h5/h5_check.h"
#include "io/h5/h5_file.h"
#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

H5Handle open_dataset(std::int64_t file, const std::string& name, const fs::path& path) {
  return H5Handle(h5_check(H5Dopen2(file, name.c_str(), H5P_DEFAULT), "open a dataset of", path));
}

// Whether every link on the way to `name` exists: H5Lexists asks for the last one only.
bool dataset_exists(std::int64_t file, const std::string& name, const fs::path& path) {
  for (std::size_t at = name.find('/', 1);; at = name.find('/', at + 1)) {
    const std::string part = name.substr(0, at);
    if (h5_check(H5Lexists(file, part.c_str(), H5P_DEFAULT), "look up a dataset of", path) == 0) {
      return false;
    }
    if (at == std::string::npos) {
      break;
    }
  }
  const H5Handle object(
      h5_check(H5Oopen(file, name.c_str(), H5P_DEFAULT), "open an object of", path));
  return H5Iget_type(object.get()) == H5I_DATASET;
}

std::vector<std::int64_t> extents_of(const H5Handle& dataset, const fs::path& path) {
  const H5Handle space(h5_check(H5Dget_space(dataset.get()), "read the shape in", path));
  const int rank = h5_check(H5Sget_simple_extent_ndims(space.get()), "read the shape in", path);
  std::vector<hsize_t> raw(static_cast<std::size_t>(rank));
  h5_check(H5Sget_simple_extent_dims(space.get(), raw.data(), nullptr), "read the shape in", path);
  return {raw.begin(), raw.end()};
}

}  // namespace

std::int64_t H5DatasetInfo::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0 || __builtin_mul_overflow(n, extent, &n)) {
      throw DataError("an HDF5 dataset claims more elements than 64 bits can count");
    }
  }
  return n;
}

std::optional<H5DatasetInfo> H5File::dataset(const std::string& name) const {
  if (!dataset_exists(handle_.get(), name, path_)) {
    return std::nullopt;
  }
  const H5Handle dataset = open_dataset(handle_.get(), name, path_);
  const H5Handle type(h5_check(H5Dget_type(dataset.get()), "read the type in", path_));
  const H5Handle creation(h5_check(H5Dget_create_plist(dataset.get()), "read", path_));
  H5DatasetInfo info;
  info.extents = extents_of(dataset, path_);
  info.integers = H5Tget_class(type.get()) == H5T_INTEGER;
  info.little_endian = info.integers && H5Tget_order(type.get()) == H5T_ORDER_LE;
  info.has_sign = info.integers && H5Tget_sign(type.get()) == H5T_SGN_2;
  info.element_bytes = static_cast<int>(H5Tget_size(type.get()));
  info.contiguous =
      H5Pget_layout(creation.get()) == H5D_CONTIGUOUS && H5Pget_external_count(creation.get()) == 0;
  info.storage_bytes = static_cast<std::int64_t>(H5Dget_storage_size(dataset.get()));
  const haddr_t offset = info.contiguous ? H5Dget_offset(dataset.get()) : HADDR_UNDEF;
  info.offset = offset == HADDR_UNDEF ? -1 : static_cast<std::int64_t>(offset);
  H5Eclear2(H5E_DEFAULT);
  return info;
}

void H5File::read_integers(const std::string& name, std::int64_t first, std::int64_t count,
                           std::int64_t* to) const {
  check(first >= 0 && count >= 0, "a range of elements");
  const H5Handle dataset = open_dataset(handle_.get(), name, path_);
  const std::vector<std::int64_t> extents = extents_of(dataset, path_);
  if (extents.size() != 1 || first > extents[0] || count > extents[0] - first) {
    throw DataError(fmt::format("{}: elements [{}, {}) do not lie in the one-dimensional {}",
                                path_.string(), first, first + count, name));
  }
  if (count == 0) {
    return;
  }
  const auto start = static_cast<hsize_t>(first);
  const auto extent = static_cast<hsize_t>(count);
  const H5Handle source(h5_check(H5Dget_space(dataset.get()), "read", path_));
  h5_check(H5Sselect_hyperslab(source.get(), H5S_SELECT_SET, &start, nullptr, &extent, nullptr),
           "select in", path_);
  const H5Handle memory(h5_check(H5Screate_simple(1, &extent, nullptr), "read", path_));
  h5_check(H5Dread(dataset.get(), H5T_NATIVE_INT64, memory.get(), source.get(), H5P_DEFAULT, to),
           "read a dataset of", path_);
}

}  // namespace trireme

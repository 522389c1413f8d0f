#include "io/h5/h5_check.h"
#include "io/h5/h5_file.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

// Target says what a link in the path of a dataset leads to: nothing, or an object in this file.
enum class Target { nothing, here };

[[noreturn]] void refuse(const fs::path& path, const std::string& name, const std::string& what) {
  throw DataError(fmt::format(
      "{}: {} {}: data is read from the named file only, because the author of a file could make "
      "it point to any file of yours. Copy the data into one file first (h5repack or h5py)",
      path.string(), name, what));
}

Target target_of(std::int64_t file, const std::string& name, const fs::path& path) {
  if (h5_check(H5Lexists(file, name.c_str(), H5P_DEFAULT), "look up a dataset of", path) == 0) {
    return Target::nothing;
  }
  H5L_info_t link{};
  h5_check(H5Lget_info(file, name.c_str(), &link, H5P_DEFAULT), "look up a dataset of", path);
  if (link.type == H5L_TYPE_HARD) {
    return Target::here;
  }
  if (link.type != H5L_TYPE_SOFT) {
    refuse(path, name, "is a link into another file");
  }
  // libhdf5 follows soft links within the file. h5_prepare() keeps it from following them to other
  // files.
  const htri_t exists = H5Oexists_by_name(file, name.c_str(), H5P_DEFAULT);
  if (exists < 0) {
    H5Eclear2(H5E_DEFAULT);
    refuse(path, name, "is a soft link that leads out of this file or back to itself");
  }
  return exists == 0 ? Target::nothing : Target::here;
}

// Returns no handle if there is no object of that name or it is not a dataset. H5Lexists checks
// only the last link of a path, so the links before it are checked one by one.
H5Handle find_dataset(std::int64_t file, const std::string& name, const fs::path& path) {
  for (std::size_t at = name.find('/', 1);; at = name.find('/', at + 1)) {
    if (target_of(file, name.substr(0, at), path) == Target::nothing) {
      return {};
    }
    if (at == std::string::npos) {
      break;
    }
  }
  H5Handle object(h5_check(H5Oopen(file, name.c_str(), H5P_DEFAULT), "open an object of", path));
  if (H5Iget_type(object.get()) != H5I_DATASET) {
    return {};
  }
  // This must precede all other queries: to find the shape of a virtual dataset, libhdf5 opens its
  // sources, and a dataset that is its own source overflows the stack.
  const H5Handle creation(h5_check(H5Dget_create_plist(object.get()), "read", path));
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL) {
    refuse(path, name, "is a virtual dataset, whose data is in other files");
  }
  if (h5_check(H5Pget_external_count(creation.get()), "read", path) > 0) {
    refuse(path, name, "has external storage, so its data is in other files");
  }
  return object;
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
      throw DataError("an HDF5 dataset claims more elements than fit into 64 bits");
    }
  }
  return n;
}

std::optional<H5DatasetInfo> H5File::dataset(const std::string& name) const {
  const HangGuard guard(path_, limit_);
  const H5Handle dataset = find_dataset(handle_.get(), name, path_);
  if (!dataset) {
    return std::nullopt;
  }
  const H5Handle type(h5_check(H5Dget_type(dataset.get()), "read the type in", path_));
  const H5Handle creation(h5_check(H5Dget_create_plist(dataset.get()), "read", path_));
  H5DatasetInfo info;
  info.extents = extents_of(dataset, path_);
  info.integers = H5Tget_class(type.get()) == H5T_INTEGER;
  info.little_endian = info.integers && H5Tget_order(type.get()) == H5T_ORDER_LE;
  info.has_sign = info.integers && H5Tget_sign(type.get()) == H5T_SGN_2;
  info.element_bytes = static_cast<int>(H5Tget_size(type.get()));
  info.contiguous = H5Pget_layout(creation.get()) == H5D_CONTIGUOUS;
  info.storage_bytes = static_cast<std::int64_t>(H5Dget_storage_size(dataset.get()));
  const haddr_t offset = info.contiguous ? H5Dget_offset(dataset.get()) : HADDR_UNDEF;
  info.offset = offset == HADDR_UNDEF ? -1 : static_cast<std::int64_t>(offset);
  H5Eclear2(H5E_DEFAULT);
  return info;
}

bool H5File::has_link(const std::string& name) const {
  const HangGuard guard(path_, limit_);
  return h5_check(H5Lexists(handle_.get(), name.c_str(), H5P_DEFAULT), "look up a dataset of",
                  path_) > 0;
}

std::optional<H5Integers> H5File::integers(const std::string& name) const {
  const HangGuard guard(path_, limit_);
  if (!find_dataset(handle_.get(), name, path_)) {
    return std::nullopt;
  }
  // Without a chunk cache, libhdf5 reads unfiltered chunks directly, instead of through buffers
  // whose size the file determines.
  const H5Handle access(h5_check(H5Pcreate(H5P_DATASET_ACCESS), "prepare", path_));
  h5_check(H5Pset_chunk_cache(access.get(), 1, 0, 1), "prepare", path_);
  H5Handle dataset(
      h5_check(H5Dopen2(handle_.get(), name.c_str(), access.get()), "open a dataset of", path_));
  return H5Integers(std::move(dataset), name, path_, limit_);
}

}  // namespace trireme

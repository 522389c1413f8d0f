#include "io/h5/h5_file.h"

#include "io/h5/h5_check.h"
#include "src/base/check.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

// Smaller objects are HDF5's own headers, which need no alignment.
constexpr hsize_t kAlignFromBytes = 1024;

H5Handle access_properties(const fs::path& path) {
  H5Handle list(h5_check(H5Pcreate(H5P_FILE_ACCESS), "prepare", path));
  h5_check(H5Pset_file_locking(list.get(), 0, 1), "disable locks for", path);
  h5_check(H5Pset_fclose_degree(list.get(), H5F_CLOSE_STRONG), "prepare", path);
  return list;
}

hid_t stored_type(H5Type type) {
  switch (type) {
    case H5Type::u8:
      return H5T_STD_U8LE;
    case H5Type::u16:
      return H5T_STD_U16LE;
    case H5Type::u32:
      return H5T_STD_U32LE;
    case H5Type::u64:
      return H5T_STD_U64LE;
  }
  return H5T_STD_U64LE;
}

H5Handle contiguous_properties(const fs::path& path) {
  H5Handle list(h5_check(H5Pcreate(H5P_DATASET_CREATE), "prepare", path));
  h5_check(H5Pset_layout(list.get(), H5D_CONTIGUOUS), "prepare", path);
  h5_check(H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY), "prepare", path);
  h5_check(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), "prepare", path);
  h5_check(H5Pset_obj_track_times(list.get(), false), "prepare", path);
  return list;
}

}  // namespace

H5File H5File::create(const fs::path& path, std::int64_t alignment_bytes) {
  h5_prepare();
  // Creating the file ourselves first gives a plain message for a missing folder or a read-only
  // disk.
  std::error_code ignored;
  fs::remove(path, ignored);
  File::create_new(path).close();
  const H5Handle access = access_properties(path);
  h5_check(H5Pset_alignment(access.get(), kAlignFromBytes, static_cast<hsize_t>(alignment_bytes)),
           "align", path);
  const H5Handle creation(h5_check(H5Pcreate(H5P_FILE_CREATE), "prepare", path));
  h5_check(H5Pset_obj_track_times(creation.get(), false), "prepare", path);
  H5Handle file(h5_check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()),
                         "create", path));
  return {std::move(file), path};
}

H5File H5File::open_to_read(const fs::path& path, std::chrono::milliseconds limit) {
  h5_prepare();
  File::open_to_read(path).close();
  const HangGuard guard(path, limit);
  const H5Handle access = access_properties(path);
  H5Handle file(h5_check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), "open", path));
  return {std::move(file), path, limit};
}

std::int64_t H5File::create_contiguous(const std::string& name, H5Type type,
                                       std::int64_t elements) {
  check(elements >= 0, "the number of elements is not negative");
  const auto extent = static_cast<hsize_t>(elements);
  const H5Handle space(
      h5_check(H5Screate_simple(1, &extent, nullptr), "make the shape of a dataset in", path_));
  const H5Handle creation = contiguous_properties(path_);
  const H5Handle dataset(h5_check(H5Dcreate2(handle_.get(), name.c_str(), stored_type(type),
                                             space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                                  "create a dataset in", path_));
  const haddr_t offset = H5Dget_offset(dataset.get());
  check(offset != HADDR_UNDEF || elements == 0, "early allocation gives an offset");
  return offset == HADDR_UNDEF ? -1 : static_cast<std::int64_t>(offset);
}

H5Handle H5File::open_own(const std::string& name) const {
  return H5Handle(
      h5_check(H5Dopen2(handle_.get(), name.c_str(), H5P_DEFAULT), "open a dataset of", path_));
}

void H5File::flush() { h5_check(H5Fflush(handle_.get(), H5F_SCOPE_GLOBAL), "flush", path_); }

void H5File::close() {
  if (handle_) {
    flush();
    h5_check(H5Fclose(handle_.release()), "close", path_);
  }
}

}  // namespace trireme

#include "io/h5/h5_bytes.h"

#include "io/h5/h5_check.h"
#include "src/base/file.h"

namespace trireme {
namespace {

constexpr std::int64_t kAlignmentBytes = 4096;
constexpr const char* kName = "bytes";

H5Handle memory_space(std::int64_t bytes, const std::filesystem::path& path) {
  const auto extent = static_cast<hsize_t>(bytes);
  return H5Handle(h5_check(H5Screate_simple(1, &extent, nullptr), "make a shape for", path));
}

}  // namespace

H5Bytes H5Bytes::create(const std::filesystem::path& path, std::int64_t bytes) {
  H5File file = H5File::create(path, kAlignmentBytes);
  file.create_contiguous(kName, H5Type::u8, bytes);
  H5Handle dataset = file.open_own(kName);
  return {std::move(file), std::move(dataset)};
}

H5Bytes H5Bytes::open(const std::filesystem::path& path) {
  H5File file = H5File::open_to_read(path);
  H5Handle dataset = file.open_own(kName);
  return {std::move(file), std::move(dataset)};
}

H5Handle H5Bytes::selection(std::int64_t offset, std::int64_t bytes) const {
  H5Handle space(h5_check(H5Dget_space(dataset_.get()), "read the shape of", file_.path()));
  const auto start = static_cast<hsize_t>(offset);
  const auto count = static_cast<hsize_t>(bytes);
  h5_check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr),
           "select bytes of", file_.path());
  return space;
}

void H5Bytes::write(std::int64_t offset, const void* from, std::int64_t bytes) {
  const H5Handle place = selection(offset, bytes);
  const H5Handle memory = memory_space(bytes, file_.path());
  h5_check(H5Dwrite(dataset_.get(), H5T_NATIVE_UINT8, memory.get(), place.get(), H5P_DEFAULT, from),
           "write", file_.path());
}

void H5Bytes::read(std::int64_t offset, void* to, std::int64_t bytes) const {
  const H5Handle place = selection(offset, bytes);
  const H5Handle memory = memory_space(bytes, file_.path());
  h5_check(H5Dread(dataset_.get(), H5T_NATIVE_UINT8, memory.get(), place.get(), H5P_DEFAULT, to),
           "read", file_.path());
}

void H5Bytes::sync() {
  file_.flush();
  File::open_to_update(file_.path()).sync();
}

void H5Bytes::close() {
  dataset_ = H5Handle();
  file_.close();
}

}  // namespace trireme

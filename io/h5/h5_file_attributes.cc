#include <algorithm>

#include "io/h5/h5_check.h"
#include "io/h5/h5_file.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// Trireme writes no longer attributes. The limit keeps a damaged length from taking all memory.
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 16;

H5Handle scalar_space(const std::filesystem::path& path) {
  return H5Handle(h5_check(H5Screate(H5S_SCALAR), "make the shape of an attribute of", path));
}

H5Handle fixed_text(std::size_t bytes, const std::filesystem::path& path) {
  H5Handle type(h5_check(H5Tcopy(H5T_C_S1), "prepare", path));
  h5_check(H5Tset_size(type.get(), bytes), "prepare", path);
  h5_check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "prepare", path);
  h5_check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "prepare", path);
  return type;
}

H5Handle create_attribute(std::int64_t file, const std::string& name, hid_t type,
                          const std::filesystem::path& path) {
  const H5Handle space = scalar_space(path);
  return H5Handle(
      h5_check(H5Acreate2(file, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
               "create an attribute in", path));
}

void expect_scalar(const H5Handle& attribute, const std::string& name,
                   const std::filesystem::path& path) {
  const H5Handle space(h5_check(H5Aget_space(attribute.get()), "read an attribute of", path));
  if (H5Sget_simple_extent_npoints(space.get()) != 1) {
    throw DataError(fmt::format("{}: attribute '{}' is not a single value", path.string(), name));
  }
}

}  // namespace

void H5File::set_attribute(const std::string& name, const std::string& text) {
  const H5Handle type = fixed_text(std::max<std::size_t>(text.size(), 1), path_);
  const H5Handle attribute = create_attribute(handle_.get(), name, type.get(), path_);
  const std::string padded = text.empty() ? std::string(1, '\0') : text;
  h5_check(H5Awrite(attribute.get(), type.get(), padded.data()), "write an attribute of", path_);
}

void H5File::set_attribute(const std::string& name, std::int64_t value) {
  const H5Handle attribute = create_attribute(handle_.get(), name, H5T_STD_I64LE, path_);
  h5_check(H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value), "write an attribute of", path_);
}

H5Handle H5File::open_attribute(const std::string& name) const {
  if (h5_check(H5Aexists(handle_.get(), name.c_str()), "look up an attribute of", path_) == 0) {
    return {};
  }
  H5Handle attribute(
      h5_check(H5Aopen(handle_.get(), name.c_str(), H5P_DEFAULT), "open an attribute of", path_));
  expect_scalar(attribute, name, path_);
  return attribute;
}

std::optional<std::string> H5File::text_attribute(const std::string& name) const {
  const HangGuard guard(path_, limit_);
  const H5Handle attribute = open_attribute(name);
  if (!attribute) {
    return std::nullopt;
  }
  const H5Handle type(h5_check(H5Aget_type(attribute.get()), "read an attribute of", path_));
  const std::size_t bytes = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 ||
      bytes > kMaxTextBytes) {
    throw DataError(
        fmt::format("{}: attribute '{}' is not a string of fixed length", path_.string(), name));
  }
  std::string text(bytes, '\0');
  const H5Handle memory = fixed_text(bytes, path_);
  h5_check(H5Aread(attribute.get(), memory.get(), text.data()), "read an attribute of", path_);
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

std::optional<std::int64_t> H5File::integer_attribute(const std::string& name) const {
  const HangGuard guard(path_, limit_);
  const H5Handle attribute = open_attribute(name);
  if (!attribute) {
    return std::nullopt;
  }
  const H5Handle type(h5_check(H5Aget_type(attribute.get()), "read an attribute of", path_));
  if (H5Tget_class(type.get()) != H5T_INTEGER) {
    throw DataError(fmt::format("{}: attribute '{}' is not an integer", path_.string(), name));
  }
  std::int64_t value = 0;
  h5_check(H5Aread(attribute.get(), H5T_NATIVE_INT64, &value), "read an attribute of", path_);
  return value;
}

}  // namespace trireme

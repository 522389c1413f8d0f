#include "src/base/file_kind.h"

namespace trireme {

std::string other_than_file(const std::filesystem::path& path) {
  std::error_code unknown;
  switch (std::filesystem::symlink_status(path, unknown).type()) {
    case std::filesystem::file_type::symlink:
      return "a symbolic link";
    case std::filesystem::file_type::directory:
      return "a folder";
    case std::filesystem::file_type::fifo:
      return "a FIFO";
    case std::filesystem::file_type::socket:
      return "a socket";
    case std::filesystem::file_type::block:
    case std::filesystem::file_type::character:
      return "a device";
    default:
      return "";
  }
}

}  // namespace trireme

#include "src/base/contained_file.h"

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace fs = std::filesystem;

std::optional<fs::path> place_outside(const File& file, const fs::path& folder) {
  fs::path opened = fs::read_symlink(fmt::format("/proc/self/fd/{}", file.fd()));
  const bool is_inside = opened.string().starts_with(fs::weakly_canonical(folder).string() + "/");
  return is_inside ? std::nullopt : std::optional(std::move(opened));
}

std::string read_open_file(const File& file, std::int64_t max_bytes) {
  const std::int64_t bytes = file.size();
  if (bytes > max_bytes) {
    throw DataError(
        fmt::format("{} has {} bytes, more than the {} that are allowed for such a file",
                    file.path().string(), bytes, max_bytes));
  }
  std::string contents(static_cast<std::size_t>(bytes), '\0');
  contents.resize(static_cast<std::size_t>(file.read_at(0, contents.data(), bytes)));
  return contents;
}

std::string read_contained_file(const fs::path& path, const fs::path& folder,
                                std::int64_t max_bytes) {
  const File file = File::open_to_read(path);
  if (const std::optional<fs::path> outside = place_outside(file, folder)) {
    throw DataError(fmt::format(
        "{} leads out of its folder, to {}: replace the symbolic link by the file itself if it "
        "belongs there",
        printable(path.string()), printable(outside->string())));
  }
  return read_open_file(file, max_bytes);
}

}  // namespace trireme

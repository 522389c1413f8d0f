#include "src/base/append_file.h"

#include <algorithm>
#include <array>

#include <unistd.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// Returns the number of bytes up to and including the last line end.
std::int64_t whole_lines(const File& file) {
  std::array<char, 4096> chunk{};
  std::int64_t end = file.size();
  while (end > 0) {
    const std::int64_t begin = std::max<std::int64_t>(0, end - std::int64_t{chunk.size()});
    const std::int64_t got = file.read_at(begin, chunk.data(), end - begin);
    const std::string_view text(chunk.data(), static_cast<std::size_t>(got));
    const std::size_t newline = text.rfind('\n');
    if (newline != std::string_view::npos) {
      return begin + static_cast<std::int64_t>(newline) + 1;
    }
    end = begin;
  }
  return 0;
}

}  // namespace

AppendFile AppendFile::open_lines(const std::filesystem::path& path) {
  File file = File::open_to_append_unlinked(path);
  const std::int64_t whole = whole_lines(File::open_to_read(path));
  if (whole != file.size() && ::ftruncate(file.fd(), whole) != 0) {
    throw_errno(errno, "remove the incomplete last line of", path);
  }
  return {std::move(file), whole};
}

AppendFile AppendFile::create_new(const std::filesystem::path& path) {
  return {File::create_new(path), 0};
}

bool AppendFile::append(std::string_view record) noexcept {
  const auto bytes = static_cast<std::int64_t>(record.size());
  try {
    file_.write(record.data(), bytes);
    bytes_ += bytes;
    return true;
  } catch (const std::exception& error) {
    if (dropped_ == 0) {
      first_failure_ = error.what();
    }
    // Removes what was written of the record. If that fails too, a torn record stays in the file.
    (void)!::ftruncate(file_.fd(), bytes_);
    (void)::lseek(file_.fd(), bytes_, SEEK_SET);
    ++dropped_;
    return false;
  }
}

}  // namespace trireme

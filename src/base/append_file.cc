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

AppendFile AppendFile::open_lines(const std::filesystem::path& path,
                                  std::unique_ptr<TextSealer> sealer, std::string last_line) {
  File file = File::open_to_append_unlinked(path);
  const std::int64_t whole = whole_lines(File::open_to_read(path));
  if (whole != file.size() && ::ftruncate(file.fd(), whole) != 0) {
    throw_errno(errno, "remove the incomplete last line of", path);
  }
  if (sealer != nullptr && whole > 0) {
    last_line = last_line_of(path);
  }
  return {std::move(file), whole, std::move(sealer), std::move(last_line)};
}

AppendFile AppendFile::create_new(const std::filesystem::path& path,
                                  std::unique_ptr<TextSealer> sealer) {
  return {File::create_new(path), 0, std::move(sealer), ""};
}

AppendFile::~AppendFile() { end_section(); }

void AppendFile::write(std::string_view bytes) {
  file_.write(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  bytes_ += static_cast<std::int64_t>(bytes.size());
}

// Writes lines of an encrypted file.
void AppendFile::write_lines(const std::string& lines) {
  if (lines.empty()) {
    return;
  }
  write(lines);
  const std::size_t before =
      lines.size() < 2 ? std::string::npos : lines.rfind('\n', lines.size() - 2);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  last_line_ = lines.substr(begin, lines.size() - 1 - begin);
}

// Removes what was written of a record. If that fails too, a torn record stays in the file.
void AppendFile::drop_rest() noexcept {
  (void)!::ftruncate(file_.fd(), bytes_);
  (void)::lseek(file_.fd(), bytes_, SEEK_SET);
  is_in_section_ = false;
}

bool AppendFile::append(std::string_view record) noexcept {
  try {
    if (sealer_ == nullptr) {
      write(record);
      return true;
    }
    if (!is_in_section_) {
      write_lines(sealer_->begin(last_line_));
      is_in_section_ = true;
    }
    write_lines(sealer_->seal(record));
    return true;
  } catch (const std::exception& error) {
    if (dropped_ == 0) {
      first_failure_ = error.what();
    }
    drop_rest();
    ++dropped_;
    return false;
  }
}

void AppendFile::end_section() noexcept {
  if (sealer_ == nullptr || !is_in_section_) {
    return;
  }
  try {
    write_lines(sealer_->end());
    is_in_section_ = false;
  } catch (const std::exception&) {
    drop_rest();  // the section stays without an end
  }
}

std::string last_line_of(const std::filesystem::path& path) {
  const File file = File::open_to_read(path);
  const std::int64_t end = whole_lines(file);
  if (end == 0) {
    return "";
  }
  std::string line;
  std::array<char, 4096> chunk{};
  for (std::int64_t at = end - 1; at > 0;) {
    const std::int64_t begin = std::max<std::int64_t>(0, at - std::int64_t{chunk.size()});
    file.read_exactly_at(begin, chunk.data(), at - begin);
    const std::string_view text(chunk.data(), static_cast<std::size_t>(at - begin));
    const std::size_t newline = text.rfind('\n');
    if (newline != std::string_view::npos) {
      return line.insert(0, text.substr(newline + 1));
    }
    line.insert(0, text);
    at = begin;
  }
  return line;
}

}  // namespace trireme

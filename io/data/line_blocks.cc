#include "io/data/line_blocks.h"

#include <algorithm>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kReadBytes = std::int64_t{1} << 20;
constexpr std::int64_t kMaxLineBytes = std::int64_t{1} << 30;

[[noreturn]] void refuse_line(const std::string& name, std::int64_t at) {
  throw DataError(fmt::format(
      "{}: no line ends within 1 GiB after byte {}: the file is probably not JSON lines", name,
      at));
}

}  // namespace

std::int64_t line_start(const File& file, std::int64_t offset, std::int64_t file_bytes,
                        bool whole_lines) {
  if (offset <= 0 || offset >= file_bytes) {
    return std::clamp<std::int64_t>(offset, 0, file_bytes);
  }
  std::string buffer(1 << 16, '\0');
  for (std::int64_t at = offset - 1; at < file_bytes;) {
    const std::int64_t got =
        file.read_at(at, buffer.data(), static_cast<std::int64_t>(buffer.size()));
    const std::size_t newline =
        std::string_view(buffer.data(), static_cast<std::size_t>(got)).find('\n');
    if (newline != std::string_view::npos) {
      return std::min(at + static_cast<std::int64_t>(newline) + 1, file_bytes);
    }
    if (got == 0) {
      break;
    }
    at += got;
    if (at - offset > kMaxLineBytes) {
      if (whole_lines) {
        refuse_line(file.path().string(), offset);
      }
      return offset;
    }
  }
  return file_bytes;
}

LineBlocks::LineBlocks(ByteStream& from, std::string name, bool whole_lines)
    : from_(from), name_(std::move(name)), whole_lines_(whole_lines) {}

void LineBlocks::read_more() {
  const std::size_t old = buffer_.size();
  if (std::ssize(buffer_) + kReadBytes > kMaxLineBytes) {
    refuse_line(name_, position_);
  }
  buffer_.resize(old + static_cast<std::size_t>(kReadBytes));
  const std::int64_t got = read_fully(from_, buffer_.data() + old, kReadBytes);
  buffer_.resize(old + static_cast<std::size_t>(got));
  has_ended_ = got < kReadBytes;
}

std::optional<LineBlocks::Block> LineBlocks::next() {
  buffer_.erase(0, taken_);
  position_ += static_cast<std::int64_t>(taken_);
  std::size_t length = std::string::npos;
  while (!has_ended_) {
    const std::size_t before = buffer_.size();
    read_more();
    const std::size_t newline = std::string_view(buffer_).substr(before).rfind('\n');
    if (newline != std::string::npos) {
      length = before + newline + 1;
      break;
    }
    if (!whole_lines_) {
      break;
    }
  }
  taken_ = has_ended_ || length == std::string::npos ? buffer_.size() : length;
  if (taken_ == 0) {
    return std::nullopt;
  }
  return Block{position_, std::string_view(buffer_).substr(0, taken_)};
}

}  // namespace trireme

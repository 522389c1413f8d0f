#include "src/evidence/audit_reader.h"

#include <algorithm>

#include "src/base/digest.h"
#include "src/evidence/audit_line.h"

namespace trireme {
namespace {

constexpr std::int64_t kReadBytes = std::int64_t{1} << 20;

}  // namespace

// Appends a chunk to the buffer. Returns false at the end.
bool AuditReader::read_more() {
  buffer_.erase(0, position_);
  position_ = 0;
  const std::int64_t wanted = std::min(left_, kReadBytes);
  const std::size_t before = buffer_.size();
  buffer_.resize(before + static_cast<std::size_t>(wanted));
  const std::int64_t got = file_.read_at(offset_, buffer_.data() + before, wanted);
  buffer_.resize(before + static_cast<std::size_t>(got));
  offset_ += got;
  left_ = got < wanted ? 0 : left_ - got;
  return got > 0;
}

std::optional<AuditReader::Line> AuditReader::next() {
  std::size_t searched = 0;
  while (true) {
    const std::string_view text = std::string_view(buffer_).substr(position_);
    const std::size_t end = text.find('\n', searched);
    if (end != std::string_view::npos && static_cast<std::int64_t>(end) <= kMostAuditLineBytes) {
      position_ += end + 1;
      return Line{text.substr(0, end), static_cast<std::int64_t>(end)};
    }
    if (static_cast<std::int64_t>(text.size()) > kMostAuditLineBytes) {
      return rest_of_long_line();
    }
    searched = text.size();
    if (!read_more()) {
      const std::string_view last = std::string_view(buffer_).substr(position_);
      position_ = buffer_.size();
      if (last.empty()) {
        return std::nullopt;
      }
      return Line{last, static_cast<std::int64_t>(last.size()), "", false};
    }
  }
}

AuditReader::Line AuditReader::rest_of_long_line() {
  Sha256 digest;
  long_line_ = buffer_.substr(position_, kMostAuditLineBytes);
  Line line;
  std::size_t end = std::string::npos;
  do {
    const std::string_view text = std::string_view(buffer_).substr(position_);
    end = text.find('\n');
    const std::string_view part = text.substr(0, end);
    digest.update(part);
    line.bytes += static_cast<std::int64_t>(part.size());
    position_ += part.size() + (end == std::string_view::npos ? 0 : 1);
  } while (end == std::string_view::npos && read_more());
  line.has_end = end != std::string_view::npos;
  line.sha256 = digest.finish_hex();
  line.text = long_line_;
  return line;
}

}  // namespace trireme

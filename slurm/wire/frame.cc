#include "slurm/wire/frame.h"

#include <algorithm>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::string_view kMagic = "TRL1";
constexpr std::string_view kTlsHandshake = "\x16\x03";  // RFC 8446, section 5.1

}  // namespace

std::string frame_of(std::string_view payload) {
  if (payload.size() > kMostFrameBytes) {
    throw InternalError("a message is too long for a frame");
  }
  std::string frame(kMagic);
  for (int byte = 0; byte < 4; ++byte) {
    frame += static_cast<char>((payload.size() >> (8 * byte)) & 0xff);
  }
  frame += payload;
  return frame;
}

std::size_t FrameReader::room() const {
  const std::size_t most = kFrameHeadBytes + most_bytes_;
  return most - std::min(most, pending_.size() - begin_);
}

// Consumed bytes are erased only when they exceed half of the buffer, so that a flood of tiny
// frames costs time in proportion to its bytes only.
void FrameReader::feed(std::string_view bytes) {
  if (begin_ > pending_.size() / 2) {
    pending_.erase(0, begin_);
    begin_ = 0;
  }
  pending_ += bytes;
}

std::optional<std::string> FrameReader::next() {
  const std::string_view unread = std::string_view(pending_).substr(begin_);
  if (unread.starts_with(kTlsHandshake)) {
    throw DataError(
        "received TLS where plain messages are expected: launch.tls must be the same on both "
        "sides");
  }
  if (!kMagic.starts_with(unread.substr(0, kMagic.size()))) {
    throw DataError("received data that is not a message of trireme launch");
  }
  if (unread.size() < kFrameHeadBytes) {
    return std::nullopt;
  }
  std::size_t bytes = 0;
  for (std::size_t byte = 0; byte < 4; ++byte) {
    bytes |= std::size_t{static_cast<unsigned char>(unread[kMagic.size() + byte])} << (8 * byte);
  }
  if (bytes > most_bytes_) {
    throw DataError(fmt::format("received a message of {} bytes, but at most {} bytes are allowed",
                                bytes, most_bytes_));
  }
  if (unread.size() < kFrameHeadBytes + bytes) {
    return std::nullopt;
  }
  begin_ += kFrameHeadBytes + bytes;
  return std::string(unread.substr(kFrameHeadBytes, bytes));
}

}  // namespace trireme

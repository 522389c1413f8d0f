#include "slurm/wire/frame.h"

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::string_view kMagic = "TRL1";

}  // namespace

std::string frame_of(std::string_view payload) {
  if (payload.size() > kMostFrameBytes) {
    throw InternalError("a message is longer than a frame may be");
  }
  std::string frame(kMagic);
  for (int byte = 0; byte < 4; ++byte) {
    frame += static_cast<char>((payload.size() >> (8 * byte)) & 0xff);
  }
  frame += payload;
  return frame;
}

std::optional<std::string> FrameReader::next() {
  const std::size_t seen = std::min(pending_.size(), kMagic.size());
  if (pending_.compare(0, seen, kMagic.substr(0, seen)) != 0) {
    throw DataError("what comes is no message of a launch");
  }
  if (pending_.size() < kFrameHeadBytes) {
    return std::nullopt;
  }
  std::size_t bytes = 0;
  for (std::size_t byte = 0; byte < 4; ++byte) {
    bytes |= std::size_t{static_cast<unsigned char>(pending_[kMagic.size() + byte])} << (8 * byte);
  }
  if (bytes > most_bytes_) {
    throw DataError(
        fmt::format("a message of {} bytes, at most {} are expected", bytes, most_bytes_));
  }
  if (pending_.size() < kFrameHeadBytes + bytes) {
    return std::nullopt;
  }
  std::string payload = pending_.substr(kFrameHeadBytes, bytes);
  pending_.erase(0, kFrameHeadBytes + bytes);
  return payload;
}

}  // namespace trireme

// Frames: how messages lie on a TCP connection between the processes of a launch.
//
//   'T' 'R' 'L' '1' | length, u32, little endian | so many bytes: one JSON object, or raw data
//
// Pure: bytes in, messages out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

inline constexpr std::size_t kFrameHeadBytes = 8;
// Of a stranger, and of those that know the secret.
inline constexpr std::size_t kMostStrangerBytes = 4 << 10;
inline constexpr std::size_t kMostFrameBytes = 4 << 20;

std::string frame_of(std::string_view payload);

class FrameReader {
 public:
  void trust() { most_bytes_ = kMostFrameBytes; }
  // How many bytes to feed it now, at most: of a stranger, what one frame of his may take.
  std::size_t room() const;
  void feed(std::string_view bytes);
  // The next whole payload. DataError for what is no frame, or too long a one. Where there is no
  // room, there is one.
  std::optional<std::string> next();

 private:
  std::string pending_;
  std::size_t begin_ = 0;  // of pending_; what lies before has been given out
  std::size_t most_bytes_ = kMostStrangerBytes;
};

}  // namespace trireme

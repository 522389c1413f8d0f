// Frames delimit the messages on a TCP connection between the processes of a launch:
//
//   'T' 'R' 'L' '1' | length, u32, little endian | payload: one JSON object, or raw data
//
// The functions are pure: bytes in, messages out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

inline constexpr std::size_t kFrameHeadBytes = 8;
// Limits the payload of a peer that has not proved the secret yet, and of one that has.
inline constexpr std::size_t kMostStrangerBytes = 4 << 10;
inline constexpr std::size_t kMostFrameBytes = 4 << 20;

std::string frame_of(std::string_view payload);

class FrameReader {
 public:
  void trust() { most_bytes_ = kMostFrameBytes; }
  // Returns how many bytes may be fed now, which bounds the memory that a stranger can use.
  std::size_t room() const;
  void feed(std::string_view bytes);
  // Returns the next complete payload, if any; there is always one if room() is 0. Throws DataError
  // for data that is no frame, or is one that is too long.
  std::optional<std::string> next();

 private:
  std::string pending_;
  std::size_t begin_ = 0;  // offset in pending_; bytes before it have been consumed
  std::size_t most_bytes_ = kMostStrangerBytes;
};

}  // namespace trireme

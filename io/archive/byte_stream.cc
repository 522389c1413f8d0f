#include "io/archive/byte_stream.h"

#include <algorithm>
#include <string>

#include "src/base/error.h"

namespace trireme {

std::int64_t ByteStream::skip(std::int64_t bytes) {
  constexpr std::int64_t kSkipBytes = std::int64_t{1} << 16;
  std::string passed(static_cast<std::size_t>(std::min(bytes, kSkipBytes)), '\0');
  std::int64_t done = 0;
  while (done < bytes) {
    const std::int64_t got = read(passed.data(), std::min(bytes - done, std::ssize(passed)));
    if (got == 0) {
      break;
    }
    done += got;
  }
  return done;
}

std::int64_t read_fully(ByteStream& from, char* to, std::int64_t bytes) {
  std::int64_t done = 0;
  while (done < bytes) {
    const std::int64_t got = from.read(to + done, bytes - done);
    if (got == 0) {
      break;
    }
    done += got;
  }
  return done;
}

std::int64_t FileRange::read(char* to, std::int64_t bytes) {
  const std::int64_t wanted = std::min(bytes, end_ - position_);
  if (file_.read_at(position_, to, wanted) != wanted) {
    throw DataError(
        fmt::format("{}: the file is shorter than when it was listed: it changes while it is "
                    "packed; run the command again when the file is complete",
                    file_.path().string()));
  }
  position_ += wanted;
  return wanted;
}

std::int64_t FileRange::skip(std::int64_t bytes) {
  const std::int64_t passed = std::min(bytes, end_ - position_);
  position_ += passed;
  return passed;
}

}  // namespace trireme

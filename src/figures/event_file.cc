#include "src/figures/event_file.h"

#include <array>
#include <atomic>
#include <bit>
#include <chrono>

#include <unistd.h>

#include "src/base/error.h"
#include "src/base/log.h"

namespace trireme {
namespace {

static_assert(std::endian::native == std::endian::little, "event files are little-endian");

// Makes the table of CRC-32C (Castagnoli) for the reflected polynomial 0x82F63B78.
constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
    }
    table[i] = crc;
  }
  return table;
}

constexpr auto kCrcTable = crc_table();

// Masks a CRC as TFRecord does, so that the CRC of data that contains CRCs stays reliable.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xA282EAD8U; }

std::string fixed32(std::uint32_t value) {
  const auto bytes = std::bit_cast<std::array<char, 4>>(value);
  return {bytes.data(), bytes.size()};
}

std::string fixed64(std::uint64_t value) {
  const auto bytes = std::bit_cast<std::array<char, 8>>(value);
  return {bytes.data(), bytes.size()};
}

std::string varint(std::uint64_t value) {
  std::string out;
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7F) | 0x80);
    value >>= 7;
  }
  return out + static_cast<char>(value);
}

// In protobuf, a field starts with its number and wire type.
enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
std::string tag_of(std::uint32_t field, WireType type) { return varint(field << 3 | type); }

std::string bytes_field(std::uint32_t field, std::string_view bytes) {
  return tag_of(field, kBytes) + varint(bytes.size()) + std::string(bytes);
}

std::string event_head(double wall_time, std::int64_t step) {
  std::string out = tag_of(1, kFixed64) + fixed64(std::bit_cast<std::uint64_t>(wall_time));
  if (step != 0) {  // proto3 omits zeros
    out += tag_of(2, kVarint) + varint(static_cast<std::uint64_t>(step));
  }
  return out;
}

double unix_time() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return now.count();
}

AppendFile create_in(const std::filesystem::path& folder, const RunSealer* sealer) {
  static std::atomic<int> files{0};  // distinguishes files that a process makes in the same second
  make_directories(folder);
  const std::filesystem::path path =
      folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}",
                           static_cast<std::int64_t>(unix_time()), host_name(), ::getpid(),
                           files.fetch_add(1));
  return AppendFile::create_new(path, sealer == nullptr ? nullptr : sealer->sealer(path));
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) {
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  }
  return ~crc;
}

std::string event_record(std::string_view event) {
  const std::string length = fixed64(event.size());
  return length + fixed32(masked(crc32c(length))) + std::string(event) +
         fixed32(masked(crc32c(event)));
}

std::string version_event(double wall_time) {
  return event_head(wall_time, 0) + bytes_field(3, "brain.Event:2");
}

std::string start_event(double wall_time, std::int64_t step) {
  constexpr std::uint64_t kStart = 1;  // SessionLog.START
  return event_head(wall_time, step) + bytes_field(7, tag_of(1, kVarint) + varint(kStart));
}

std::string scalar_event(double wall_time, std::int64_t step, const std::vector<Scalar>& values) {
  std::string summary;
  for (const auto& [tag, value] : values) {
    summary += bytes_field(1, bytes_field(1, tag) + tag_of(2, kFixed32) +
                                  fixed32(std::bit_cast<std::uint32_t>(value)));
  }
  return event_head(wall_time, step) + bytes_field(5, summary);
}

EventFile::EventFile(const std::filesystem::path& folder, std::int64_t first_step,
                     const RunSealer* sealer)
    : file_(create_in(folder, sealer)) {
  const double now = unix_time();
  file_.append(event_record(version_event(now)));
  file_.append(event_record(start_event(now, first_step)));
}

void EventFile::scalars(std::int64_t step, const std::vector<Scalar>& values) {
  file_.append(event_record(scalar_event(unix_time(), step, values)));
}

}  // namespace trireme

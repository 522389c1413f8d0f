#include "mpi/network/sockets.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

constexpr std::array kTables = {"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6",
                                "/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"};
constexpr std::size_t kInodeField = 9;
constexpr std::size_t kDigitsPerWord = 8;

template <class Number>
std::optional<Number> number_in(std::string_view text, int base) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(number) : std::nullopt;
}

struct Endpoint {
  IpAddress address;
  int port = 0;
};

// Reads "0100007F:1F90", or four times as many digits.
std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.find(':');
  if ((colon != kDigitsPerWord && colon != 4 * kDigitsPerWord) || text.size() != colon + 5) {
    return std::nullopt;
  }
  std::array<std::byte, 16> bytes{};
  const std::size_t words = colon / kDigitsPerWord;
  for (std::size_t i = 0; i < words; ++i) {
    const auto word = number_in<std::uint32_t>(text.substr(i * kDigitsPerWord, kDigitsPerWord), 16);
    if (!word) {
      return std::nullopt;
    }
    std::memcpy(bytes.data() + i * sizeof *word, &*word, sizeof *word);
  }
  const auto port = number_in<std::uint16_t>(text.substr(colon + 1), 16);
  const auto address = IpAddress::of_bytes(std::span(bytes).first(words * sizeof(std::uint32_t)));
  return port && address ? std::optional(Endpoint{*address, *port}) : std::nullopt;
}

std::optional<SocketEntry> parse_line(const std::string& line) {
  std::istringstream stream(line);
  const std::vector<std::string> fields{std::istream_iterator<std::string>(stream), {}};
  if (fields.size() <= kInodeField) {
    return std::nullopt;
  }
  const auto local = parse_endpoint(fields[1]);
  const auto remote = parse_endpoint(fields[2]);
  const auto inode = number_in<std::uint64_t>(fields[kInodeField], 10);
  if (!local || !remote || !inode) {
    return std::nullopt;
  }
  return SocketEntry{local->address, local->port, remote->address, remote->port, *inode};
}

std::string text_of_table(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();  // empty where the kernel has no IPv6
}

// Returns "12" for "socket:[12]".
std::optional<std::uint64_t> socket_inode(std::string_view target) {
  constexpr std::string_view kStart = "socket:[";
  if (!target.starts_with(kStart) || !target.ends_with(']')) {
    return std::nullopt;
  }
  target.remove_prefix(kStart.size());
  target.remove_suffix(1);
  return number_in<std::uint64_t>(target, 10);
}

}  // namespace

bool is_rdma_device(std::string_view path) {
  constexpr std::array<std::string_view, 6> kDevices = {
      "/dev/infiniband/", "/dev/hfi1", "/dev/ipath", "/dev/cxi", "/dev/usnic", "/dev/bxi"};
  return std::any_of(kDevices.begin(), kDevices.end(),
                     [&](std::string_view start) { return path.starts_with(start); });
}

std::vector<SocketEntry> parse_sockets(std::string_view table) {
  std::istringstream lines{std::string(table)};
  std::string line;
  std::getline(lines, line);  // the title
  std::vector<SocketEntry> sockets;
  while (std::getline(lines, line)) {
    const std::optional<SocketEntry> entry = parse_line(line);
    if (!entry) {
      throw DataError(fmt::format(
          "the kernel's list of sockets has a line of an unknown form: '{}'", printable(line)));
    }
    sockets.push_back(*entry);
  }
  return sockets;
}

OpenEndpoints own_endpoints() {
  std::set<std::uint64_t> own;
  std::set<std::string> rdma;
  std::error_code error;
  for (fs::directory_iterator each("/proc/self/fd", error); !error && each != fs::end(each);
       each.increment(error)) {
    std::error_code closed;  // since it was listed
    const std::string target = fs::read_symlink(each->path(), closed).string();
    if (const auto inode = socket_inode(target)) {
      own.insert(*inode);
    } else if (is_rdma_device(target)) {
      rdma.insert(target);
    }
  }
  if (error) {
    throw IoError(
        fmt::format("cannot list what this process has open: /proc/self/fd: {}", error.message()));
  }
  OpenEndpoints found{{}, {rdma.begin(), rdma.end()}};
  for (const char* const path : kTables) {
    for (const SocketEntry& entry : parse_sockets(text_of_table(path))) {
      if (own.contains(entry.inode)) {
        found.sockets.push_back(entry);
      }
    }
  }
  return found;
}

}  // namespace trireme

#include "src/device/nvml/xid.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace trireme {
namespace {

struct XidMeaning {
  int xid;
  bool is_hardware;
  std::string_view text;
};

constexpr std::array kMeanings = {
    XidMeaning{13, false, "a kernel of a program failed"},
    XidMeaning{31, false, "a program accessed memory that it does not have"},
    XidMeaning{43, false, "the GPU stopped processing a program"},
    XidMeaning{45, false, "the work of a program was removed after an error"},
    XidMeaning{48, true, "an uncorrectable memory error"},
    XidMeaning{61, true, "a microcontroller of the GPU has stopped"},
    XidMeaning{62, true, "a microcontroller of the GPU has halted"},
    XidMeaning{63, false, "a row of memory is remapped at the next reset"},
    XidMeaning{64, true, "a row of memory could not be remapped"},
    XidMeaning{74, true, "an NVLink error"},
    XidMeaning{79, true, "the GPU has fallen off the bus"},
    XidMeaning{92, true, "a high rate of corrected memory errors"},
    XidMeaning{94, true, "an uncorrectable memory error that ended one program"},
    XidMeaning{95, true, "an uncorrectable memory error that may have harmed all programs"},
    XidMeaning{119, true, "the GPU's system processor does not answer"},
    XidMeaning{120, true, "the GPU's system processor has failed"}};

const XidMeaning* meaning_of(int xid) {
  const auto found = std::find_if(kMeanings.begin(), kMeanings.end(),
                                  [xid](const XidMeaning& each) { return each.xid == xid; });
  return found == kMeanings.end() ? nullptr : &*found;
}

// Returns the address "0000:1b:00.0" for the log's "0000:1b:00"; lower case, as elsewhere.
std::string bus_text(std::string_view logged) {
  std::string bus(logged);
  std::transform(bus.begin(), bus.end(), bus.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return bus.find('.') == std::string::npos ? bus + ".0" : bus;
}

}  // namespace

std::string xid_text(int xid) {
  const XidMeaning* const meaning = meaning_of(xid);
  return meaning == nullptr ? fmt::format("XID {}", xid)
                            : fmt::format("XID {} ({})", xid, meaning->text);
}

bool is_hardware_xid(int xid) {
  const XidMeaning* const meaning = meaning_of(xid);
  return meaning != nullptr && meaning->is_hardware;
}

std::vector<LoggedXid> parse_xids(std::string_view log) {
  constexpr std::string_view kOpen = "NVRM: Xid (PCI:";
  constexpr std::string_view kClose = "): ";
  std::vector<LoggedXid> all;
  while (true) {
    const std::size_t open = log.find(kOpen);
    if (open == log.npos) {
      return all;
    }
    log.remove_prefix(open + kOpen.size());
    const std::size_t close = log.find(kClose);
    if (close == log.npos || close > log.find('\n')) {
      continue;
    }
    LoggedXid one{bus_text(log.substr(0, close)), 0};
    log.remove_prefix(close + kClose.size());
    if (std::from_chars(log.data(), log.data() + log.size(), one.xid).ec == std::errc()) {
      all.push_back(one);
    }
  }
}

std::vector<LoggedXid> logged_xids(const std::filesystem::path& log, std::string* why) {
  const int file = ::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) {
    if (why != nullptr) {
      *why = fmt::format("cannot read {}: {}", log.string(), std::strerror(errno));
    }
    return {};
  }
  // A read from /dev/kmsg returns one record, EPIPE if records were overwritten meanwhile, and
  // EAGAIN at the end.
  std::string text;
  std::array<char, 8192> record{};
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  while (text.size() < kMostBytes) {
    const ssize_t bytes = ::read(file, record.data(), record.size());
    if (bytes > 0) {
      text.append(record.data(), static_cast<std::size_t>(bytes));
    } else if (bytes == 0 || (errno != EPIPE && errno != EINTR)) {
      break;
    }
  }
  ::close(file);
  return parse_xids(text);
}

}  // namespace trireme

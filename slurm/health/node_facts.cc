#include "slurm/health/node_facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>

#include <fmt/core.h>
#include <sys/timex.h>

namespace trireme {
namespace {

namespace fs = std::filesystem;

// Returns the first line, or "" if the file cannot be read; many files of /sys cannot while a link
// is down.
std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::int64_t number_in(const std::string& text) {
  const std::size_t at = text.find_first_of("0123456789");
  std::int64_t value = 0;
  if (at != std::string::npos) {
    std::from_chars(text.data() + at, text.data() + text.size(), value);
  }
  return value;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    all.push_back(at->path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Counts the members of a list such as "0-3,8", which has 5.
std::int64_t count_of_list(const std::string& list) {
  std::int64_t count = 0;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string part = list.substr(at, end - at);
    const std::size_t dash = part.find('-');
    count += dash == std::string::npos
                 ? 1
                 : number_in(part.substr(dash)) - number_in(part.substr(0, dash)) + 1;
    at = end + 1;
  }
  return count;
}

std::int64_t memory_gib(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemTotal:")) {
      // Round to whole GiB: the kernel reserves a slightly different amount at every start.
      return (number_in(line) + (1 << 19)) >> 20;
    }
  }
  return 0;
}

// Returns the network devices on a bus. Virtual devices are left out, as they come and go.
std::vector<fs::path> network_devices(const fs::path& root) {
  std::vector<fs::path> all = entries(root / "sys/class/net");
  std::erase_if(all, [](const fs::path& device) {
    std::error_code ignored;
    return !fs::exists(device / "device", ignored);
  });
  return all;
}

void add_network(const fs::path& root, std::map<std::string, std::string>& facts) {
  for (const fs::path& device : network_devices(root)) {
    const std::string speed = line_of(device / "speed");
    const bool known = !speed.empty() && speed.front() != '-';
    facts["link " + device.filename().string()] =
        fmt::format("{}{}", line_of(device / "operstate"), known ? " " + speed + " Mb/s" : "");
  }
}

void add_infiniband(const fs::path& root, std::map<std::string, std::string>& facts) {
  for (const fs::path& device : entries(root / "sys/class/infiniband")) {
    for (const fs::path& port : entries(device / "ports")) {
      facts[fmt::format("link {}/{}", device.filename().string(), port.filename().string())] =
          fmt::format("{} {}", line_of(port / "state"), line_of(port / "rate"));
    }
  }
}

}  // namespace

std::map<std::string, std::string> node_facts(const fs::path& root) {
  std::map<std::string, std::string> facts;
  const std::string online = line_of(root / "sys/devices/system/cpu/online");
  facts["processors"] = fmt::format("{}", count_of_list(online));
  facts["memory GiB"] = fmt::format("{}", memory_gib(root));
  add_network(root, facts);
  add_infiniband(root, facts);
  return facts;
}

std::map<std::string, std::int64_t> link_errors(const fs::path& root) {
  std::map<std::string, std::int64_t> errors;
  const auto add = [&](const std::string& link, const fs::path& folder, const auto& names) {
    for (const char* name : names) {
      if (const std::string line = line_of(folder / name); !line.empty()) {
        errors[fmt::format("link {} {}", link, name)] = number_in(line);
      }
    }
  };
  constexpr std::array kOfNetwork = {"rx_errors", "tx_errors"};
  constexpr std::array kOfInfiniband = {
      "symbol_error",    "link_error_recovery",         "link_downed",
      "port_rcv_errors", "local_link_integrity_errors", "excessive_buffer_overrun_errors"};
  for (const fs::path& device : network_devices(root)) {
    add(device.filename().string(), device / "statistics", kOfNetwork);
  }
  for (const fs::path& device : entries(root / "sys/class/infiniband")) {
    for (const fs::path& port : entries(device / "ports")) {
      add(fmt::format("{}/{}", device.filename().string(), port.filename().string()),
          port / "counters", kOfInfiniband);
    }
  }
  return errors;
}

std::vector<std::string> node_troubles(const fs::path& root) {
  std::vector<std::string> troubles;
  for (const fs::path& controller : entries(root / "sys/devices/system/edac/mc")) {
    const std::int64_t errors = number_in(line_of(controller / "ue_count"));
    if (errors > 0) {
      troubles.push_back(fmt::format("uncorrectable memory errors: {} on {}", errors,
                                     controller.filename().string()));
    }
  }
  return troubles;
}

bool clock_is_kept() {
  struct timex clock {};
  return ::adjtimex(&clock) >= 0 && (clock.status & STA_UNSYNC) == 0;
}

}  // namespace trireme

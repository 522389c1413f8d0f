#include "src/device/sim/environment.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include <fmt/core.h>

#include "src/base/printable.h"

namespace sim {
namespace {

// Returns the variable's value, or `otherwise` if it is not set. Ends the process unless the value
// is a whole number from `least` to `most`.
std::uint64_t number_of(const char* variable, std::uint64_t otherwise, std::uint64_t least,
                        std::uint64_t most) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') {
    return otherwise;
  }
  std::uint64_t number = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc() || stop != end || number < least || number > most) {
    refuse_variable(
        fmt::format("{}={}: expected a whole number from {} to {}", variable, text, least, most));
  }
  return number;
}

std::string text_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

// Returns the number of the device that an entry of CUDA_VISIBLE_DEVICES names, or -1.
int device_of(const std::string& entry, int devices) {
  int number = -1;
  const char* const end = entry.data() + entry.size();
  if (std::from_chars(entry.data(), end, number).ptr == end && !entry.empty()) {
    return number < devices ? number : -1;
  }
  for (int device = 0; device < devices; ++device) {
    if (entry.starts_with("GPU-") && uuid_text(device).starts_with(entry)) {
      return device;
    }
  }
  return -1;
}

std::vector<int> read_visible(int devices) {
  std::vector<int> visible;
  if (const char* const list = std::getenv("CUDA_VISIBLE_DEVICES"); list != nullptr) {
    for (const std::string& entry : split(list, ',')) {
      const int device = device_of(entry, devices);
      if (device < 0) {
        break;
      }
      visible.push_back(device);
    }
    return visible;
  }
  for (int device = 0; device < devices; ++device) {
    visible.push_back(device);
  }
  return visible;
}

Environment read_environment() {
  constexpr std::uint64_t kMostDevices = 64;
  Environment read;
  read.seed = number_of("TRIREME_SIM_SEED", read.seed, 0, UINT64_MAX);
  read.memory_bytes = number_of("TRIREME_SIM_MEMORY", read.memory_bytes, std::uint64_t{1} << 20,
                                std::uint64_t{1} << 40);
  read.devices = static_cast<int>(
      number_of("TRIREME_SIM_DEVICES", static_cast<std::uint64_t>(read.devices), 0, kMostDevices));
  read.delays = number_of("TRIREME_SIM_DELAYS", 0, 0, 1) != 0;
  read.connections =
      static_cast<std::size_t>(number_of("TRIREME_SIM_CONNECTIONS", read.connections, 0, 32));
  read.report_leaks = number_of("TRIREME_SIM_LEAKS", 0, 0, 1) != 0;
  read.faults = text_of("TRIREME_SIM_FAULT");
  read.links = text_of("TRIREME_SIM_LINKS");
  read.names = split(text_of("TRIREME_SIM_NAMES"), ',');
  read.capability = static_cast<int>(
      number_of("TRIREME_SIM_CAPABILITY", static_cast<std::uint64_t>(read.capability), 10, 999));
  constexpr std::uint64_t kMostVersion = 99999;
  read.driver_version = static_cast<int>(number_of(
      "TRIREME_SIM_DRIVER", static_cast<std::uint64_t>(read.driver_version), 0, kMostVersion));
  read.has_cublaslt = number_of("TRIREME_SIM_CUBLASLT", 1, 0, 1) != 0;
  read.nccl_version = static_cast<int>(number_of(
      "TRIREME_SIM_NCCL", static_cast<std::uint64_t>(read.nccl_version), 0, kMostVersion));
  read.cudnn_version = static_cast<int>(
      number_of("TRIREME_SIM_CUDNN", static_cast<std::uint64_t>(read.cudnn_version), 0, 999999));
  read.visible = read_visible(read.devices);
  return read;
}

}  // namespace

void refuse_variable(const std::string& what) {
  std::fprintf(stderr, "simulated device: %s\n", trireme::printable(what).c_str());
  std::_Exit(2);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char one : text) {
    if (one == separator) {
      parts.emplace_back();
    } else {
      parts.back() += one;
    }
  }
  return parts;
}

std::string uuid_text(int device) {
  char text[64];
  std::snprintf(text, sizeof text, "GPU-73696d75-6c61-7465-6420-6465766963%02x", device);
  return text;
}

const Environment& environment() {
  static const Environment once = read_environment();
  return once;
}

namespace {

// A wrong variable ends the process before it has done anything.
[[maybe_unused]] const Environment& environment_at_the_start = environment();

}  // namespace

}  // namespace sim

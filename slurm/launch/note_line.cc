#include "slurm/launch/note_line.h"

#include <array>
#include <chrono>
#include <ctime>

#include <nlohmann/json.hpp>

#include "src/base/log.h"

namespace trireme {
namespace {

// Returns local time in the form "2026-11-22 11:50:24".
std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%F %T", &parts)};
}

}  // namespace

std::string note_line(const Note& note, const std::string& launch, bool is_json) {
  if (!is_json) {
    return time_of_day() + " trireme launch: " + note.text;
  }
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const nlohmann::ordered_json line = {{"time", now.count()},
                                       {"level", "info"},
                                       {"host", host_name()},
                                       {"launch", launch},
                                       {"message", note.text}};
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace trireme

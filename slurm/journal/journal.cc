#include "slurm/journal/journal.h"

#include <chrono>
#include <sstream>

#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Journal::Journal(const std::filesystem::path& path, std::string launch)
    : launch_(std::move(launch)) {
  try {
    make_directories(path.parent_path());
    file_ = AppendFile::open_lines(path);
  } catch (const Error&) {
    // The run itself will say what is wrong with its folder.
  }
}

void Journal::write(std::string_view event, nlohmann::json fields, double clock) {
  nlohmann::json line = {
      {"time", wall_clock()}, {"clock", clock}, {"launch", launch_}, {"event", event}};
  line.update(fields);
  if (file_) {
    file_->append(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
}

std::vector<nlohmann::json> parse_journal(std::string_view text, std::int64_t& bad_lines) {
  std::vector<nlohmann::json> events;
  std::istringstream lines{std::string(text)};
  std::string line;
  while (std::getline(lines, line)) {
    try {
      nlohmann::json event = parse_json(line);
      (void)text_field(event, "event");
      (void)text_field(event, "launch");
      if (!field(event, "time").is_number() || !field(event, "clock").is_number()) {
        throw DataError("a journal's line without its times");
      }
      events.push_back(std::move(event));
    } catch (const DataError&) {
      ++bad_lines;
    }
  }
  return events;
}

}  // namespace trireme

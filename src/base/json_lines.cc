#include "src/base/json_lines.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "src/base/file.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostSealedBytes = std::int64_t{4} << 30;

std::vector<nlohmann::json> objects_in(const std::string& text) {
  std::vector<nlohmann::json> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    if (object.is_object()) {
      objects.push_back(std::move(object));
    }
  }
  return objects;
}

}  // namespace

std::vector<nlohmann::json> last_json_lines(const std::filesystem::path& path,
                                            std::int64_t most_bytes) {
  std::error_code gone;
  if (!std::filesystem::is_regular_file(path, gone)) {
    return {};
  }
  const File file = File::open_to_read(path);
  const std::int64_t bytes = file.size();
  std::string text(static_cast<std::size_t>(std::min(bytes, most_bytes)), '\0');
  const std::int64_t at = bytes - std::ssize(text);
  text.resize(static_cast<std::size_t>(file.read_at(at, text.data(), std::ssize(text))));
  if (at > 0) {
    text.erase(0, text.find('\n') + 1);  // remove a partial line
  }
  return objects_in(text);
}

std::vector<nlohmann::json> last_json_lines(const std::filesystem::path& path,
                                            const TextReader& reader, std::int64_t most_bytes) {
  std::error_code gone;
  if (!std::filesystem::is_regular_file(path, gone) ||
      (!is_sealed_file(path) && run_with_log_keys(path).empty())) {
    return last_json_lines(path, most_bytes);
  }
  std::string text = reader.read(path, kMostSealedBytes);
  if (std::ssize(text) > most_bytes) {
    text.erase(0, text.size() - static_cast<std::size_t>(most_bytes));
    text.erase(0, text.find('\n') + 1);
  }
  return objects_in(text);
}

}  // namespace trireme

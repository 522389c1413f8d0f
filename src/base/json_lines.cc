#include "src/base/json_lines.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/base/file.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostSealedBytes = std::int64_t{4} << 30;

LastLines objects_in(std::string_view text, ObjectTest is_expected) {
  LastLines lines;
  lines.damaged = use_objects(text, [&](const nlohmann::json& object) {
    if (is_expected != nullptr && !is_expected(object)) {
      return false;
    }
    lines.objects.push_back(object);
    return true;
  });
  return lines;
}

std::int64_t count_lines(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

// Returns how many lines end in the first `bytes` of the file.
std::int64_t lines_before(const File& file, std::int64_t bytes) {
  constexpr std::int64_t kPiece = 1 << 20;
  std::string piece;
  std::int64_t lines = 0;
  for (std::int64_t at = 0; at < bytes; at += kPiece) {
    piece.resize(static_cast<std::size_t>(std::min(kPiece, bytes - at)));
    piece.resize(static_cast<std::size_t>(file.read_at(at, piece.data(), std::ssize(piece))));
    lines += count_lines(piece);
  }
  return lines;
}

// Returns the whole lines of a text that is the end of a file, of which `bytes` come before it.
std::string_view without_partial_line(std::string_view text, std::int64_t bytes) {
  return bytes > 0 ? text.substr(std::min(text.find('\n'), text.size() - 1) + 1) : text;
}

}  // namespace

DamagedLines use_objects(std::string_view text,
                         const std::function<bool(const nlohmann::json&)>& use) {
  return use_lines(text, [&](std::string_view line) {
    const nlohmann::json object = parse_json_line(line);
    return object.is_object() && use(object);
  });
}

bool is_metrics_line(const nlohmann::json& object) {
  constexpr double kMostStep = 1e15;  // whole numbers up to here are exact
  const auto step = object.find("step");
  return step != object.end() && step->is_number_integer() && step->get<double>() >= 0 &&
         step->get<double>() <= kMostStep;
}

LastLines last_json_lines(const std::filesystem::path& path, std::int64_t most_bytes,
                          ObjectTest is_expected) {
  std::error_code gone;
  if (!std::filesystem::is_regular_file(path, gone)) {
    return {};
  }
  const File file = File::open_to_read(path);
  const std::int64_t bytes = file.size();
  std::string text(static_cast<std::size_t>(std::min(bytes, most_bytes)), '\0');
  const std::int64_t at = bytes - std::ssize(text);
  text.resize(static_cast<std::size_t>(file.read_at(at, text.data(), std::ssize(text))));
  const std::string_view whole = without_partial_line(text, at);
  LastLines lines = objects_in(whole, is_expected);
  if (lines.damaged.count > 0) {
    lines.damaged.first += lines_before(file, at + std::ssize(text) - std::ssize(whole));
  }
  return lines;
}

LastLines last_json_lines(const std::filesystem::path& path, const TextReader& reader,
                          std::int64_t most_bytes, ObjectTest is_expected) {
  std::error_code gone;
  if (!std::filesystem::is_regular_file(path, gone) ||
      (!is_sealed_file(path) && run_with_log_keys(path).empty())) {
    return last_json_lines(path, most_bytes, is_expected);
  }
  const std::string text = reader.read(path, kMostSealedBytes);
  const std::int64_t at = std::max<std::int64_t>(std::ssize(text) - most_bytes, 0);
  const std::string_view whole =
      without_partial_line(std::string_view(text).substr(static_cast<std::size_t>(at)), at);
  LastLines lines = objects_in(whole, is_expected);
  if (lines.damaged.count > 0) {
    lines.damaged.first +=
        count_lines(std::string_view(text).substr(0, text.size() - whole.size()));
  }
  return lines;
}

}  // namespace trireme

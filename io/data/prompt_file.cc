#include "io/data/prompt_file.h"

#include <nlohmann/json.hpp>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;

std::string prompt_field(std::string_view line) {
  const nlohmann::json object = parse_json(line);
  const auto found = object.is_object() ? object.find("prompt") : object.end();
  if (found == object.end() || !found->is_string()) {
    throw DataError("expected an object with the text field \"prompt\"");
  }
  return found->get<std::string>();
}

}  // namespace

std::vector<std::string> read_prompts(const std::filesystem::path& file) {
  const std::string text = read_file(file, kMostBytes);
  const bool json = file.extension() == ".jsonl";
  std::vector<std::string> prompts;
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.find_first_not_of(" \t") == std::string_view::npos) {
      continue;
    }
    try {
      prompts.push_back(json ? prompt_field(line) : std::string(line));
    } catch (const DataError& error) {
      throw data_error_in(fmt::format("{}:{}", file.string(), number), error);
    }
  }
  if (prompts.empty()) {
    throw DataError(fmt::format("{} holds no prompts: write one per line", file.string()));
  }
  return prompts;
}

}  // namespace trireme

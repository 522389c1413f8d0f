#include "io/data/label_file.h"

#include <nlohmann/json.hpp>

#include "src/base/data_error_in.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace fs = std::filesystem;

fs::path label_file_of(const fs::path& tokens) { return tokens.string() + ".label.json"; }

std::string label_file_text(const Label& label) {
  const nlohmann::ordered_json text = {{"label", to_json(label)}};
  return text.dump() + "\n";
}

std::optional<Label> label_beside(const fs::path& tokens) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;
  const fs::path path = label_file_of(tokens);
  if (!fs::exists(fs::symlink_status(path))) {
    return kUnlabelled;
  }
  try {
    const nlohmann::json read = parse_json(read_file(path, kMostBytes));
    const std::optional<Label> label = read.is_object() ? label_of(read) : kUnlabelled;
    if (!label) {
      throw DataError("it holds no label");
    }
    return label;
  } catch (const DataError& error) {
    throw data_error_in(path.string(), error);
  }
}

}  // namespace trireme

// Reads any bytes as the texts that a user gives to `data pack` and `generate`: lines of a JSON
// Lines file, a list of paths, and files of prompts. Each may be refused with a DataError. A text
// that is taken from a line must be the one that nlohmann::json finds there.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "io/data/line_text.h"
#include "io/data/path_list.h"
#include "io/data/prompt_file.h"
#include "io/data/text_field.h"
#include "src/base/error.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_folder.h"

namespace {

void read_field(std::string_view line) {
  const std::string name = "text";
  trireme::TextField field(name);
  const bool taken = nlohmann::json::sax_parse(line, &field);
  trireme::require(taken == field.error.empty());
  const auto whole = nlohmann::json::parse(line, nullptr, false);
  if (taken) {
    const bool has_text = whole.is_object() && whole.contains(name) && whole[name].is_string();
    trireme::require(field.text.has_value() == has_text);
    trireme::require(!has_text || whole[name] == *field.text);
  }
  trireme::LineText lines(name);
  try {
    const std::string text = lines.text_in(line);
    trireme::require(taken && field.text == text);
  } catch (const trireme::DataError&) {
    trireme::require(!taken || !field.text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  static const TempFolder folder;
  const std::string_view text = text_of(data, bytes);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    read_field(text.substr(at, end - at));
    at = end + 1;
  }
  for (const char* name : {"prompts.txt", "prompts.jsonl"}) {
    const std::filesystem::path path = folder.path() / name;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    refuses_only_with<DataError>([&] { require(!read_prompts(path).empty()); });
  }
  refuses_only_with<DataError>([&] {
    for (const std::string& path : read_path_list(folder.path() / "prompts.txt")) {
      require(!path.empty() && path.find('\0') == std::string::npos);
    }
  });
  return 0;
}

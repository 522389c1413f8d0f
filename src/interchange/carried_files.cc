#include "src/interchange/carried_files.h"

#include <array>
#include <string_view>

#include "src/base/file.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 9> kCarried = {"tokenizer.json",
                                                      "tokenizer_config.json",
                                                      "special_tokens_map.json",
                                                      "added_tokens.json",
                                                      "vocab.json",
                                                      "merges.txt",
                                                      "tokenizer.model",
                                                      "chat_template.jinja",
                                                      "generation_config.json"};
constexpr std::int64_t kMostBytes = 256 << 20;

}  // namespace

void copy_carried_files(const std::filesystem::path& from, const std::filesystem::path& to) {
  for (const std::string_view name : kCarried) {
    if (std::filesystem::exists(from / name)) {
      const std::string contents = read_file(from / name, kMostBytes);
      File file = File::create_new(to / name);
      file.write(contents.data(), std::ssize(contents));
      file.sync();
      file.close();
    }
  }
}

}  // namespace trireme

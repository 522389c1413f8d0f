// Reads any bytes as a run's configuration: YAML, then a line "---" and one key=value argument per
// line. The result is a configuration that survives a round trip, or a ConfigError.
#include <vector>

#include "src/train/run/run_config.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr std::string_view kBorder = "\n---\n";

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text = trireme::text_of(data, bytes);
  const std::size_t border = text.find(kBorder);
  const std::string_view yaml = text.substr(0, border);
  const std::string_view arguments =
      border == std::string_view::npos ? "" : text.substr(border + kBorder.size());
  trireme::refuses_only_with<trireme::ConfigError>([&] {
    const trireme::MemoryFile file(yaml);
    const trireme::LoadedConfig loaded = trireme::load_run_config(
        {.file = file.path(), .arguments = lines_of(arguments), .site = "/nonexistent"});
    const std::string resolved = loaded.binder.to_yaml();
    const trireme::MemoryFile again(resolved);
    const trireme::LoadedConfig reloaded =
        trireme::load_run_config({.file = again.path(), .arguments = {}, .site = "/nonexistent"});
    trireme::require(reloaded.config.model == loaded.config.model);
    trireme::require(reloaded.config.run_dir == loaded.config.run_dir);
  });
  return 0;
}

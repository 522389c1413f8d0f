// Reads any bytes as the records of a registry of models, as the result of an evaluation, and as
// its index, of which no answer may be more than the records say.
#include <filesystem>
#include <fstream>

#include "src/registry/model_registry.h"
#include "src/registry/registry_index.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string_view text = text_of(data, bytes);
  refuses_only_with<DataError>([&] {
    const VersionRecord record = parse_version(text, "chat", 1, "record");
    require(parse_version(record_text(record), "chat", 1, "own") == record);
  });
  refuses_only_with<DataError>([&] {
    const ChangeRecord record = parse_change(text, "chat", 1, "record");
    require(parse_change(record_text(record), "chat", 1, "own") == record);
  });
  const MemoryFile file(text);
  refuses_only_with<DataError>([&] {
    std::int64_t step = 0;
    (void)read_evaluation(file.path(), step);
  });
  static const TempFolder folder;
  static const ModelRegistry registry = ModelRegistry::open_or_make(folder.path() / "registry");
  std::ofstream(registry.folder() / "index.sqlite", std::ios::binary) << text;
  require(RegistryIndex(registry).versions({}).empty());
  return 0;
}

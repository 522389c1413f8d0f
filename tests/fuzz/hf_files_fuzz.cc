// Takes any bytes as a list of safetensors files, or as one such file, in a folder with a good one.
// Every tensor that is listed must be readable; anything else must end with a DataError.
#include <filesystem>

#include "io/checkpoint/safetensors.h"
#include "src/base/file.h"
#include "src/interchange/hf_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_folder.h"

namespace {

void put(const std::filesystem::path& path, std::string_view contents) {
  std::filesystem::remove(path);
  trireme::File file = trireme::File::create_new(path);
  file.write(contents.data(), static_cast<std::int64_t>(contents.size()));
  file.close();
}

void read_all(const std::filesystem::path& source) {
  using namespace trireme;
  refuses_only_with<DataError>([&] {
    const HfFiles files(source);
    for (const auto& [name, tensor] : files.tensors()) {
      std::vector<float> elements(static_cast<std::size_t>(tensor.elements()));
      files.read(name, 0, tensor.elements(), elements.data());
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const trireme::TempFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  put(folder / "a.safetensors",
      trireme::encode_safetensors_header({}, {{"w", trireme::DType::f32, {1}, 0, 4}}, 8) +
          std::string(4, '\0'));
  put(folder / "model.safetensors.index.json", trireme::text_of(data, bytes));
  read_all(folder);
  put(folder / "b.safetensors", trireme::text_of(data, bytes));
  read_all(folder / "b.safetensors");
  return 0;
}

// Parses any bytes, with a valid seal added, as a dataset's manifest, which gives a manifest that
// survives a round trip, or a DataError.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "io/data/dataset_manifest.h"
#include "src/base/error.h"
#include "src/base/sealed_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string body(reinterpret_cast<const char*>(data), bytes);
  trireme::DatasetManifest manifest;
  try {
    manifest = trireme::parse_dataset_manifest(trireme::seal_body(body), "input");
  } catch (const trireme::DataError&) {
    return 0;
  }
  const std::string text = trireme::manifest_text(manifest);
  if (trireme::manifest_text(trireme::parse_dataset_manifest(text, "output")) != text) {
    std::abort();
  }
  return 0;
}

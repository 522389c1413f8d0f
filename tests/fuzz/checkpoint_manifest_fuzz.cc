// Parses any bytes as a checkpoint's manifest, which gives a manifest that survives a round trip,
// or a DataError. A valid seal is added first, because the parser refuses everything else at once.
#include <string>

#include "io/checkpoint/manifest.h"
#include "src/base/error.h"
#include "src/base/sealed_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string body(reinterpret_cast<const char*>(data), bytes);
  try {
    const auto manifest = trireme::parse_manifest(trireme::seal_body(body), "input");
    (void)trireme::parse_manifest(trireme::to_text(manifest), "output");
  } catch (const trireme::DataError&) {
    return 0;
  }
  return 0;
}

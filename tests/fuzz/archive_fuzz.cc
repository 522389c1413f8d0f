// Removes secrets and names from any bytes, as an archive for a vendor does. Secrets that were
// removed are not found again.
#include "src/study/anonymity/anonymity.h"
#include "src/study/redaction/redaction.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text = trireme::text_of(data, bytes);
  const trireme::Redacted once = trireme::redact(text);
  trireme::require(once.text.size() <=
                   2 * text.size() + 10 * static_cast<std::size_t>(once.secrets));
  trireme::Anonymity anonymity;
  anonymity.learn(text);
  (void)anonymity.apply(once.text);
  return 0;
}

// Parses any bytes as the note of a shard that an interrupted `data pack` left.
#include <nlohmann/json.hpp>

#include "io/data/shard_note.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text = trireme::text_of(data, bytes);
  trireme::refuses_only_with<trireme::DataError>([&] {
    const trireme::ShardNote note = trireme::parse_note(text, 2);
    (void)trireme::parse_note(trireme::note_text(note), 2);
  });
  return 0;
}

// Parses any bytes as run.lock, and each line as a name in a checkpoint folder. A name that parses
// must be spelt exactly as the program spells it.
#include <algorithm>

#include "io/checkpoint/memory/node_memory.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/run_lock.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

void check_name(std::string_view name) {
  if (const auto step = trireme::parse_step_folder_name(name)) {
    trireme::require(trireme::step_folder_name(*step) == name);
  }
  if (const auto shard = trireme::parse_shard_file_name(name)) {
    trireme::require(trireme::shard_file_name(*shard) == name);
  }
  if (const auto step = trireme::parse_memory_step_name(name)) {
    trireme::require(step->to_string() == name);
  }
  if (const auto transient = trireme::parse_transient_name(name)) {
    const auto again = trireme::parse_transient_name(transient->to_string());
    trireme::require(again && again->step == transient->step &&
                     again->generation == transient->generation && again->kind == transient->kind);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text = trireme::text_of(data, bytes);
  if (const auto owner = trireme::parse_lock(text)) {
    const auto again = trireme::parse_lock(trireme::to_text(*owner));
    trireme::require(again && again->nonce == owner->nonce);
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    check_name(text.substr(at, end - at));
    at = end + 1;
  }
  return 0;
}

// Parses any bytes as each of the small files that a launch reads: exit_reason.json, a host file,
// the site list, a node's baseline (with a valid seal added), and a rank's progress page.
#include "slurm/health/measures.h"
#include "slurm/policy/nodes.h"
#include "slurm/policy/site_list.h"
#include "slurm/policy/verdict.h"
#include "src/base/progress_page.h"
#include "src/base/sealed_json.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string text(trireme::text_of(data, bytes));
  (void)trireme::parse_exit_reason(text);
  trireme::refuses_only_with<trireme::ConfigError>([&] {
    for (const trireme::NodeSpec& node : trireme::parse_host_file(text, "input")) {
      trireme::require(trireme::is_host_name(node.name));
    }
  });
  for (const auto& [node, why] : trireme::parse_site_list(text, 1'800'000'000)) {
    trireme::require(trireme::is_host_name(node));
  }
  trireme::refuses_only_with<trireme::DataError>([&] {
    const trireme::Measures measures = trireme::parse_baseline(trireme::seal_body(text));
    (void)trireme::compare(measures, measures, 0.9);
    (void)trireme::parse_baseline(trireme::baseline_text(measures));
  });
  const trireme::MemoryFile page(text);
  (void)trireme::read_progress(page.path());
  return 0;
}

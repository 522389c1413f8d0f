// Loads any bytes as the profile of an acceptance, as what `trireme health --json` printed, and as
// what a benchmark wrote.
#include "src/study/acceptance.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text = trireme::text_of(data, bytes);
  trireme::refuses_only_with<trireme::ConfigError>([&] {
    const trireme::MemoryFile file(text);
    (void)trireme::load_accept_profile(file.path());
  });
  trireme::refuses_only_with<trireme::DataError>([&] {
    trireme::AcceptSubject subject{{"n1"}, {}, {}};
    trireme::add_health(text, subject);
    const auto verdicts =
        trireme::judge({subject, subject, subject}, {{}, {}, 90, 3, {{"memory", 1e9}}});
    trireme::require(verdicts.size() == 3);
    (void)trireme::limit_problem({subject}, {{}, {}, 90, 3, {{"memory", 1e9}}}, "node.limits");
    (void)trireme::short_text(verdicts[0]);
    (void)trireme::sentence(verdicts[0], 3);
  });
  trireme::refuses_only_with<trireme::DataError>([&] {
    trireme::AcceptSubject subject{{"n1"}, {}, {}};
    trireme::add_result(trireme::parse_bench_result(text, "x"), subject);
    const auto verdicts =
        trireme::judge({subject, subject, subject}, {{}, {}, 90, 3, {{"time_us", 1}}});
    (void)trireme::sentence(verdicts[0], 3);
    (void)trireme::reason(verdicts[0]);
  });
  return 0;
}

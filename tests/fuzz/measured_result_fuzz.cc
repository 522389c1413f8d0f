// Parses any bytes as a document of `trireme bench -J`, and as the files of a run, and compares
// what was read with itself.
#include "src/study/comparison.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

void compare_with_itself(const trireme::MeasuredResult& result) {
  trireme::require(trireme::differences(result, result).empty());
  const trireme::Comparison comparison = trireme::compare_results(result, result, {});
  trireme::require(comparison.only_a.empty() && comparison.only_b.empty());
  trireme::require(comparison.count_of(trireme::ChangeVerdict::regression) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text = trireme::text_of(data, bytes);
  trireme::refuses_only_with<trireme::DataError>(
      [&] { compare_with_itself(trireme::parse_bench_result(text, "input")); });
  const std::size_t half = text.find('\0');
  const std::string_view rest = half == std::string_view::npos ? "" : text.substr(half + 1);
  trireme::refuses_only_with<trireme::DataError>([&] {
    compare_with_itself(trireme::parse_run_result(text.substr(0, half), rest, rest, "input"));
  });
  return 0;
}

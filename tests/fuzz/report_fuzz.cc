// Parses any bytes as metrics.jsonl of a run, as results of a benchmark, as those of an acceptance
// and as a plan, and makes pages of them. Bad lines of metrics are skipped; bad results are refused
// with DataError.
#include "src/report/acceptance_section.h"
#include "src/report/bench_section.h"
#include "src/report/plan_section.h"
#include "src/report/run_section.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string_view text = text_of(data, bytes);
  RunFolder run;
  run.name = run.config = std::string(text.substr(0, 100));
  run.metrics = parse_columns(text);
  for (const auto& [name, values] : run.metrics.fields) {
    require(values.size() == run.metrics.step.size());
  }
  const Document page{run.name, {}, {run_section(run, ""), comparison_section({run, run})}};
  const std::string html = to_html(page);
  require(html.find("<script>") == html.rfind("<script>"));
  (void)to_markdown(page);
  refuses_only_with<DataError>([&] {
    const Document results{run.name, {}, {bench_section(text, run.name)}};
    (void)to_html(results);
    (void)to_markdown(results);
  });
  refuses_only_with<DataError>([&] {
    const Document acceptance{run.name, {}, {acceptance_section(text, run.name)}};
    (void)to_html(acceptance);
    (void)to_markdown(acceptance);
  });
  refuses_only_with<DataError>([&] {
    const Document plan{run.name, {}, {plan_section(text, run.name)}};
    (void)to_html(plan);
    (void)to_markdown(plan);
  });
  (void)looks_like_bench(text);
  (void)looks_like_acceptance(text);
  (void)looks_like_plan(text);
  return 0;
}

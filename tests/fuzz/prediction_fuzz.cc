// Reads any bytes as what a run has measured, which can be predicted and calibrated with, or gives
// a DataError.
#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"
#include "src/plan/calibration.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  trireme::refuses_only_with<trireme::DataError>([&] {
    const auto json = trireme::parse_json(trireme::text_of(data, bytes));
    const trireme::MeasuredStep step = trireme::measured_step(json);
    trireme::require(step.measured.predictable() > 0);
    // Schedules of many stages take long to simulate.
    if (step.layout.pp * step.layout.virtual_stages <= 16) {
      const auto fit = trireme::fit_calibration(trireme::load_cluster("test"), {step, step});
      trireme::require(fit.rows.size() == 2 && fit.cluster.residual_percent >= 0);
      trireme::require(fit.cluster.calibration.products > 0);
    }
  });
  return 0;
}

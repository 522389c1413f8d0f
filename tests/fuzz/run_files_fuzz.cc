// Reads any bytes as the files of a run that later commands read: metrics.jsonl and a rank's log,
// whose bad lines are skipped, and DONE, which may be refused with a DataError.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>

#include <nlohmann/json.hpp>

#include "slurm/render/measured_times.h"
#include "src/base/json_lines.h"
#include "src/train/report/metrics.h"
#include "src/train/run/run_directory.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_folder.h"

namespace {

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  trireme::require(file.good());
}

bool is_time(const std::optional<double>& seconds) {
  return !seconds || (std::isfinite(*seconds) && *seconds >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  static const TempFolder folder;
  const RunDirectory run(folder.path());
  std::filesystem::create_directories(run.log(0).parent_path());
  const std::string_view text = text_of(data, bytes);
  write_text(run.metrics(), text);
  write_text(run.log(0), text);
  write_text(run.root() / "DONE", text);

  const LastLines all = last_json_lines(run.metrics());
  for (const nlohmann::json& line : all.objects) {
    require(line.is_object());
  }
  const LastLines last = last_json_lines(run.metrics(), 40);
  require(last.objects.size() <= all.objects.size());
  require(last.damaged.count == 0 || last.damaged.first >= all.damaged.first);
  (void)logged_validation_loss(run.metrics(), 4);
  const MeasuredTimes times = measured_times(run.root());
  require(is_time(times.step_seconds) && is_time(times.save_seconds));
  refuses_only_with<DataError>([&] { require(run.done_step().value() >= 0); });
  return 0;
}

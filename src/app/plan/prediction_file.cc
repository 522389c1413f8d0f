#include "src/app/plan/prediction_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/train/run/run_directory.h"

namespace trireme {

PredictionFile read_prediction(const std::filesystem::path& run) {
  constexpr std::int64_t kMostBytes = 1 << 20;
  constexpr std::int64_t kSchema = 1;
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(run, error);
  const std::filesystem::path file = is_folder ? RunDirectory(run).prediction() : run;
  if (!std::filesystem::exists(file, error)) {
    throw NotFound(
        fmt::format("{}: there is no such file: a run writes it at its end if plan.cluster names a "
                    "cluster file",
                    file.string()));
  }
  const std::string text = read_file(file, kMostBytes);  // the message of a failure names the file
  try {
    const nlohmann::json json = parse_json(text);
    if (const std::int64_t schema = count_field(json, "schema"); schema > kSchema) {
      throw DataError(fmt::format("it is of schema {}, and this program reads {}: use a newer one",
                                  schema, kSchema));
    }
    return {measured_step(json), step_split(object_field(json, "predicted"))};
  } catch (const DataError& damage) {
    throw data_error_in(file.string(), damage);
  }
}

}  // namespace trireme

// Checks the datasets of a run for `trireme doctor`. Reads manifests, and keys if a dataset is
// encrypted.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "slurm/doctor/finding.h"
#include "src/train/start/training_data.h"

namespace trireme {

// Adds a finding if `work` throws. `key` names the configuration key at fault, unless the message
// does.
void check_key(const std::string& key, const std::string& host, std::vector<Finding>& found,
               const std::function<void()>& work);
// Returns nothing if no dataset is configured or it cannot be used.
std::optional<Dataset> check_dataset(const std::string& key, const std::filesystem::path& folder,
                                     const RunConfig& config, const std::string& host,
                                     std::vector<Finding>& found);
// Returns nothing if a dataset of data.train cannot be used, or they do not go together.
std::optional<TrainingData> check_training_data(const RunConfig& config, const std::string& host,
                                                std::vector<Finding>& found);

}  // namespace trireme

#include "src/app/site/dataset_checks.h"

#include "src/base/error.h"
#include "src/keys/key_ring.h"

namespace trireme {
namespace {

// Returns the keys that the dataset needs. Throws PolicyError if it is not encrypted, but has to
// be.
std::vector<std::string> keys_for(const std::filesystem::path& folder, const RunConfig& config) {
  const DatasetManifest manifest =
      parse_dataset_manifest(read_manifest_text(folder), (folder / kDatasetManifestName).string());
  const EncryptionConfig& encryption = config.encryption;
  if (!manifest.is_encrypted() && !encryption.keys.empty() && !encryption.accept_plain_data) {
    throw plain_dataset_refused(folder);
  }
  return manifest.is_encrypted() ? encryption.keys : std::vector<std::string>();
}

}  // namespace

void check_key(const std::string& key, const std::string& host, std::vector<Finding>& found,
               const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    found.push_back(error_of(error, host));
    if (!found.back().what.starts_with(key)) {
      found.back().what = fmt::format("{}: {}", key, found.back().what);
    }
  }
}

std::optional<Dataset> check_dataset(const std::string& key, const std::filesystem::path& folder,
                                     const RunConfig& config, const std::string& host,
                                     std::vector<Finding>& found) {
  std::optional<Dataset> dataset;
  if (folder.empty()) {
    return dataset;
  }
  const std::size_t before = found.size();
  check_key(key, host, found, [&] {
    Dataset opened = Dataset::open(folder, KeyRing(keys_for(folder, config)));
    (void)opened.samples(config.data.sequence);
    check_vocabulary(opened, config.model.vocab);
    dataset.emplace(std::move(opened));
  });
  if (found.size() > before && found.back().code != ExitCode::usage) {
    found.back().remedy = fmt::format("see `trireme data verify {}`", folder.string());
  }
  return dataset;
}

std::optional<TrainingData> check_training_data(const RunConfig& config, const std::string& host,
                                                std::vector<Finding>& found) {
  std::optional<TrainingData> data;
  std::vector<Dataset> datasets;
  for (const DataSource& source : config.data.train) {
    std::optional<Dataset> opened =
        check_dataset(source.key(config.data.train.size()), source.path, config, host, found);
    if (opened) {
      datasets.push_back(std::move(*opened));
    }
  }
  if (!datasets.empty() && datasets.size() == config.data.train.size()) {
    check_key("data.train", host, found, [&] { data.emplace(config, std::move(datasets)); });
  }
  return data;
}

}  // namespace trireme

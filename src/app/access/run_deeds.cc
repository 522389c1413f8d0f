#include "src/app/access/run_deeds.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "io/checkpoint/store.h"
#include "io/data/dataset_manifest.h"

namespace trireme {

namespace fs = std::filesystem;

void RunDeeds::ask_for(const RunConfig& config) {
  const DataConfig& data = config.data;
  for (const DataSource& source : data.train) {
    read_dataset(source.key(data.train.size()), source.path);
  }
  for (const EvaluationSet& set : data.validation) {
    read_dataset(set.key(data.validation.size()), set.path);
  }
  const bool resumes = read_newest_step(config.checkpoint_dir());
  const fs::path& base = config.checkpoint.init_from;
  if (!base.empty() && (!resumes || config.model.has_frozen())) {
    read_step("checkpoint.init_from", base);
  }
  if (!config.distill.teacher.empty()) {
    read_step("distill.teacher", config.distill.teacher);
  }
  ask("checkpoint.dir", {Deed::write, Thing::checkpoint, config.checkpoint_dir(), joined_});
}

bool RunDeeds::is_allowed() const {
  return std::all_of(deeds_.begin(), deeds_.end(),
                     [](const CheckedDeed& deed) { return deed.decision.allowed; });
}

void RunDeeds::read_dataset(const std::string& key, const fs::path& folder) {
  if (folder.empty()) {
    return;
  }
  const std::optional<Label> label =
      parse_dataset_manifest(read_manifest_text(folder), (folder / kDatasetManifestName).string())
          .label;
  ask(key, {Deed::read, Thing::dataset, folder, label});
}

void RunDeeds::read_step(const std::string& key, const fs::path& path) {
  std::vector<std::string> skipped;
  const StepFolder step = find_step(path, skipped);
  ask(key, {Deed::read, Thing::checkpoint, step.path, step.manifest->meta.label});
}

bool RunDeeds::read_newest_step(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) {
    return false;
  }
  for (const StepFolder& step : list_steps(folder)) {
    if (step.manifest) {  // the newest whole one
      ask("checkpoint.resume",
          {Deed::read, Thing::checkpoint, step.path, step.manifest->meta.label});
      return true;
    }
  }
  return false;
}

void RunDeeds::ask(const std::string& what, Request request) {
  if (request.deed == Deed::read) {
    joined_ = join(joined_, request.label, access_.classifications());
  }
  Decision decision = access_.ask(request);
  deeds_.push_back({what, std::move(request), std::move(decision)});
}

}  // namespace trireme

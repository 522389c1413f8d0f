#include "src/app/model/model_provenance.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "io/checkpoint/workers.h"
#include "mpi/agreement.h"
#include "src/base/digest.h"
#include "src/base/file.h"
#include "src/evidence/bundle.h"
#include "src/evidence/folder_materials.h"
#include "src/evidence/folder_subjects.h"
#include "src/interchange/draft_folder.h"
#include "src/train/saving/checkpoint_provenance.h"

namespace trireme {
namespace fs = std::filesystem;

ModelProvenance::ModelProvenance(const std::vector<std::string>& arguments, fs::path out)
    : arguments_(recorded_arguments(arguments).words), out_(stated_path(out)) {}

void ModelProvenance::sign_import(const fs::path& folder,
                                  const std::vector<InputFile>& sources) const {
  if (statement_.has_key()) {
    sign(folder, kImportBuildType, input_materials(sources, ": import the model again"));
  }
}

void ModelProvenance::sign_pruned(const fs::path& folder, const StepFolder& base) const {
  if (statement_.has_key()) {
    sign(folder, kSparsifyBuildType,
         folder_materials(kBaseMaterial, base.path, base.manifest_sha256));
  }
}

void ModelProvenance::note(AuditTrail& audit) const {
  if (audit.is_active()) {
    nlohmann::ordered_json details;
    add_step_details(out_, {}, details);
    audit.end_details() = JsonValue(nlohmann::json(details));
  }
}

void ModelProvenance::sign(const fs::path& folder, std::string_view build_type,
                           std::vector<Material> materials) const {
  const std::string text = read_file(folder / kManifestName);
  const Manifest manifest = parse_manifest(text, (folder / kManifestName).string());
  Provenance provenance;
  provenance.build_type = build_type;
  provenance.subjects = {{kManifestSubject, sha256_hex(text)}};
  add_other_files(folder, available_processors(), provenance.subjects);
  provenance.materials = std::move(materials);
  *provenance.parameters = {{"arguments", arguments_}};
  *provenance.details = {{"checkpoints", stated_uri(out_.parent_path())},
                         {"step", manifest.meta.step},
                         {kAncestorsDetail, 0}};
  if (manifest.meta.label) {
    (*provenance.details)["label"] = to_json(*manifest.meta.label);
  }
  write_whole_file(folder / kProvenanceName, statement_.bundle(std::move(provenance)));
}

std::unique_ptr<const ModelProvenance> model_provenance(AppContext& context, const fs::path& out) {
  std::unique_ptr<const ModelProvenance> provenance;
  run_on_root(context.session().world(), [&]() -> std::string {
    provenance = std::make_unique<const ModelProvenance>(context.arguments, out);
    return "";
  });
  return provenance;
}

}  // namespace trireme

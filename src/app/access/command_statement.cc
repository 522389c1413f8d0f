#include "src/app/access/command_statement.h"

#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/workers.h"
#include "src/app/command/version.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/evidence/bundle.h"
#include "src/evidence/file_digests.h"
#include "src/evidence/folder_materials.h"
#include "src/train/run/run_config.h"

namespace trireme {

CommandStatement::CommandStatement() : started_(utc_now()) {
  const AuditConfig site = site_audit_config(environ);
  if (!site.key.empty()) {
    key_ = SigningKey::load(site.key);
  }
}

std::string CommandStatement::bundle(Provenance provenance) const {
  const std::string host = host_name();
  (*provenance.details)["hosts"] = {host};
  (*provenance.details)["versions"] = nlohmann::json(version_json());
  provenance.builder = "urn:trireme:host:" + host;
  provenance.started = started_;
  provenance.finished = utc_now();
  provenance.invocation = fmt::format("{}/{}/{}", host, ::getpid(), started_);
  return bundle_text(
      make_envelope(std::string(kStatementType), statement_text(provenance), &key_.value()), "");
}

std::vector<Material> input_materials(const std::vector<InputFile>& inputs,
                                      const std::string& consequence) {
  std::vector<std::filesystem::path> paths;
  for (const InputFile& file : inputs) {
    paths.emplace_back(file.path);
  }
  const std::vector<FileDigest> digests = digest_files(paths, available_processors());
  std::vector<Material> materials;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (digests[i].sha256.empty()) {
      throw IoError(fmt::format("{}{}", digests[i].trouble, consequence));
    }
    if (!is_untouched(inputs[i])) {
      throw DataError(
          fmt::format("{} was changed while it was read{}", paths[i].string(), consequence));
    }
    materials.push_back({kInputMaterial, stated_uri(paths[i]), digests[i].sha256});
  }
  return materials;
}

}  // namespace trireme

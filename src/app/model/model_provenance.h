// ModelProvenance signs what a checkpoint that a command has made was made from, if the site has a
// key (audit.key), and notes its digests for the audit log. On rank 0 only.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/store.h"
#include "src/app/access/command_statement.h"
#include "src/app/command/app_context.h"

namespace trireme {

class ModelProvenance {
 public:
  // arguments: of the command line. out: the final folder of the checkpoint. Throws what
  // SigningKey::load() throws.
  ModelProvenance(const std::vector<std::string>& arguments, std::filesystem::path out);

  // Write the provenance of a complete checkpoint into its folder, which may have another name yet;
  // nothing without a key. Throw IoError, and sign_import() DataError if a file of the source was
  // touched since it was listed.
  void sign_import(const std::filesystem::path& folder,
                   const std::vector<InputFile>& sources) const;
  void sign_pruned(const std::filesystem::path& folder, const StepFolder& base) const;

  // Adds the digests of the checkpoint to the last event of the command.
  void note(AuditTrail& audit) const;

 private:
  void sign(const std::filesystem::path& folder, std::string_view build_type,
            std::vector<Material> materials) const;

  std::vector<std::string> arguments_;
  std::filesystem::path out_;
  CommandStatement statement_;
};

// Collective. Returns the provenance on rank 0, null elsewhere. All ranks throw what the
// constructor throws.
std::unique_ptr<const ModelProvenance> model_provenance(AppContext& context,
                                                        const std::filesystem::path& out);

}  // namespace trireme

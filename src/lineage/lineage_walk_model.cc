// See lineage_walk.h.
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/units.h"
#include "src/evidence/model_signature.h"
#include "src/evidence/named_files.h"
#include "src/lineage/lineage_walk.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns what is wrong with a signature, or nothing.
std::optional<EvidenceFault> signature_fault(const SignatureFinding& signature,
                                             const std::string& file) {
  switch (signature.state) {
    case SignatureState::trusted:
      return std::nullopt;
    case SignatureState::none:
      return EvidenceFault{ExitCode::refused, fmt::format("{} is not signed", file)};
    case SignatureState::revoked:
      return EvidenceFault{ExitCode::refused,
                           fmt::format("{} is signed by {}", file, signature.signer())};
    case SignatureState::untrusted:
      return EvidenceFault{
          ExitCode::refused,
          fmt::format("no key of the trust file has signed {}, or it was changed since", file)};
    case SignatureState::forged:
      return EvidenceFault{
          ExitCode::bad_data,
          fmt::format("{} was changed: the signature is not that of {}", file, signature.signer())};
  }
  return std::nullopt;
}

std::vector<std::string> facts_of_model(const SignedModel& model) {
  std::vector<std::string> facts;
  for (const std::string& signer : model.signature.signers) {
    facts.push_back("signed by " + signer);
  }
  if (!model.statement.finished.empty()) {
    facts.push_back("signed at " + model.statement.finished);
  }
  if (!model.statement.checkpoint.empty()) {
    facts.push_back(
        fmt::format("made from the checkpoint of step {} whose manifest has the "
                    "SHA-256 {}",
                    model.statement.step, model.statement.checkpoint));
  }
  return facts;
}

}  // namespace

void LineageWalk::model(const fs::path& folder) {
  const std::size_t first = lineage.faults.size();
  const std::size_t item = lineage.items.size();
  add_item(0, "model", folder.string());
  const std::string file = (folder / kModelSignatureName).string();
  if (fs::is_symlink(fs::symlink_status(file))) {
    throw DataError(
        fmt::format("{} is a symbolic link, and a signature is a file of its model: it "
                    "was not opened",
                    file));
  }
  const SignedModel model =
      parse_model_signature(read_file(file, kMostModelSignatureBytes), file, options_.trusted);
  if (const auto fault = signature_fault(model.signature, file)) {
    add_fault(fault->code, fault->what + "; the files that it names were not read");
    end_item(item, first, "not signed by a trusted key");
    return;
  }
  lineage.items[item].facts = facts_of_model(model);
  FolderCheck check;
  check.folder = folder;
  NamedFiles named{.subjects = model.statement.files,
                   .statement = kModelSignatureName,
                   .companions = {kModelSignatureName},
                   .threads = options_.threads};
  for (const std::string& path : model.statement.ignored) {
    if (path != kModelSignatureName) {
      named.unsigned_names.insert(named.unsigned_names.end(), {path, path + "/"});
    }
  }
  check_named_files(list_folder(folder, check), named, check);
  take(check);
  end_item(
      item, first,
      fmt::format("{} as signed, {}", counted(check.files, "file"), format_bytes(check.bytes)));
}

}  // namespace trireme

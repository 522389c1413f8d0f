#include "src/evidence/folder_check.h"

#include "src/base/file.h"
#include "src/base/keys_name.h"
#include "src/evidence/named_files.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

void add_fault(FolderCheck& check, ExitCode code, std::string what) {
  check.faults.push_back({code, std::move(what)});
}

}  // namespace

void check_signatures(const std::vector<SignedStatement>& statements, std::size_t first,
                      const std::string& origin, FolderCheck& check) {
  for (std::size_t i = first; i < statements.size(); ++i) {
    const SignatureFinding& signature = statements[i].signature;
    const std::string place = fmt::format("{}, line {}", origin, i + 1);
    switch (signature.state) {
      case SignatureState::trusted:
        for (const std::string& other : statements[i].other_signers) {
          check.notes.push_back(fmt::format("{}: also signed by the key {}, which is not trusted",
                                            place, short_id(other)));
        }
        break;
      case SignatureState::none:
        add_fault(check, ExitCode::refused, fmt::format("{} is not signed", place));
        break;
      case SignatureState::revoked:
        add_fault(check, ExitCode::refused,
                  fmt::format("{} is signed by {}", place, signature.signer()));
        break;
      case SignatureState::untrusted:
        add_fault(check, ExitCode::refused,
                  fmt::format("{} is signed by {}, which the trust file does not hold", place,
                              signature.signer()));
        break;
      case SignatureState::forged:
        add_fault(check, ExitCode::bad_data,
                  fmt::format("{} was changed: the signature is not that of {}", place,
                              signature.signer()));
        break;
    }
  }
}

FolderCheck check_folder(const fs::path& folder, const FolderDemands& demands) {
  FolderCheck check;
  check.folder = folder;
  const FolderContents contents = list_folder(folder, check);
  const std::string bundle = (folder / kProvenanceName).string();
  if (!contents.has_file(kProvenanceName)) {
    add_fault(check, ExitCode::refused,
              fmt::format("{} has no {}: nothing in it is signed (see audit.key)", folder.string(),
                          kProvenanceName));
    return check;
  }
  try {
    check.statements =
        parse_bundle(read_file(bundle, demands.most_bundle_bytes), bundle, demands.trusted);
  } catch (const Error& error) {
    add_fault(check, error.exit_code(), error.what());
    return check;
  }
  check_signatures(check.statements, 0, bundle, check);
  check_named_files(contents,
                    {check.statements[0].provenance.subjects,
                     "the provenance",
                     {std::string(kProvenanceName), std::string(kKeysFileName)},
                     demands.unsigned_names,
                     demands.threads},
                    check);
  return check;
}

}  // namespace trireme

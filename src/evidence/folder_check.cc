#include "src/evidence/folder_check.h"

#include <algorithm>
#include <map>

#include "src/base/file.h"
#include "src/base/keys_name.h"
#include "src/base/units.h"
#include "src/evidence/file_digests.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

void add_fault(FolderCheck& check, ExitCode code, std::string what) {
  check.faults.push_back({code, std::move(what)});
}

// What a folder and its subfolders hold, by the path relative to it, sorted.
struct Contents {
  std::vector<std::string> files;
  std::vector<std::string> folders;
  std::vector<std::string> others;  // a fault each
};

// Everything that is neither a file nor a folder is a fault.
Contents contents_of(const fs::path& folder, FolderCheck& check) {
  Contents contents;
  std::error_code code;
  fs::recursive_directory_iterator at(folder, code);
  for (const fs::recursive_directory_iterator end; !code && at != end; at.increment(code)) {
    std::error_code unknown;
    const fs::file_type type = at->symlink_status(unknown).type();
    const std::string name = at->path().lexically_relative(folder).string();
    if (type == fs::file_type::regular) {
      contents.files.push_back(name);
    } else if (type == fs::file_type::directory) {
      contents.folders.push_back(name);
    } else {
      contents.others.push_back(name);
      const char* const what = type == fs::file_type::symlink
                                   ? "is a symbolic link: a signed folder holds files only"
                                   : "is not a regular file";
      add_fault(check, ExitCode::bad_data, fmt::format("{} {}", at->path().string(), what));
    }
  }
  if (code) {
    const bool is_denied = code == std::errc::permission_denied;
    add_fault(check, is_denied ? ExitCode::refused : ExitCode::io,
              fmt::format("the folder {} cannot be listed: {}", folder.string(), code.message()));
  }
  for (std::vector<std::string>* names : {&contents.files, &contents.folders, &contents.others}) {
    std::sort(names->begin(), names->end());
  }
  return contents;
}

bool holds(const std::vector<std::string>& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

// Reports each folder that no named file needs. `named` is sorted.
void check_folders(const std::vector<std::string>& folders, const std::vector<std::string>& named,
                   FolderCheck& check) {
  for (const std::string& folder : folders) {
    const auto inside = std::lower_bound(named.begin(), named.end(), folder + "/");
    const bool is_needed = inside != named.end() && inside->starts_with(folder + "/");
    if (!is_needed && !holds(named, folder)) {  // a folder in place of a file counts as missing
      add_fault(check, ExitCode::bad_data,
                fmt::format("the folder {} was added: the provenance names no file in it",
                            (check.folder / folder).string()));
    }
  }
}

void check_names(const Contents& contents, const FolderDemands& demands, FolderCheck& check) {
  const auto is_among = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> named = {std::string(kProvenanceName), std::string(kKeysFileName)};
  for (const Subject& subject : check.statements[0].provenance.subjects) {
    named.push_back(subject.name);
  }
  std::sort(named.begin(), named.end());
  if (const auto twice = std::adjacent_find(named.begin(), named.end()); twice != named.end()) {
    add_fault(check, ExitCode::bad_data,
              fmt::format("{}: the provenance names {} twice", check.folder.string(), *twice));
  }
  for (const std::string& file : contents.files) {
    if (is_among(demands.unsigned_names, file)) {
      check.notes.push_back(fmt::format("{} is not signed", (check.folder / file).string()));
    } else if (!holds(named, file)) {
      add_fault(check, ExitCode::bad_data,
                fmt::format("{} was added: the provenance does not name it",
                            (check.folder / file).string()));
    }
  }
  check_folders(contents.folders, named, check);
}

void check_contents(const Contents& contents, const FolderDemands& demands, FolderCheck& check) {
  const std::vector<Subject>& subjects = check.statements[0].provenance.subjects;
  std::vector<fs::path> paths;
  std::vector<const Subject*> wanted;
  for (const Subject& subject : subjects) {
    const fs::path path = check.folder / subject.name;
    if (holds(contents.files, subject.name)) {
      paths.push_back(path);
      wanted.push_back(&subject);
    } else if (!holds(contents.others, subject.name)) {
      const char* const instead =
          holds(contents.folders, subject.name) ? "; a folder has its name" : "";
      add_fault(check, ExitCode::bad_data,
                fmt::format("{} is missing: the provenance names it{}", path.string(), instead));
    }
  }
  const std::vector<FileDigest> digests = digest_files(paths, demands.threads);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    check.bytes += digests[i].bytes;
    if (digests[i].sha256 == wanted[i]->sha256) {
      ++check.files;
    } else if (digests[i].sha256.empty()) {
      add_fault(check, digests[i].code, digests[i].trouble);
    } else {
      add_fault(check, ExitCode::bad_data,
                fmt::format("{} was changed: its SHA-256 is {}, and the provenance states {}",
                            paths[i].string(), digests[i].sha256, wanted[i]->sha256));
    }
  }
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
  const Contents contents = contents_of(folder, check);
  const std::string bundle = (folder / kProvenanceName).string();
  if (!holds(contents.files, std::string(kProvenanceName))) {
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
  check_names(contents, demands, check);
  check_contents(contents, demands, check);
  return check;
}

}  // namespace trireme

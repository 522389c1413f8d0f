#include "src/evidence/named_files.h"

#include <algorithm>

#include "src/base/keys_name.h"
#include "src/evidence/file_digests.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

void fault(FolderCheck& check, ExitCode code, std::string what) {
  check.faults.push_back({code, std::move(what)});
}

bool holds(const std::vector<std::string>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

bool is_unsigned(const NamedFiles& named, const std::string& path) {
  return std::any_of(named.unsigned_names.begin(), named.unsigned_names.end(),
                     [&](const std::string& each) {
                       return path == each || (each.ends_with('/') && path.starts_with(each));
                     });
}

// Returns whether it is what an interrupted change of keys.json left. Only the file itself counts,
// which nothing reads and no statement names.
bool is_keys_draft(const NamedFiles& named, std::string_view file) {
  const bool has_keys = std::find(named.companions.begin(), named.companions.end(),
                                  kKeysFileName) != named.companions.end();
  if (!has_keys || !file.starts_with(kKeysDraftStart)) {
    return false;
  }
  const std::string_view number = file.substr(kKeysDraftStart.size());
  return !number.empty() &&
         std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Reports each folder that no named file needs. `names` is sorted.
void check_folders(const std::vector<std::string>& folders, const std::vector<std::string>& names,
                   const NamedFiles& named, FolderCheck& check) {
  for (const std::string& folder : folders) {
    const auto inside = std::lower_bound(names.begin(), names.end(), folder + "/");
    const bool is_needed = inside != names.end() && inside->starts_with(folder + "/");
    // A folder in place of a file counts as missing.
    if (!is_needed && !holds(names, folder) && !is_unsigned(named, folder + "/")) {
      fault(check, ExitCode::bad_data,
            fmt::format("the folder {} was added: {} names no file in it",
                        (check.folder / folder).string(), named.statement));
    }
  }
}

void check_names(const FolderContents& contents, const NamedFiles& named, FolderCheck& check) {
  std::vector<std::string> names = named.companions;
  for (const Subject& subject : named.subjects) {
    names.push_back(subject.name);
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    fault(check, ExitCode::bad_data,
          fmt::format("{}: {} names {} twice", check.folder.string(), named.statement, *twice));
  }
  for (const std::string& file : contents.files) {
    if (is_unsigned(named, file)) {
      check.notes.push_back(fmt::format("{} is not signed", (check.folder / file).string()));
    } else if (is_keys_draft(named, file) && !holds(names, file)) {
      check.notes.push_back(fmt::format(
          "{} is what an interrupted change of {} left: nothing reads it, and the next `trireme "
          "keys rotate`, `add` or `remove` removes it",
          (check.folder / file).string(), kKeysFileName));
    } else if (!holds(names, file)) {
      fault(check, ExitCode::bad_data,
            fmt::format("{} was added: {} does not name it", (check.folder / file).string(),
                        named.statement));
    }
  }
  check_folders(contents.folders, names, named, check);
}

void check_digests(const FolderContents& contents, const NamedFiles& named, FolderCheck& check) {
  std::vector<fs::path> paths;
  std::vector<const Subject*> wanted;
  for (const Subject& subject : named.subjects) {
    const fs::path path = check.folder / subject.name;
    if (contents.has_file(subject.name)) {
      paths.push_back(path);
      wanted.push_back(&subject);
    } else if (!holds(contents.others, subject.name)) {
      const char* const instead =
          holds(contents.folders, subject.name) ? "; a folder has its name" : "";
      fault(check, ExitCode::bad_data,
            fmt::format("{} is missing: {} names it{}", path.string(), named.statement, instead));
    }
  }
  const std::vector<FileDigest> digests = digest_files(paths, named.threads);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    check.bytes += digests[i].bytes;
    if (digests[i].sha256 == wanted[i]->sha256) {
      ++check.files;
    } else if (digests[i].sha256.empty()) {
      fault(check, digests[i].code, digests[i].trouble);
    } else {
      fault(check, ExitCode::bad_data,
            fmt::format("{} was changed: its SHA-256 is {}, and {} states {}", paths[i].string(),
                        digests[i].sha256, named.statement, wanted[i]->sha256));
    }
  }
}

}  // namespace

bool FolderContents::has_file(std::string_view name) const { return holds(files, name); }

FolderContents list_folder(const fs::path& folder, FolderCheck& check) {
  FolderContents contents;
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
      fault(check, ExitCode::bad_data, fmt::format("{} {}", at->path().string(), what));
    }
  }
  if (code) {
    const bool is_denied = code == std::errc::permission_denied;
    fault(check, is_denied ? ExitCode::refused : ExitCode::io,
          fmt::format("the folder {} cannot be listed: {}", folder.string(), code.message()));
  }
  for (std::vector<std::string>* names : {&contents.files, &contents.folders, &contents.others}) {
    std::sort(names->begin(), names->end());
  }
  return contents;
}

void check_named_files(const FolderContents& contents, const NamedFiles& named,
                       FolderCheck& check) {
  check_names(contents, named, check);
  check_digests(contents, named, check);
}

}  // namespace trireme

// Checks whether a folder holds exactly the files that a signed statement names, with their
// digests: those of a checkpoint, a dataset or an exported model.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/evidence/folder_check.h"

namespace trireme {

// FolderContents lists what a folder and its subfolders hold, as sorted paths relative to it.
struct FolderContents {
  std::vector<std::string> files;
  std::vector<std::string> folders;
  std::vector<std::string> others;  // neither files nor folders; each is a fault

  bool has_file(std::string_view name) const;
};

// Everything that is neither a file nor a folder is a fault.
FolderContents list_folder(const std::filesystem::path& folder, FolderCheck& check);

struct NamedFiles {
  const std::vector<Subject>& subjects;
  std::string statement;  // what messages call it: "the provenance"
  // Files that may be there without being named, such as that of the statement itself.
  std::vector<std::string> companions = {};
  // Files that may be there without being named, each of which is then reported by a note. A name
  // with a slash at its end stands for everything below that folder.
  std::vector<std::string> unsigned_names = {};
  int threads = 1;
};

// Adds the faults, notes, files and bytes to the check, whose folder is set.
void check_named_files(const FolderContents& contents, const NamedFiles& named, FolderCheck& check);

}  // namespace trireme

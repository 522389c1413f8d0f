#include "src/evidence/folder_subjects.h"

#include <algorithm>
#include <set>
#include <string>

#include "src/base/error.h"
#include "src/base/keys_name.h"
#include "src/base/provenance_name.h"
#include "src/evidence/file_digests.h"

namespace trireme {
namespace fs = std::filesystem;

void add_other_files(const fs::path& folder, int threads, std::vector<Subject>& subjects) {
  std::set<std::string> known = {std::string(kKeysFileName), std::string(kProvenanceName)};
  for (const Subject& subject : subjects) {
    known.insert(subject.name);
  }
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    if (entry.is_regular_file() && !known.contains(name)) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  std::vector<fs::path> paths;
  for (const std::string& name : names) {
    paths.push_back(folder / name);
  }
  const std::vector<FileDigest> digests = digest_files(paths, threads);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (digests[i].sha256.empty()) {
      throw IoError(digests[i].trouble);
    }
    subjects.push_back({names[i], digests[i].sha256});
  }
}

}  // namespace trireme

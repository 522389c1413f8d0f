#include <algorithm>
#include <iterator>

#include "src/base/units.h"
#include "src/evidence/digest_list.h"
#include "src/evidence/file_digests.h"
#include "src/lineage/lineage_walk.h"

namespace trireme {
namespace fs = std::filesystem;

void LineageWalk::digest_list(const fs::path& path) {
  const SignedList list = read_signed_list(path, options_.trusted);
  const std::size_t first = lineage.faults.size();
  const std::size_t item = lineage.items.size();
  add_item(0, "list", path.string());
  if (list.signers.empty()) {
    add_fault(ExitCode::refused,
              fmt::format("no key of the trust file has signed {}, or the list was changed since; "
                          "the files that it names were not read",
                          path.string()));
    end_item(item, first, "not signed by a trusted key");
    return;
  }
  for (const TrustedKey& key : list.signers) {
    lineage.items[item].facts.push_back("signed by " + name_of_key(key));
  }
  std::vector<fs::path> paths;
  std::transform(list.files.begin(), list.files.end(), std::back_inserter(paths),
                 [&](const ListedFile& file) { return path.parent_path() / file.name; });
  const std::vector<FileDigest> digests = digest_files(paths, options_.threads);
  std::int64_t same = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    lineage.bytes += digests[i].bytes;
    if (digests[i].code == ExitCode::not_found) {
      add_fault(ExitCode::not_found, fmt::format("{} is not there", paths[i].string()));
    } else if (digests[i].sha256.empty()) {
      add_fault(digests[i].code, digests[i].trouble);
    } else if (digests[i].sha256 != list.files[i].sha256) {
      add_fault(ExitCode::bad_data,
                fmt::format("{} is not the file that was signed", paths[i].string()));
    } else {
      ++same;
    }
  }
  lineage.files += same;
  end_item(item, first,
           fmt::format("{} of {} as signed", same,
                       counted(static_cast<std::int64_t>(paths.size()), "file")));
}

}  // namespace trireme

// See lineage_walk.h.
#include <algorithm>

#include "io/checkpoint/names.h"
#include "src/app/lineage_walk.h"
#include "src/evidence/file_digests.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr int kMostGenerations = 1024;  // of parents that are followed

}  // namespace

// Returns the folder of the parent, if it is there with the digest that the child states: beside
// the child, or where it was. A folder of that name with another content is a fault.
std::optional<fs::path> LineageWalk::find_parent(const Material& material, const fs::path& folder) {
  const fs::path stated = place_of(material);
  const fs::path beside = folder.parent_path() / stated.parent_path().filename();
  std::optional<fs::path> other;
  for (const fs::path& candidate : {beside, stated.parent_path()}) {
    std::error_code code;
    if (fs::is_regular_file(fs::symlink_status(candidate / kManifestName, code))) {
      if (digest_file(candidate / kManifestName).sha256 == material.sha256) {
        return candidate;
      }
      other = other ? other : candidate;
    }
  }
  if (!other) {
    return std::nullopt;
  }
  // A run that goes back saves a step anew, which is no damage: then the new one is signed.
  const FolderCheck check =
      check_folder(*other, {options_.trusted, options_.threads, {std::string(kPinnedName)}});
  if (!check.faults.empty()) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} was changed: it is not the checkpoint from which {} was made",
                          (*other / kManifestName).string(), folder.string()));
  }
  return std::nullopt;
}

void LineageWalk::parent(const std::vector<SignedStatement>& statements, std::size_t number,
                         const fs::path& folder, int depth) {
  const Material& material = *statements[number].provenance.find("parent");
  const auto [known, is_new] = parents_.try_emplace(material.uri + " " + material.sha256);
  if (!is_new) {  // another checkpoint has the same parent
    if (known->second) {
      check_ancestors(statements, number, *known->second);
    }
    return;
  }
  if (material.sha256.empty()) {
    add_item(depth, "parent", material.uri).code = ExitCode::not_found;
    add_fault(ExitCode::not_found,
              fmt::format("{} was made from a copy in the memory of the nodes ({}), of which "
                          "nothing is signed: its lineage cannot be followed further",
                          folder.string(), material.uri));
    return;
  }
  if (depth > kMostGenerations) {
    add_item(depth, "parent", material.uri).code = ExitCode::not_found;
    add_fault(ExitCode::not_found,
              fmt::format("the parent {} of {} was not checked, because it is more than {} "
                          "generations away: verify it by itself",
                          material.uri, folder.string(), kMostGenerations));
    return;
  }
  const std::size_t first = lineage.faults.size();
  if (const std::optional<fs::path> found = find_parent(material, folder)) {
    known->second = found;
    step(*found, depth, "parent");
    check_ancestors(statements, number, *found);
    return;
  }
  const fs::path path = place_of(material).parent_path();
  const bool is_known = number + 1 < statements.size();
  if (first == lineage.faults.size()) {
    add_fault(ExitCode::not_found,
              fmt::format("the parent {} is gone, so that its files were not checked{}",
                          path.string(), is_known ? "" : "; nor is its provenance here"));
  }
  const std::size_t item = lineage.items.size();
  add_item(depth, "parent", path.string());
  end_item(item, first, is_known ? "its files are gone, its provenance is here" : "gone");
  if (is_known) {
    lineage.items[item].facts = facts_of(statements[number + 1]);
    materials(statements, number + 1, folder, depth + 1);
  }
}

// The lines about the ancestors are copies of the parent's lines.
void LineageWalk::check_ancestors(const std::vector<SignedStatement>& statements,
                                  std::size_t number, const fs::path& parent) {
  const std::string stated = detail_of(statements[number].provenance, "lineage");
  if (stated == kLineageUnreadable && statements.size() == number + 1) {
    add_fault(
        ExitCode::not_found,
        fmt::format("a run could not read {} when it resumed from there: its checkpoints lack "
                    "the lines about their ancestors, as they state",
                    (parent / kProvenanceName).string()));
    return;
  }
  const auto bundle = bundles_.find(fs::weakly_canonical(parent).string());
  if (bundle == bundles_.end()) {
    return;
  }
  const std::size_t first = number + 1;
  const std::size_t wanted = std::min(bundle->second.size(), kMostAncestors - number);
  bool is_same = statements.size() - first == wanted;
  for (std::size_t i = 0; is_same && i < wanted; ++i) {
    is_same = statements[first + i].line == bundle->second[i].line;
  }
  if (!is_same) {
    add_fault(ExitCode::bad_data,
              fmt::format("a checkpoint made from {} has other lines about its ancestors than {}: "
                          "lines were removed or added",
                          parent.string(), (parent / kProvenanceName).string()));
  }
}

}  // namespace trireme

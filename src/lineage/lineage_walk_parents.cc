// See lineage_walk.h.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/verify.h"
#include "src/base/units.h"
#include "src/evidence/file_digests.h"
#include "src/lineage/lineage_walk.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns how many lines about ancestors should follow, according to the statement, or nothing if
// an older version has signed it.
std::optional<std::size_t> ancestors_of(const SignedStatement& statement) {
  const nlohmann::json& details = *statement.provenance.details;
  const auto found = details.find(kAncestorsDetail);
  if (statement.signature.state != SignatureState::trusted || found == details.end() ||
      !found->is_number_unsigned()) {
    return std::nullopt;
  }
  return found->get<std::size_t>();
}

// Says what the statements still prove about the parent of statement `number`, whose files are
// gone.
std::string what_remains(const std::vector<SignedStatement>& statements, std::size_t number,
                         const std::string& bundle) {
  const SignedStatement& child = statements[number];
  if (number + 1 < statements.size()) {
    const bool is_trusted = statements[number + 1].signature.state == SignatureState::trusted;
    return fmt::format("line {} of {} {}", number + 2, bundle,
                       is_trusted ? "still proves which files it had, and names what they were "
                                    "made from"
                                  : "is about it, but not signed by a trusted key");
  }
  const auto only = [&](const char* why) {
    return fmt::format("{}: all that is signed of it is that its manifest had the SHA-256 {}", why,
                       child.provenance.find("parent")->sha256);
  };
  if (detail_of(child.provenance, "lineage") == kLineageUnreadable) {
    return only("its provenance could not be read when a run was resumed from it");
  }
  const std::optional<std::size_t> stated = ancestors_of(child);
  if (!stated) {
    return only("nor is its provenance here");
  }
  return only(*stated == 0 ? "it had no provenance when a run was resumed from it"
                           : "the lines about it and its ancestors are not here");
}

}  // namespace

// Each first line states how many lines follow, so that none is cut off unseen, even if the parent
// with its own lines is gone.
void LineageWalk::check_ancestor_count(const std::vector<SignedStatement>& statements,
                                       const fs::path& folder) {
  const std::optional<std::size_t> stated = ancestors_of(statements[0]);
  const std::size_t found = statements.size() - 1;
  if (stated && *stated != found) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} has {} about ancestors, but its first line states that there are {}: "
                          "lines were {}",
                          (folder / kProvenanceName).string(),
                          counted(static_cast<std::int64_t>(found), "line"), *stated,
                          found < *stated ? "removed at the end" : "added"));
  }
}

// Returns the folder of the parent, if it is there with the digest that the child states: beside
// the child, or where it was. A folder of that name with another content is a fault.
std::optional<fs::path> LineageWalk::find_parent(const Material& material, const fs::path& folder) {
  const fs::path stated = place_of(material);
  const fs::path beside = folder.parent_path() / stated.parent_path().filename();
  std::optional<fs::path> other;
  for (const fs::path& candidate : {beside, stated.parent_path()}) {
    std::error_code code;
    if (fs::is_regular_file(fs::symlink_status(candidate / kManifestName, code))) {
      const FileDigest digest = digest_file(candidate / kManifestName);
      if (digest.sha256 == material.sha256) {
        return candidate;
      }
      other = other || digest.code == ExitCode::not_found ? other : candidate;
    }
  }
  if (!other) {
    return std::nullopt;
  }
  // A run that goes back saves a step anew, which is no damage: then the new one is signed.
  const std::optional<FolderCheck> check = check_step(*other);
  if (check && !check->faults.empty()) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} was changed: it is not the checkpoint from which {} was made",
                          (*other / kManifestName).string(), folder.string()));
  }
  return std::nullopt;
}

void LineageWalk::parent(const Statements& statements, std::size_t number, const fs::path& folder,
                         int depth) {
  const Material& material = *(*statements)[number].provenance.find("parent");
  const auto [known, is_new] = parents_.try_emplace(material.uri + " " + material.sha256);
  if (!is_new) {  // another checkpoint has the same parent
    if (known->second) {
      check_ancestors(*statements, number, *known->second);
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
  if (is_too_far(material, depth)) {
    return;
  }
  const std::size_t first = lineage.faults.size();
  const std::optional<fs::path> found = find_parent(material, folder);
  if (found && visit_step(*found, depth, "parent")) {
    known->second = found;
    check_ancestors(*statements, number, *found);
    return;
  }
  gone_parent(statements, number, {folder, first, depth});
}

// Follows the lines about a parent whose files are not there.
void LineageWalk::gone_parent(const Statements& statements, std::size_t number, const Gone& gone) {
  const fs::path path = place_of(*(*statements)[number].provenance.find("parent")).parent_path();
  const bool is_known = number + 1 < statements->size();
  if (gone.first_fault == lineage.faults.size()) {
    add_fault(
        ExitCode::not_found,
        fmt::format("the parent {} is gone, so that its files were not checked; {}", path.string(),
                    what_remains(*statements, number, (gone.child / kProvenanceName).string())));
  }
  const std::size_t item = lineage.items.size();
  add_item(gone.depth, "parent", path.string());
  end_item(item, gone.first_fault,
           is_known ? "its files are gone, its provenance is here" : "gone");
  if (is_known) {
    lineage.items[item].facts = facts_of((*statements)[number + 1]);
    materials(statements, number + 1, gone.child, gone.depth + 1);
  }
}

// Compares the shards of a step that nobody has signed with the digests in its manifest.
void LineageWalk::check_shards(const fs::path& path) {
  try {
    const StepFolder found = inspect_step(path);
    if (found.unreadable || !found.manifest) {
      add_fault(found.unreadable ? ExitCode::refused : ExitCode::bad_data, found.problem);
      return;
    }
    const std::vector<std::string> damage = verify_step(path, *found.manifest);
    for (const std::string& line : damage) {
      add_fault(ExitCode::bad_data, fmt::format("{}: {}", path.string(), line));
    }
    lineage.bytes += found.manifest->bytes();
    lineage.files += damage.empty() ? std::ssize(found.manifest->shards) : 0;
  } catch (const Error& error) {
    add_fault(error.exit_code(), error.what());
  }
}

// The model whose weights a run has taken (its base) or from whose probabilities it has learned
// (its teacher), or that a command has pruned: a checkpoint of another run or of a command, which
// need not be signed.
void LineageWalk::other_model(const Material& material, int depth) {
  if (is_too_far(material, depth)) {
    return;
  }
  const fs::path manifest = place_of(material);
  const fs::path folder = manifest.parent_path();
  std::error_code code;
  const FileDigest digest = fs::exists(manifest, code) ? digest_file(manifest) : FileDigest{};
  const bool is_same = digest.sha256 == material.sha256;
  if (is_same && fs::exists(fs::symlink_status(folder / kProvenanceName, code))) {
    (void)visit_step(folder, depth, material.name);
    return;
  }
  const std::size_t first = lineage.faults.size();
  const std::size_t item = lineage.items.size();
  add_item(depth, material.name, folder.string());
  if (is_same) {
    check_shards(folder);
    add_unsigned(
        fmt::format("the {} {} is not signed: it has no {}, so that what it was made from "
                    "is unknown",
                    material.name, folder.string(), kProvenanceName));
  } else if (digest.sha256.empty() && digest.code != ExitCode::ok) {
    add_fault(digest.code, digest.trouble);
  } else if (digest.sha256.empty()) {
    add_fault(ExitCode::not_found,
              fmt::format("the {} {} is gone: it was not checked", material.name, folder.string()));
  } else {
    add_fault(ExitCode::bad_data,
              fmt::format("the {} {} was changed: its manifest has the SHA-256 {}, and the "
                          "provenance states {}",
                          material.name, folder.string(), digest.sha256, material.sha256));
  }
  end_item(item, first, is_same ? "not signed; its manifest is as stated" : "");
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
  const auto bundle = bundles_.find(without_links(parent).string());
  if (bundle == bundles_.end()) {
    return;
  }
  const std::size_t first = number + 1;
  const std::size_t found = statements.size() - first;
  const std::size_t wanted = std::min(bundle->second->size(), kMostAncestors - number);
  // check_ancestor_count() compares the number where it is stated.
  bool is_same = ancestors_of(statements[0]) ? found <= wanted : found == wanted;
  for (std::size_t i = 0; is_same && i < found; ++i) {
    is_same = statements[first + i].line == (*bundle->second)[i].line;
  }
  if (!is_same) {
    add_fault(ExitCode::bad_data,
              fmt::format("a checkpoint made from {} has other lines about its ancestors than {}: "
                          "lines were removed or added",
                          parent.string(), (parent / kProvenanceName).string()));
  }
}

}  // namespace trireme

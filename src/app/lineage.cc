#include "src/app/lineage.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "io/checkpoint/folder_entries.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "io/data/dataset_manifest.h"
#include "src/app/lineage_walk.h"
#include "src/base/units.h"
#include "src/evidence/file_digests.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// From the code that says least to the one that says most.
constexpr std::array kSeverity = {ExitCode::ok, ExitCode::not_found, ExitCode::io,
                                  ExitCode::refused, ExitCode::bad_data};

constexpr int kMostGenerations = 1024;  // of parents that are followed

constexpr std::size_t kMostFactBytes = 200;  // of a list of hosts, for example

std::size_t severity_of(ExitCode code) {
  const auto at = std::find(kSeverity.begin(), kSeverity.end(), code);
  return static_cast<std::size_t>(at - kSeverity.begin());
}

std::string text_at(const nlohmann::json& object, const char* name) {
  if (!object.contains(name)) {
    return "";
  }
  return object[name].is_string() ? object[name].get<std::string>() : object[name].dump();
}

// Returns the absolute path without "." and a slash at the end, so that its last name is that of
// the folder. Only the file system knows what ".." means after a symbolic link.
fs::path plain_path(const fs::path& path) {
  const fs::path absolute = fs::absolute(path);
  const bool goes_up = std::find(absolute.begin(), absolute.end(), "..") != absolute.end();
  const fs::path plain = goes_up ? fs::weakly_canonical(absolute) : absolute.lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

bool is_signed_or_step(const fs::path& folder) {
  std::error_code code;
  return parse_step_folder_name(folder.filename().string()) ||
         fs::exists(fs::symlink_status(folder / kManifestName, code)) ||
         fs::exists(fs::symlink_status(folder / kProvenanceName, code));
}

}  // namespace

std::vector<std::string> facts_of(const SignedStatement& statement) {
  const Provenance& provenance = statement.provenance;
  const nlohmann::json& details = *provenance.details;
  std::vector<std::string> facts;
  const auto add = [&](const char* title, const std::string& value) {
    if (!value.empty()) {
      const bool is_long = value.size() > kMostFactBytes;
      facts.push_back(
          fmt::format("{} {}{}", title, value.substr(0, kMostFactBytes), is_long ? " ..." : ""));
    }
  };
  add("signed by", statement.signature.signer);
  add("started", provenance.started);
  add("finished", provenance.finished);
  add("run", text_at(details, "run"));
  add("hosts", text_at(details, "hosts"));
  add("ranks", text_at(details, "ranks"));
  add("job", text_at(details, "job"));
  return facts;
}

LineageItem& LineageWalk::add_item(int depth, const std::string& role, const std::string& place) {
  lineage.items.push_back({depth, role, place, "", {}, ExitCode::ok});
  return lineage.items.back();
}

void LineageWalk::add_fault(ExitCode code, const std::string& what) {
  lineage.faults.push_back({code, what});
}

// Gives an item the worst of the faults from `first_fault` on.
void LineageWalk::end_item(std::size_t item, std::size_t first_fault, const std::string& summary) {
  LineageItem& ended = lineage.items[item];
  for (std::size_t i = first_fault; i < lineage.faults.size(); ++i) {
    if (severity_of(lineage.faults[i].code) > severity_of(ended.code)) {
      ended.code = lineage.faults[i].code;
    }
  }
  ended.summary = summary;
}

void LineageWalk::take(const FolderCheck& check) {
  lineage.faults.insert(lineage.faults.end(), check.faults.begin(), check.faults.end());
  lineage.notes.insert(lineage.notes.end(), check.notes.begin(), check.notes.end());
  lineage.files += check.files;
  lineage.bytes += check.bytes;
}

// Returns where a material is now, or "" if its URI is not that of a file.
fs::path LineageWalk::place_of(const Material& material) {
  const std::string stated = path_of_uri(material.uri);
  for (std::size_t i = 0; i < options_.moved.size() && !stated.empty(); ++i) {
    const auto& [from, to] = options_.moved[i];
    if (stated == from || stated.starts_with(from + "/")) {
      used_moves_.insert(i);
      return to + stated.substr(from.size());
    }
  }
  return stated;
}

void LineageWalk::note_unused_moves() {
  for (std::size_t i = 0; i < options_.moved.size(); ++i) {
    if (!used_moves_.contains(i)) {
      const auto& [from, to] = options_.moved[i];
      lineage.notes.push_back(
          fmt::format("--moved {}={}: no statement names a place below {}", from, to, from));
    }
  }
}

// Reports what is in a folder of checkpoints and no step, unless a run writes it there.
void LineageWalk::stray(const fs::path& path) {
  const std::string name = path.filename().string();
  const fs::file_status status = fs::symlink_status(path);
  const auto transient = parse_transient_name(name);
  const bool is_own = name == kLatestName || name == kGenerationName || name == kLockName;
  if ((is_own && fs::is_regular_file(status)) || is_draft(path)) {
    return;
  }
  if (!transient || !fs::is_directory(status)) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} was added: it is no step of this folder", path.string()));
  } else if (transient->kind == TransientName::Kind::replaced) {
    add_fault(ExitCode::refused,
              fmt::format("{} was left by an interrupted save, and the next start of the run may "
                          "make it step {}: it was not checked",
                          path.string(), transient->step));
  } else {
    lineage.notes.push_back(fmt::format(
        "{} is a save or a deletion that has not ended: it was not checked", path.string()));
  }
}

void LineageWalk::steps_of(const fs::path& folder) {
  std::vector<fs::path> steps;
  std::vector<fs::path> strays;
  for (const fs::path& path : folder_entries(folder)) {
    (parse_step_folder_name(path.filename().string()) ? steps : strays).push_back(path);
  }
  std::sort(steps.begin(), steps.end());
  std::sort(strays.begin(), strays.end());
  if (steps.empty()) {
    throw no_checkpoint_in(folder);
  }
  std::for_each(strays.begin(), strays.end(), [&](const fs::path& path) { stray(path); });
  for (const fs::path& path : steps) {
    if (fs::is_symlink(fs::symlink_status(path))) {
      add_item(0, "checkpoint", path.string()).code = ExitCode::bad_data;
      add_fault(ExitCode::bad_data,
                fmt::format("{} is a symbolic link: a step of this folder was replaced by what is "
                            "elsewhere",
                            path.string()));
    } else {
      step(path, 0, "checkpoint");
    }
  }
}

void LineageWalk::step(const fs::path& path, int depth, const std::string& role) {
  const std::string key = fs::weakly_canonical(path).string();
  if (!seen_.insert("folder:" + key).second) {
    add_item(depth, role, path.string()).summary = "see above";
    return;
  }
  const std::size_t item = lineage.items.size();
  const std::size_t first = lineage.faults.size();
  add_item(depth, role, path.string());
  const FolderCheck check =
      check_folder(path, {options_.trusted, options_.threads, {std::string(kPinnedName)}});
  take(check);
  if (check.statements.empty()) {
    end_item(item, first, "");
    return;
  }
  bundles_[key] = check.statements;
  const Provenance& own = check.statements[0].provenance;
  const auto number = parse_step_folder_name(path.filename().string());
  const std::string stated = text_at(*own.details, "step");
  if (own.build_type != kTrainBuildType) {
    add_fault(ExitCode::bad_data,
              fmt::format("{}: the provenance is not that of a checkpoint", path.string()));
  } else if (number && stated != std::to_string(*number)) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} holds step {}, as its provenance states: the folder was copied or "
                          "renamed",
                          path.string(), stated));
  }
  lineage.items[item].facts = facts_of(check.statements[0]);
  end_item(
      item, first,
      fmt::format("{} as signed, {}", counted(check.files, "file"), format_bytes(check.bytes)));
  materials(check.statements, 0, path, depth + 1);
}

void LineageWalk::materials(const std::vector<SignedStatement>& statements, std::size_t number,
                            const fs::path& folder, int depth) {
  const Provenance& provenance = statements[number].provenance;
  if (statements[number].signature.state != SignatureState::trusted) {
    LineageItem& item = add_item(depth, "materials", folder.string());
    item.code = ExitCode::refused;  // the fault is that of the signature
    item.summary = "not followed, because no trusted key has signed what they are";
    return;
  }
  std::vector<const Material*> files;
  for (const Material& material : provenance.materials) {
    if (material.name == "parent") {
      continue;  // last, since it leads on
    }
    if (material.name == "input") {
      files.push_back(&material);
    } else if (!seen_.insert(material.name + material.uri + material.sha256).second) {
      continue;
    } else if (material.name.ends_with(kProvenanceSuffix)) {
      dataset_provenance(material, depth);
    } else if (material.name.starts_with("data.")) {
      dataset_of(material, depth);
    } else if (material.name == "program") {
      program(material, depth);
    } else if (material.name == "config") {
      configuration(material, provenance, depth);
    } else {
      add_item(depth, material.name, material.uri).code = ExitCode::not_found;
      add_fault(ExitCode::not_found,
                fmt::format("the provenance names '{}' ({}), which this version cannot check",
                            material.name, material.uri));
    }
  }
  if (!files.empty()) {
    inputs(files, depth);
  }
  if (provenance.find("parent") != nullptr) {
    parent(statements, number, folder, depth);
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
  const std::string stated = text_at(*statements[number].provenance.details, "lineage");
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

ExitCode Lineage::code() const {
  ExitCode worst = ExitCode::ok;
  for (const EvidenceFault& fault : faults) {
    worst = severity_of(fault.code) > severity_of(worst) ? fault.code : worst;
  }
  return worst;
}

Lineage walk_lineage(const fs::path& what, LineageOptions options) {
  const fs::path folder = plain_path(what);
  LineageWalk walk(std::move(options));
  if (!fs::is_directory(folder)) {
    throw NotFound(fmt::format(
        "{} is not a folder: name a run, a checkpoint, a folder of checkpoints or a dataset",
        what.string()));
  }
  // A folder `checkpoints` that somebody has put into a step or a dataset must not hide it.
  std::error_code code;
  if (is_dataset_folder(folder)) {
    walk.dataset(folder, 0, "dataset");
  } else if (is_signed_or_step(folder)) {
    walk.step(folder, 0, "checkpoint");
  } else if (fs::is_directory(folder / "checkpoints", code)) {
    walk.steps_of(folder / "checkpoints");
  } else if (is_step_folder(folder)) {
    walk.step(folder, 0, "checkpoint");
  } else {
    walk.steps_of(folder);
  }
  walk.note_unused_moves();
  return std::move(walk.lineage);
}

}  // namespace trireme

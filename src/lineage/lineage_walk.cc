#include "src/lineage/lineage_walk.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "src/lineage/energy_fact.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Exit codes in ascending order of severity.
constexpr std::array kSeverity = {ExitCode::ok, ExitCode::not_found, ExitCode::io,
                                  ExitCode::refused, ExitCode::bad_data};

constexpr std::size_t kMostFactBytes = 200;  // of a list of hosts, for example

std::size_t severity_of(ExitCode code) {
  const auto at = std::find(kSeverity.begin(), kSeverity.end(), code);
  return static_cast<std::size_t>(at - kSeverity.begin());
}

}  // namespace

ExitCode worse_of(ExitCode one, ExitCode other) {
  return severity_of(other) > severity_of(one) ? other : one;
}

std::string detail_of(const Provenance& provenance, const char* name) {
  const nlohmann::json& details = *provenance.details;
  if (!details.contains(name)) {
    return "";
  }
  return details[name].is_string() ? details[name].get<std::string>() : details[name].dump();
}

fs::path without_links(const fs::path& path) {
  std::error_code code;
  const fs::path real = fs::weakly_canonical(path, code);
  return code ? fs::absolute(path).lexically_normal() : real;
}

std::vector<std::string> facts_of(const SignedStatement& statement) {
  const Provenance& provenance = statement.provenance;
  std::vector<std::string> facts;
  const auto add = [&](const char* title, const std::string& value) {
    if (!value.empty()) {
      const bool is_long = value.size() > kMostFactBytes;
      facts.push_back(
          fmt::format("{} {}{}", title, value.substr(0, kMostFactBytes), is_long ? " ..." : ""));
    }
  };
  for (const std::string& signer : statement.signature.signers) {
    add("signed by", signer);
  }
  add("started", provenance.started);
  add("finished", provenance.finished);
  add("run", detail_of(provenance, "run"));
  add("hosts", detail_of(provenance, "hosts"));
  add("ranks", detail_of(provenance, "ranks"));
  add("job", detail_of(provenance, "job"));
  add("label", detail_of(provenance, "label"));
  add("energy", energy_fact(provenance));
  return facts;
}

LineageItem& LineageWalk::add_item(int depth, const std::string& role, const std::string& place) {
  lineage.items.push_back({depth, role, place, "", {}, ExitCode::ok});
  return lineage.items.back();
}

void LineageWalk::add_fault(ExitCode code, const std::string& what) {
  lineage.faults.push_back({code, what});
}

// Adds a fault for a folder that has the manifest that is stated, but no provenance.
void LineageWalk::add_unsigned(const std::string& what) {
  lineage.faults.push_back({ExitCode::not_found, what, true});
}

// Gives an item the worst of the faults from `first_fault` on.
void LineageWalk::end_item(std::size_t item, std::size_t first_fault, const std::string& summary) {
  LineageItem& ended = lineage.items[item];
  for (std::size_t i = first_fault; i < lineage.faults.size(); ++i) {
    ended.code = worse_of(ended.code, lineage.faults[i].code);
  }
  const auto since = lineage.faults.begin() + static_cast<std::ptrdiff_t>(first_fault);
  ended.is_unsigned = ended.code == ExitCode::not_found &&
                      std::all_of(since, lineage.faults.end(),
                                  [](const EvidenceFault& fault) { return fault.is_unsigned; });
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
  return place_now(path_of_uri(material.uri));
}

// Returns the present path of what a statement says lies at `stated`.
fs::path LineageWalk::place_now(const std::string& stated) {
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

// Follows what the statement names before anything that is on the page after it.
void LineageWalk::materials(Statements statements, std::size_t number, const fs::path& folder,
                            int depth) {
  if ((*statements)[number].signature.state != SignatureState::trusted) {
    LineageItem& item = add_item(depth, "materials", folder.string());
    item.code = ExitCode::refused;  // the fault is that of the signature
    item.summary = "not followed, because no trusted key has signed what they are";
    return;
  }
  branches_.push_back({std::move(statements), number, folder, depth});
}

// Each branch ends before the one below it goes on. No function calls itself: a statement may lead
// to another one a thousand times.
void LineageWalk::follow_branches() {
  while (!branches_.empty()) {
    const std::size_t count = branches_.size();
    Branch branch = branches_.back();
    const bool goes_on = follow_next(branch);
    // What it has added lies above it.
    if (goes_on) {
      branches_[count - 1].next = branch.next;
    } else {
      branches_.erase(branches_.begin() + static_cast<std::ptrdiff_t>(count) - 1);
    }
  }
}

// Follows the next material of a statement; after them all, the input files at once, and the parent
// last. Returns whether there is more.
bool LineageWalk::follow_next(Branch& branch) {
  const Provenance& provenance = (*branch.statements)[branch.number].provenance;
  while (branch.next < provenance.materials.size()) {
    const Material& material = provenance.materials[branch.next++];
    if (material.name != "parent" && material.name != kInputMaterial &&
        seen_.insert(material.name + material.uri + material.sha256).second) {
      follow(material, provenance, branch.depth);
      return true;
    }
  }
  std::vector<const Material*> files;
  for (const Material& material : provenance.materials) {
    if (material.name == kInputMaterial) {
      files.push_back(&material);
    }
  }
  if (!files.empty()) {
    inputs(files, branch.depth);
  }
  if (provenance.find("parent") != nullptr) {
    parent(branch.statements, branch.number, branch.folder, branch.depth);
  }
  return false;
}

void LineageWalk::follow(const Material& material, const Provenance& provenance, int depth) {
  if (material.name.ends_with(kProvenanceSuffix)) {
    dataset_provenance(material, depth);
  } else if (material.name.starts_with("data.")) {
    dataset_of(material, depth);
  } else if (material.name == kBaseMaterial || material.name == "teacher") {
    other_model(material, depth);
  } else if (material.name == "program") {
    program(material, depth);
  } else if (material.name == "sbom") {
    bill(material, depth);
  } else if (material.name == "config") {
    configuration(material, provenance, depth);
  } else {
    add_item(depth, material.name, material.uri).code = ExitCode::not_found;
    add_fault(ExitCode::not_found,
              fmt::format("the provenance names '{}' ({}), which this version cannot check",
                          material.name, material.uri));
  }
}

// Reports a material that is too many generations away, if it is.
bool LineageWalk::is_too_far(const Material& material, int depth) {
  constexpr int kMostGenerations = 1024;  // of what is followed
  if (depth <= kMostGenerations) {
    return false;
  }
  add_item(depth, material.name, material.uri).code = ExitCode::not_found;
  add_fault(ExitCode::not_found,
            fmt::format("the {} {} was not checked, because it is more than {} generations away: "
                        "verify it by itself",
                        material.name, material.uri, kMostGenerations));
  return true;
}

}  // namespace trireme

// Checks whether several people have agreed to the export of a checkpoint (src/policy/release.h).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/store.h"
#include "src/app/command/audit_trail.h"
#include "src/evidence/envelope.h"
#include "src/policy/access.h"
#include "src/policy/release.h"

namespace trireme {

inline constexpr std::int64_t kMostReleaseBytes = 1 << 20;

// Returns a label as releasers read it; "(none)" without one.
std::string label_for_releasers(const std::optional<Label>& label);

// Returns the payload of the envelope. Throws DataError that names `origin` if it is no release.
Release release_in(const Envelope& envelope, const std::string& origin);

// The files of --release: one for the checkpoint that is exported, and one for the checkpoint
// beside which it was trained, if it holds adapters or has frozen modules.
using ReleaseFiles = std::vector<std::filesystem::path>;

// Throws DataError or NotFound if the policy may ask for a release and one of the files is none, or
// if the releasers' keys cannot be read; PolicyError if these are too few. Called before a
// checkpoint is looked at, which is not to blame for that.
void check_release_files(const Access& access, const ReleaseFiles& files);

// How a checkpoint was released for its export. Both fields are empty if the policy asks for no
// release of it.
struct ReleaseUse {
  std::string signers;  // the names of their keys, for messages and the audit log
  // The place that the release names, if the checkpoint lies elsewhere: a copy, or one that was
  // moved since.
  std::string other_place;
};

// Throws PolicyError unless the label of a checkpoint needs no release by the policy, or as many
// releasers have signed one for its manifest and its label as the policy asks for. files: of the
// releases; empty if none was given.
ReleaseUse check_release(const Access& access, const Manifest& manifest,
                         const std::filesystem::path& step_folder, const ReleaseFiles& files);

// How the checkpoints that a command has opened were released, by their folders.
using ReleaseUses = std::map<std::filesystem::path, ReleaseUse>;

// Returns the options with a check, before a checkpoint is opened, whether it may be exported: by
// the caller's role and, if the policy asks for it, one of the releases. `access` and `uses`
// outlive them.
KeyOptions with_export(KeyOptions options, const Access& access, ReleaseFiles releases,
                       ReleaseUses& uses);

// Records checkpoint.exported in the audit log: that a step was written in plain to `out`. Prints a
// note to stderr if the release names another place.
void note_export(AuditTrail& audit, const StepFolder& step, const ReleaseUse& use,
                 const std::filesystem::path& out, std::string_view format);

}  // namespace trireme

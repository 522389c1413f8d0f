// Checks whether several people have agreed to the export of a checkpoint (src/policy/release.h).
#pragma once

#include <filesystem>
#include <string>

#include "io/checkpoint/step_keys.h"
#include "src/evidence/envelope.h"
#include "src/policy/access.h"
#include "src/policy/release.h"

namespace trireme {

inline constexpr std::int64_t kMostReleaseBytes = 1 << 20;

// Returns the payload of the envelope. Throws DataError that names `origin` if it is no release.
Release release_in(const Envelope& envelope, const std::string& origin);

// Throws DataError or NotFound if the policy may ask for a release and the file, unless its name is
// empty, is none. Called before a checkpoint is looked at, which is not to blame for that.
void check_release_file(const Access& access, const std::filesystem::path& file);

// Throws PolicyError unless the label of a checkpoint needs no release by the policy, or as many
// releasers have signed one for its manifest as the policy asks for. file: of the release; empty if
// none was given. Returns who has signed, as text.
std::string check_release(const Access& access, const Manifest& manifest,
                          const std::filesystem::path& step_folder,
                          const std::filesystem::path& file);

// Returns the options with a check, before a checkpoint is opened, whether it may be exported: by
// the caller's role and, if the policy asks for it, the release in the file. `access` outlives
// them.
KeyOptions with_export(KeyOptions options, const Access& access, std::filesystem::path release);

}  // namespace trireme

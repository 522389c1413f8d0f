// Resuming: all ranks load the same step, the newest one that every rank finds good.
//
// Rank 0 looks for candidates and sends each candidate's manifest to all; every rank loads its
// blocks, comparing digests; if any rank fails, all give the step up and try the next older one. A
// checkpoint of another model or run is no damage: that is a ConfigError, and no older step is
// tried.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/reader.h"
#include "mpi/communicator.h"

namespace trireme {

struct ResumeOptions {
  std::optional<std::int64_t> step = {};  // only this one
  ShardIo io = {};
  // Throws ConfigError if this run may not go on from that checkpoint (fingerprint.h says what
  // differs). Called on all ranks alike.
  std::function<void(const Manifest&)> accept = {};
};

struct Resumed {
  std::filesystem::path folder;
  Manifest manifest;
  std::vector<std::string> skipped;  // what was not used, and why
  LoadStats load;                    // this rank's
};

// Collective. Nothing if the folder holds no checkpoint at all; NotFound if it lacks the wanted
// step; PolicyError if a rank may not read one; DataError with all reasons if there are some and
// none is good: the run must not start from scratch by mistake. After an error the requests' views
// hold undefined bytes.
std::optional<Resumed> resume(Communicator& comm, const std::filesystem::path& folder,
                              std::span<const BlockRequest> requests,
                              const ResumeOptions& options = {});

}  // namespace trireme

// Signs exported models (src/evidence/model_signature.h) for the command `export`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "io/checkpoint/store.h"
#include "mpi/communicator.h"
#include "src/evidence/model_signature.h"

namespace trireme {

// Collective. key: a file, or the URI of a key in a token; "": none, then returns an empty
// function. Returns what writes model.sig into the folder of an export, for ExportOptions::finish;
// `out` is the final name of that folder. Rank 0 loads the key now, so that a wrong one is found
// before the work; throws what SigningKey::load() throws, and ConfigError if the key is not of
// ECDSA.
std::function<void(const std::filesystem::path& folder, const StepFolder& step)> model_signer(
    const std::string& key, const std::filesystem::path& out, Communicator& world);

}  // namespace trireme

#include "io/checkpoint/step_keys.h"

#include <utility>

#include "io/checkpoint/keys_file.h"
#include "io/checkpoint/shared_secret.h"
#include "mpi/agreement.h"
#include "mpi/self_communicator.h"
#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Says for which contents the run key is wrapped, instead of a manifest's seal.
constexpr std::string_view kRunContents = "run";

// Throws PolicyError on all ranks if any of them has a refusal.
void refuse_together(Communicator& comm, const std::string& refusal) {
  const std::string all = gather_faults(comm, refusal);
  if (!all.empty()) {
    throw PolicyError(refusal.empty() ? all : refusal);
  }
}

// Returns the text of keys.json, or "" after setting `damage` or `refusal`.
std::string read_keys(const fs::path& folder, const Manifest& manifest, std::string& damage,
                      std::string& refusal) {
  try {
    return to_text(read_keys_file(folder, manifest));
  } catch (const PolicyError& error) {
    refusal = error.what();
  } catch (const Error& error) {
    damage = error.what();
  }
  return "";
}

}  // namespace

StepKeys::StepKeys(Communicator& comm, KeyOptions options)
    : comm_(comm), options_(std::move(options)) {
  // Rank 0 first, so that what is wrong everywhere keeps its class and is said once.
  run_on_root(comm_, [&] {
    ring_ = KeyRing(options_.uris);
    return std::string();
  });
  std::string fault;
  if (comm_.rank() != 0 && is_first()) {
    try {
      ring_ = KeyRing(options_.uris);
    } catch (const Error& error) {
      fault = error.what();
    }
  }
  refuse_together(comm_, fault);
}

bool StepKeys::is_first() const { return first_on_host(comm_, comm_.rank()) == comm_.rank(); }

// Returns the data key in the text of keys.json, on all ranks, or nothing after setting `damage` on
// all ranks alike.
std::optional<DataKey> StepKeys::open_wrapped(const std::string& text, const std::string& seal,
                                              const std::string& origin, std::string& damage) {
  std::optional<Secret> secret;
  std::string refusal;
  if (is_first()) {
    try {
      const WrappedKeys wrapped = parse_wrapped_keys(text, origin);
      const DataKey key = ring_.unwrap(wrapped, origin);
      check_wrapped_keys(wrapped, key, seal, origin);
      secret.emplace(key.bytes().view());
    } catch (const DataError& error) {
      damage = error.what();
    } catch (const Error& error) {
      refusal = error.what();
    }
  }
  refuse_together(comm_, refusal);
  damage = gather_faults(comm_, damage);
  if (!damage.empty()) {
    return std::nullopt;
  }
  return DataKey(share_on_host(comm_, std::move(secret), DataKey::kBytes));
}

std::string StepKeys::unlock(Manifest& manifest, const fs::path& folder, int root) {
  if (manifest.data_key.empty()) {
    if (encrypts() && !options_.accept_plain) {
      throw PolicyError(fmt::format(
          "{}: the checkpoint is not encrypted, but encryption.keys asks for encryption: if it is "
          "yours, set encryption.accept_plain=true once",
          folder.string()));
    }
    return "";
  }
  std::string damage;
  std::string refusal;
  std::string text;
  if (comm_.rank() == root) {
    text = read_keys(folder, manifest, damage, refusal);
  }
  refuse_together(comm_, refusal);
  damage = gather_faults(comm_, damage);
  if (!damage.empty()) {
    return damage;
  }
  // The root has read the manifest; the others have a copy, which may lack fields that this version
  // does not know.
  const std::string origin = (folder / kKeysFileName).string();
  const std::string seal = broadcast_text(comm_, manifest.seal, root);
  const std::string sent = broadcast_text(comm_, text, root);
  std::optional<DataKey> key = open_wrapped(sent, seal, origin, damage);
  if (!key) {
    return damage;
  }
  if (key->id() != manifest.data_key) {
    return fmt::format("{}: the key is not that of the manifest", origin);
  }
  manifest.key = std::make_shared<const DataKey>(std::move(*key));
  return "";
}

void StepKeys::prepare_to_save() {
  check(encrypts(), "there are wrapping keys");
  const std::string text = run_on_root(
      comm_, [&] { return to_text(ring_.wrap(DataKey::generate(), std::string(kRunContents))); });
  std::string damage;
  run_key_ = open_wrapped(text, std::string(kRunContents), "the key of this run", damage);
  check(run_key_.has_value(), "rank 0 has wrapped the key of this run");
}

std::shared_ptr<const SaveKey> StepKeys::next() {
  check(run_key_.has_value(), "prepare_to_save() was called");
  ++saves_;
  DataKey key = run_key_->next(saves_);
  const std::string text = run_on_root(comm_, [&] {
    try {
      return to_text(ring_.wrap(key, std::string(kRunContents)));
    } catch (const Error& error) {  // such as that of a token that has gone away
      throw PolicyError(error.what());
    }
  });
  std::vector<Recipient> recipients = parse_wrapped_keys(text, "the key of a save").recipients;
  return std::make_shared<const SaveKey>(SaveKey{std::move(key), std::move(recipients)});
}

void unlock(Manifest& manifest, const fs::path& folder, const KeyOptions& options) {
  SelfCommunicator self;
  StepKeys keys(self, options);
  if (const std::string damage = keys.unlock(manifest, folder); !damage.empty()) {
    throw DataError(damage);
  }
}

}  // namespace trireme

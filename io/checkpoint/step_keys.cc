#include "io/checkpoint/step_keys.h"

#include <utility>

#include "io/checkpoint/step_keys_file.h"
#include "mpi/agreement.h"
#include "mpi/self_communicator.h"
#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Says for which contents the run key is wrapped, instead of a manifest's seal.
constexpr std::string_view kRunContents = "run";

}  // namespace

StepKeys::StepKeys(Communicator& comm, KeyOptions options)
    : comm_(comm), options_(std::move(options)), shared_(comm, options_.uris) {}

std::string StepKeys::unlock(Manifest& manifest, const fs::path& folder, int root) {
  if (options_.admit) {
    options_.admit(manifest, folder);
  }
  if (manifest.data_key.empty()) {
    if (encrypts() && !options_.accept_plain) {
      throw PolicyError(fmt::format(
          "{}: the checkpoint is not encrypted, but encryption.keys asks for encryption, or --key: "
          "if it is yours, omit the key, or set encryption.accept_plain=true once (where no "
          "KEY=VALUE can be given, TRIREME_ENCRYPTION__ACCEPT_PLAIN=true in the environment)",
          folder.string()));
    }
    return "";
  }
  std::string damage;
  const std::string origin = (folder / kKeysFileName).string();
  std::optional<DataKey> key = shared_.open_from(
      root, [&] { return to_text(read_step_keys(folder, manifest)); }, manifest.seal, origin,
      damage);
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
  const std::string text = run_on_root(comm_, [&] {
    return to_text(shared_.ring().wrap(DataKey::generate(), std::string(kRunContents)));
  });
  std::string damage;
  run_key_ = shared_.open(text, std::string(kRunContents), "the key of this run", damage);
  check(run_key_.has_value(), "rank 0 has wrapped the key of this run");
}

std::shared_ptr<const FolderKey> StepKeys::next() {
  ++saves_;
  return derived(saves_);
}

std::shared_ptr<const FolderKey> StepKeys::only_key() {
  if (!encrypts()) {
    return nullptr;
  }
  prepare_to_save();
  return next();
}

std::shared_ptr<const FolderKey> StepKeys::derived(std::int64_t number) {
  check(run_key_.has_value(), "prepare_to_save() was called");
  DataKey key = run_key_->next(number);
  const std::string text = run_on_root(comm_, [&] {
    try {
      return to_text(shared_.ring().wrap(key, std::string(kRunContents)));
    } catch (const Error& error) {  // such as that of a token that has gone away
      throw PolicyError(error.what());
    }
  });
  std::vector<Recipient> recipients = parse_wrapped_keys(text, "a key of this run").recipients;
  return std::make_shared<const FolderKey>(FolderKey{std::move(key), std::move(recipients)});
}

void unlock(Manifest& manifest, const fs::path& folder, const KeyOptions& options) {
  SelfCommunicator self;
  StepKeys keys(self, options);
  if (const std::string damage = keys.unlock(manifest, folder); !damage.empty()) {
    throw DataError(damage);
  }
}

}  // namespace trireme

#include "io/keys/shared_keys.h"

#include <utility>

#include "io/keys/shared_secret.h"
#include "mpi/agreement.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// Throws a Failure on all ranks if any of them has a fault.
template <class Failure>
void fail_together(Communicator& comm, const std::string& fault) {
  const std::string all = gather_faults(comm, fault);
  if (!all.empty()) {
    throw Failure(fault.empty() ? all : fault);
  }
}

}  // namespace

SharedKeys::SharedKeys(Communicator& comm, const std::vector<std::string>& uris)
    : comm_(comm), is_empty_(uris.empty()) {
  // Rank 0 first, so that what is wrong everywhere keeps its class and is said once.
  run_on_root(comm_, [&] {
    ring_ = KeyRing(uris);
    return std::string();
  });
  std::string fault;
  if (comm_.rank() != 0 && is_first()) {
    try {
      ring_ = KeyRing(uris);
    } catch (const Error& error) {
      fault = error.what();
    }
  }
  fail_together<PolicyError>(comm_, fault);
}

bool SharedKeys::is_first() const { return first_on_host(comm_, comm_.rank()) == comm_.rank(); }

std::optional<DataKey> SharedKeys::open(const std::string& text, const std::string& seal,
                                        const std::string& origin, std::string& damage) {
  std::optional<Secret> secret;
  std::string refusal;
  std::string gone;  // what a token that has gone away says
  if (is_first()) {
    try {
      const WrappedKeys wrapped = parse_wrapped_keys(text, origin);
      const DataKey key = ring_.unwrap(wrapped, origin);
      check_wrapped_keys(wrapped, key, seal, origin);
      secret.emplace(key.bytes().view());
    } catch (const DataError& error) {
      damage = error.what();
    } catch (const DeviceError& error) {
      gone = error.what();
    } catch (const Error& error) {
      refusal = error.what();
    }
  }
  fail_together<PolicyError>(comm_, refusal);
  fail_together<DeviceError>(comm_, gone);
  damage = gather_faults(comm_, damage);
  if (!damage.empty()) {
    return std::nullopt;
  }
  return DataKey(share_on_host(comm_, std::move(secret), DataKey::kBytes));
}

std::optional<DataKey> SharedKeys::open_from(int root, const std::function<std::string()>& read,
                                             const std::string& seal, const std::string& origin,
                                             std::string& damage) {
  std::string refusal;
  std::string text;
  if (comm_.rank() == root) {
    try {
      text = read();
    } catch (const PolicyError& error) {
      refusal = error.what();
    } catch (const Error& error) {
      damage = error.what();
    }
  }
  fail_together<PolicyError>(comm_, refusal);
  damage = gather_faults(comm_, damage);
  if (!damage.empty()) {
    return std::nullopt;
  }
  // The root has read the manifest; the others have a copy, which may lack fields that this version
  // does not know.
  const std::string sent_seal = broadcast_text(comm_, seal, root);
  return open(broadcast_text(comm_, text, root), sent_seal, origin, damage);
}

}  // namespace trireme

// Access answers whether this process may do something with data, by the policy of the site
// (policy.h). Without a policy everything is allowed. Its decisions keep honest people from
// mistakes; who can read a file can read it with another program, so that only the permissions of
// the file system and the keys of encrypted data (docs/encryption.md) enforce anything.
//
// Commands call check() with the label from the manifest that they are about to use, before they
// read any of the data. One object per process, made before MPI starts; any thread may ask it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/policy/caller.h"
#include "src/policy/file_place.h"
#include "src/policy/policy.h"

namespace trireme {

inline constexpr std::string_view kPolicyFile = "/etc/trireme/policy.yaml";
inline constexpr std::string_view kAllowedEvent = "policy.allowed";
inline constexpr std::string_view kRefusedEvent = "policy.refused";
inline constexpr std::int64_t kMostPolicyBytes = 1 << 20;

struct Decision {
  bool allowed = true;
  std::string role;  // that allows it; empty without a policy
  std::string why;   // "the role trainer (group ml) may read up to secret below /data", or what is
                     // against it, with what to do
};

// What is asked of Access.
struct Request {
  Deed deed = Deed::read;
  Thing thing = Thing::dataset;
  std::filesystem::path path;
  std::optional<Label> label;
  // Data that cannot be read has no known label: what destroys it (erasing, keys) is judged by
  // place and role alone.
  bool label_is_unknown = false;
};

// The facts about a host that decisions depend on.
struct HostFacts {
  std::string host;        // as the kernel names it
  std::string today;       // "2026-11-26", in UTC
  std::string policy_day;  // on which the policy was written, in UTC
};

// Decides by the rules alone. A pure function.
Decision decide(const Policy& policy, const std::vector<HeldRole>& roles, const HostFacts& facts,
                const Request& request, const FilePlace& place);

class Access {
 public:
  // Records an event in the audit log.
  using Audit = std::function<void(std::string_view event, const nlohmann::ordered_json& details)>;

  // Makes an Access without a policy, which permits everything.
  Access() = default;
  // Reads the policy and asks who this is. Throws PolicyError if the policy is not one that only
  // root can change, or names groups that do not exist, and ConfigError if it is no policy.
  static Access of_this_host(const std::filesystem::path& file = kPolicyFile);

  bool has_policy() const { return policy_ != nullptr; }
  // Null without a policy.
  const Policy* policy() const { return policy_.get(); }
  const Caller& caller() const { return caller_; }
  const std::vector<HeldRole>& roles() const { return roles_; }
  // The order of classifications: that of the policy, or the default one.
  const std::vector<std::string>& classifications() const;
  // Each decision is recorded there, as policy.allowed or policy.refused.
  void record_in(Audit audit) { audit_ = std::move(audit); }

  Decision ask(const Request& request) const;
  // Records the decision. Returns why it is refused, or "".
  std::string refusal(const Request& request) const;
  // Throws PolicyError if it is refused.
  void check(const Request& request) const;

 private:
  std::unique_ptr<const Policy> policy_;  // does not move, because roles_ refers to it
  Caller caller_;
  std::vector<HeldRole> roles_;
  HostFacts facts_;
  Audit audit_;
};

// Returns what this process may do; the first call reads the policy.
using AccessSource = std::function<const Access&()>;

// Throws PolicyError with the fault unless it is "".
void throw_refusal(const std::string& fault);

}  // namespace trireme

#include "src/policy/policy.h"

#include <algorithm>

namespace trireme {
namespace {

struct RoleRight {
  std::string_view role;
  Deed deed;
  bool datasets;
  bool checkpoints;
};

constexpr std::array kRights = {
    RoleRight{"trainer", Deed::read, true, true},
    RoleRight{"trainer", Deed::write, false, true},
    RoleRight{"data_steward", Deed::read, true, false},
    RoleRight{"data_steward", Deed::write, true, false},
    RoleRight{"data_steward", Deed::export_plain, true, false},
    RoleRight{"key_custodian", Deed::keys, true, true},
    RoleRight{"auditor", Deed::read, true, true},
    RoleRight{"releaser", Deed::read, false, true},
    RoleRight{"releaser", Deed::export_plain, false, true},
};

}  // namespace

std::string_view word_of(Deed deed) {
  switch (deed) {
    case Deed::read:
      return "read";
    case Deed::write:
      return "write";
    case Deed::export_plain:
      return "export";
    case Deed::keys:
      break;
  }
  return "keys";
}

std::string_view word_of(Thing thing) { return thing == Thing::dataset ? "dataset" : "checkpoint"; }

int Policy::rank_of(std::string_view classification) const {
  const auto at = std::find(classifications.begin(), classifications.end(), classification);
  return at == classifications.end() ? -1 : static_cast<int>(at - classifications.begin());
}

bool Policy::names_accounts() const {
  return std::any_of(roles.begin(), roles.end(),
                     [](const Role& role) { return !role.accounts.empty(); });
}

bool role_allows(std::string_view role, Deed deed, Thing thing) {
  return std::any_of(kRights.begin(), kRights.end(), [&](const RoleRight& right) {
    return right.role == role && right.deed == deed &&
           (thing == Thing::dataset ? right.datasets : right.checkpoints);
  });
}

}  // namespace trireme

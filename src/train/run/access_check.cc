#include "src/train/run/access_check.h"

#include "mpi/agreement.h"
#include "src/base/error.h"

namespace trireme {

void check_on_all_ranks(const Access& access, const Request& request, Communicator& comm) {
  throw_refusal(gather_faults(comm, access.refusal(request)));
}

void check_same_policy(const Access& access, Communicator& comm) {
  const std::string own = access.has_policy() ? access.policy()->sha256 : "";
  const std::string first = broadcast_text(comm, own, 0);
  const std::string fault =
      own == first ? ""
                   : fmt::format("{} differs from that of rank 0: give all hosts of a run the same",
                                 kPolicyFile);
  throw_refusal(gather_faults(comm, fault));
}

}  // namespace trireme

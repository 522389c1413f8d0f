// Runs the cases over hosts made of threads: every rank's transport is split into that of its host
// and that of the whole group. Also compares the bits with those without hosts.
#include <tuple>

#include <gtest/gtest.h>

#include "mpi/hierarchy/hierarchical_transport.h"
#include "mpi/thread/thread_world.h"
#include "tests/mpi/collective_cases.h"

namespace trireme {
namespace {

using Hosts = std::vector<std::string>;

std::unique_ptr<Transport> split_by_host(std::unique_ptr<Transport> network) {
  const HostLayout layout = layout_of(network->members().hosts(), network->rank());
  std::unique_ptr<Transport> local = network->split_off(layout.local);
  return make_hierarchical_transport(layout.per_host() == 1 ? nullptr : std::move(local),
                                     std::move(network));
}

class OnHosts : public testing::TestWithParam<std::tuple<Hosts, CollectiveCase>> {};

TEST_P(OnHosts, Holds) {
  const auto& [hosts, test] = GetParam();
  ThreadWorld(static_cast<int>(hosts.size()), hosts).run_over(split_by_host, test.run);
}

std::string hosts_name(const testing::TestParamInfo<OnHosts::ParamType>& info) {
  std::string name = std::get<1>(info.param).name + std::string("_");
  for (const std::string& host : std::get<0>(info.param)) {
    name += host;
  }
  return name;
}

const std::vector<Hosts> kLayouts = {{"a"},
                                     {"a", "a", "b", "b"},
                                     {"a", "b", "c", "d"},
                                     {"a", "a", "a", "b", "b", "b"},
                                     {"a", "b", "a", "b"},
                                     {"a", "a", "b"},
                                     {"a", "a", "b", "b", "c", "c", "d", "d"}};

INSTANTIATE_TEST_SUITE_P(Layouts, OnHosts,
                         testing::Combine(testing::ValuesIn(kLayouts),
                                          testing::ValuesIn(all_cases())),
                         hosts_name);

// The bits of a sum do not depend on the transports that carry it.
TEST(Hierarchical, GivesTheBitsOfThePlainTree) {
  std::vector<Hosts> layouts = kLayouts;
  layouts.push_back({"a", "b", "c", "d"});
  layouts.push_back({"a", "a", "b", "b", "c", "c", "d", "d"});
  for (const Hosts& hosts : layouts) {
    const int ranks = static_cast<int>(hosts.size());
    for (const std::int64_t count : {1, 3000, 70001}) {
      const auto sum_on = [&](bool over_hosts) {
        std::vector<float> result;
        const auto body = [&](Communicator& comm) {
          std::vector<float> data;
          for (std::int64_t i = 0; i < count; ++i) {
            data.push_back(static_cast<float>(sample(comm.rank(), i)) * 1.1F);
          }
          comm.all_reduce(view_of(data), ReduceOp::sum).wait();
          if (comm.rank() == ranks - 1) {
            result = data;
          }
        };
        ThreadWorld world(ranks, hosts);
        over_hosts ? world.run_over(split_by_host, body) : world.run(body);
        return result;
      };
      EXPECT_EQ(sum_on(true), sum_on(false)) << ranks << " ranks, " << count << " elements";
    }
  }
}

}  // namespace
}  // namespace trireme

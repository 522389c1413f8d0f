// Tests what comm.require demands of the links of a run, and how links are gathered and summarized.
#include "mpi/links/required_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const GroupMembers kTwoHosts = GroupMembers::of_world(0, {"a", "a", "b", "b"});

// Returns links for all pairs of ranks: NVLink within hosts, `odd` between `odd_rank` and ranks of
// other hosts, and `between` for the rest.
std::vector<LinkBook> books(const Link& between, int odd_rank = -1, const Link& odd = {}) {
  std::vector<LinkBook> all(4);
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      Link link = kTwoHosts.host(from) == kTwoHosts.host(to) ? Link{0, 0, LinkKind::nvlink, false}
                  : from == odd_rank || to == odd_rank       ? odd
                                                             : between;
      link.from = from;
      link.to = to;
      if (from != to) {
        all[static_cast<std::size_t>(from)].links.insert({"dp", link});
      }
    }
  }
  return all;
}

const Link kGpuDirect = {0, 0, LinkKind::infiniband, true};
const Link kRoce = {0, 0, LinkKind::roce, false};
const Link kSocket = {0, 0, LinkKind::socket, false};

std::optional<LinkFault> fault(const std::vector<std::string>& required,
                               const std::vector<LinkBook>& all) {
  return find_link_fault(required, all, kTwoHosts);
}

TEST(RequiredLinks, HoldOnGoodNodes) {
  for (const char* const word : {"any", "rdma", "gpudirect", "nvlink"}) {
    EXPECT_FALSE(fault({word}, books(kGpuDirect))) << word;
  }
  EXPECT_FALSE(fault({}, books(kSocket)));
  EXPECT_FALSE(fault({"any"}, books(kSocket)));
  EXPECT_FALSE(fault({"rdma"}, books(kRoce)));
}

TEST(RequiredLinks, CannotBeCheckedForARankWithoutKnownLinks) {
  EXPECT_THAT(fault({"rdma"}, std::vector<LinkBook>(4))->text,
              HasSubstr("comm.require: rdma cannot be checked: the log of NCCL names no link of "
                        "rank 0 (host a)"));
  EXPECT_FALSE(fault({"any"}, std::vector<LinkBook>(4)));
  std::vector<LinkBook> all = books(kGpuDirect);
  for (LinkBook& book : all) {
    std::erase_if(book.links,
                  [](const GroupLink& each) { return each.link.from == 3 || each.link.to == 3; });
  }
  EXPECT_THAT(fault({"nvlink"}, all)->text, HasSubstr("names no link of rank 3 (host b)"));
  EXPECT_FALSE(
      find_link_fault({"rdma"}, std::vector<LinkBook>(1), GroupMembers::of_world(0, {"a"})));
}

TEST(RequiredLinks, AreAConfigurationErrorIfNoRankHasThem) {
  const auto found = fault({"nvlink", "rdma"}, books(kSocket));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, std::nullopt);
  EXPECT_THAT(found->text, HasSubstr("comm.require: rdma does not hold: rank 0 (host a) reaches "
                                     "rank 2 (host b) over TCP sockets (group dp, and 7 more "
                                     "links like it)"));
  EXPECT_THAT(found->text, HasSubstr("ibv_devinfo"));
  EXPECT_THAT(fault({"gpudirect"}, books(kRoce))->text,
              HasSubstr("over RoCE without GPUDirect RDMA"));
}

TEST(RequiredLinks, NameTheRankWhoseLinksAreAllUnfit) {
  const auto found = fault({"rdma"}, books(kGpuDirect, 3, kSocket));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 3);
  EXPECT_THAT(found->text, HasSubstr("no link of rank 3 (host b) is fit"));
}

TEST(RequiredLinks, NvlinkConcernsLinksWithinHostsOnly) {
  std::vector<LinkBook> all = books(kGpuDirect);
  all[1].links.insert({"tp", {1, 0, LinkKind::pcie, false}});
  EXPECT_THAT(fault({"nvlink"}, all)->text, HasSubstr("over PCIe between the GPUs (group tp)"));
  EXPECT_FALSE(fault({"gpudirect"}, all));
}

TEST(RequiredLinks, CannotBeCheckedWithoutNcclsLog) {
  std::vector<LinkBook> all = books(kGpuDirect);
  all[2].trouble = "its log is elsewhere";
  EXPECT_THAT(fault({"rdma"}, all)->text,
              HasSubstr("cannot be checked: rank 2 (host b): its log is elsewhere"));
  EXPECT_FALSE(fault({"any"}, all));
}

TEST(RequiredLinks, AcceptABookWithUnknownRanks) {
  std::vector<LinkBook> all = books(kGpuDirect);
  const std::size_t kinds = summarize(all, kTwoHosts).size();
  all[0].links.insert({"dp", {0, 1 << 30, LinkKind::socket, false}});
  EXPECT_FALSE(fault({"rdma", "nvlink"}, all));
  EXPECT_EQ(summarize(all, kTwoHosts).size(), kinds + 1);
}

TEST(LinkBook, SurvivesAsText) {
  LinkBook book = books(kGpuDirect)[0];
  book.nvls = {"dp"};
  book.notes = {"a \"note\"\n\xff"};
  book.trouble = "none";
  const LinkBook read = parse_link_book(to_text(book));
  EXPECT_EQ(read.links, book.links);
  EXPECT_EQ(read.nvls, book.nvls);
  EXPECT_EQ(read.notes.begin()->substr(0, 9), book.notes.begin()->substr(0, 9));
  for (const char* const wrong :
       {"", "{}", "[]", R"({"links": 1, "nvls": [], "notes": [], "trouble": ""})",
        R"({"links": [], "nvls": [1], "notes": [], "trouble": ""})",
        R"({"links": [{"group": "dp", "from": -1, "to": 0, "kind": "shm", "gpu_direct": false}],
            "nvls": [], "notes": [], "trouble": ""})",
        R"({"links": [{"group": "dp", "from": 1, "to": 0, "kind": "tin", "gpu_direct": false}],
            "nvls": [], "notes": [], "trouble": ""})"}) {
    EXPECT_THROW((void)parse_link_book(wrong), DataError) << wrong;
  }
}

TEST(LinkBook, IsSummarizedByKind) {
  std::vector<std::string> texts;
  for (const LinkSummary& each : summarize(books(kGpuDirect, 3, kSocket), kTwoHosts)) {
    texts.push_back(summary_text(each));
  }
  EXPECT_THAT(texts,
              ElementsAre("NVLink: 2 pairs of ranks within a host (dp)",
                          "InfiniBand with GPUDirect RDMA: 2 pairs of ranks between hosts (dp)",
                          "TCP sockets: 2 pairs of ranks between hosts (dp)"));
}

TEST(LinkBook, IsGatheredFromAllRanks) {
  ThreadWorld world(4);
  world.run([](Communicator& comm) {
    const std::vector<LinkBook> all = books(kGpuDirect);
    EXPECT_EQ(gather_link_books(all[static_cast<std::size_t>(comm.rank())], comm), all);
  });
}

}  // namespace
}  // namespace trireme

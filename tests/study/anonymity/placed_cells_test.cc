#include "src/study/anonymity/placed_cells.h"

#include <string>

#include <gtest/gtest.h>

#include "src/study/anonymity/anonymity.h"

namespace trireme {
namespace {

using Cells = std::vector<std::string_view>;

TEST(PlacedCells, RulersGiveThePlacesOfColumns) {
  const auto columns = columns_of_ruler("---- ------ -- ");
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_EQ(columns[1].begin, 5U);
  EXPECT_EQ(columns[1].end, 11U);
  EXPECT_EQ(cells_at("1.ba     n7 up", columns), Cells({"1.ba", "n7", "up"}));
  EXPECT_EQ(cells_at("  1", columns), Cells({"1", "", ""}));
  EXPECT_EQ(cells_at("       a b", columns), Cells({"", "a b", ""}));
  for (const char* line : {"", "   ", "1.batch  n7 up", "   1     n7 up down"}) {
    EXPECT_TRUE(cells_at(line, columns).empty()) << line;
  }
  for (const char* line : {"", "----  -----", "|---|---|", "--- x"}) {
    EXPECT_TRUE(columns_of_ruler(line).empty()) << line;
  }
}

TEST(PlacedCells, WordsStandBelowTheNamesOfColumns) {
  const std::vector<TableField> names = {{0, 6}, {10, 14}, {20, 28}};  // REASON, USER, NODELIST
  const std::vector<bool> wanted = {false, true, true};
  const CellsBelow left = cells_below("Not up    jane      n7", names, wanted);
  EXPECT_EQ(left.cells, Cells({"Not", "jane", "n7"}));
  EXPECT_TRUE(left.sure);
  const CellsBelow right = cells_below("   bad      me            n7 x", names, wanted);
  EXPECT_EQ(right.cells, Cells({"bad", "me", "n7"}));
  EXPECT_TRUE(right.sure);
  EXPECT_EQ(cells_below("bad       jane", names, wanted).cells, Cells({"bad", "jane", ""}));
  const CellsBelow moved = cells_below("n7         joe       down", names, {true, false, false});
  EXPECT_EQ(moved.cells, Cells({"n7", "joe", "down"}));
  EXPECT_TRUE(moved.sure);
  EXPECT_FALSE(cells_below("n7        jane       up", names, wanted).sure);
  for (const char* line : {"", "bad", "this is a sentence of words", "it is not    jane"}) {
    EXPECT_TRUE(cells_below(line, names, wanted).cells.empty()) << line;
  }
  EXPECT_TRUE(cells_below("a", {}, {}).cells.empty());
}

std::string text_without_names(const std::string& text) {
  Anonymity anonymity;
  anonymity.learn(text);
  anonymity.learn(text);
  return anonymity.apply(text);
}

constexpr const char* kTables[] = {
    // sinfo -R, sinfo -R -l and sinfo -N -l
    "REASON               USER      TIMESTAMP           NODELIST\n"
    "Not responding       adminx1   2026-11-29T10:00:00 gpu0171\n"
    "bad                  adminx2   2026-11-29T10:00:00 gpu[0173-0174]\n"
    "Kill task failed     adminx3   2026-11-29T10:00:00 gpu0175\n"
    "Node unexpectedly re adminx456 2026-11-29T10:00:00 gpu0176\n",
    "Sun Nov 29 10:00:00 2026\n"
    "REASON               USER         TIMESTAMP           STATE  NODELIST\n"
    "Not responding       adminx1(15)  2026-11-29T10:00:00 down*  gpu0171\n",
    "NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK AVAIL_FE REASON\n"
    "gpu0171        1      gpu*       down* 64     2:32:1 500000        0   (null) Not responding\n"
    "gpu0172        1      gpu*        idle 64     2:32:1 500000        0   (null) none\n"
    "gpu0173        1      gpu*       down* 64     2:32:1 500000        0   (null) Kill task x\n",
    // sacct and sacct -P
    "JobID           JobName    Account      State ExitCode        NodeList      User \n"
    "------------ ---------- ---------- ---------- -------- --------------- --------- \n"
    "1234           my train      adminx1  COMPLETED      0:0         gpu0171   adminx2 \n"
    "1234.batch        batch            CANCELLED+      0:0         gpu0172           \n"
    "1235.batch                         CANCELLED+      0:0 gpu[0174-0176,+   adminx3 \n"
    "1236                               CANCELLED+      0:0   None assigned adminx45+ \n",
    "JobID|JobName|State|ExitCode|NodeList|User\n"
    "1234|my train|CANCELLED by 1001|0:0|gpu[0171,0173]|adminx1\n"
    "1234.batch|batch|COMPLETED|0:0|gpu0174|\n",
    // squeue -l
    "             JOBID PARTITION     NAME     USER    STATE       TIME  NODES NODELIST(REASON)\n"
    "              1234       gpu    train  adminx1  RUNNING    1:00:00      2 gpu[0171-0172]\n"
    "              1235       gpu my train  adminx2  RUNNING    1:00:00      1 gpu0173\n"
    "              1236       gpu    train  adminx3  PENDING       0:00      2 (Nodes required "
    "for\n",
    // ps aux
    "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
    "adminx1     1234  0.0  0.0 168000 13000 ?        Ss   Nov01   0:01 python x --config a b\n"
    "adminx+     1235  0.0  0.0 168000 13000 ?        Ss   Nov01   0:01 python y\n"};

TEST(PlacedCells, TablesOfSlurmHaveNoNames) {
  for (const std::string text : kTables) {
    const std::string result = text_without_names(text);
    EXPECT_EQ(result.find("gpu0"), std::string::npos) << result;
    EXPECT_EQ(result.find("gpu["), std::string::npos) << result;
    EXPECT_EQ(result.find("adminx"), std::string::npos) << result;
    for (const std::string word : {"Not responding",
                                   "Kill task",
                                   "failed",
                                   "bad",
                                   "(null)",
                                   "none",
                                   "train",
                                   "batch",
                                   "COMPLETED",
                                   "CANCELLED",
                                   "None assigned",
                                   "RUNNING",
                                   "(Nodes required for",
                                   "2026-11-29T10:00:00",
                                   "0:0",
                                   "1234.batch",
                                   "python",
                                   "config a b",
                                   "2:32:1",
                                   "500000"}) {
      EXPECT_EQ(text.find(word) == std::string::npos, result.find(word) == std::string::npos)
          << word << " in\n"
          << result;
    }
  }
}

TEST(PlacedCells, SentencesBelowATableAreNoRows) {
  for (const std::string end : {"all of them is slow or missing here\n",
                                "no row at all, but a word\n", "\nall of it is slow\n", "slow\n"}) {
    const std::string text = "RACK   HOST  STATE\nr1     3     idle\n" + end;
    EXPECT_EQ(text_without_names(text), text);
  }
}

}  // namespace
}  // namespace trireme

#include "src/plan/published_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kHeader =
    "source_id,model,hidden,heads,kv_heads,ffn,layers,vocab,seq_len,tp,cp,pp,vpp,dp,ep,zero,"
    "recompute,seq_par,gpus,gpu_type,precision,gbs,mbs,iter_time_s,mem_gb\n";
constexpr const char* kRow =
    "s,GPT,1024,16,,4096,24,50257,2048,2,1,4,1,8,,0,full,0,64,A100-80GB,fp16,512,4,3.5,20\n";

std::vector<PublishedRun> parsed(const std::string& rows) {
  return parse_published_runs(kHeader + rows, "runs.csv");
}

std::string refused_csv(const std::string& csv) {
  return message_of<DataError>([&] { (void)parse_published_runs(csv, "runs.csv"); });
}

// The row with one field replaced.
std::string with(const std::string& old, const std::string& now) {
  std::string row = kRow;
  row.replace(row.find(old), old.size(), now);
  return row;
}

TEST(PublishedRuns, ReadsARow) {
  const std::vector<PublishedRun> runs = parsed(kRow);
  ASSERT_EQ(runs.size(), 1U);
  const PublishedRun& run = runs.front();
  EXPECT_EQ(run.why_not, "");
  EXPECT_EQ(run.line, 2);
  EXPECT_EQ(run.model.head_dim, 64);
  EXPECT_EQ(run.model.kv_heads, 16);
  EXPECT_EQ(run.layout.micro_batches, 16);
  EXPECT_EQ(run.layout.recompute, PlanRecompute::full);
  EXPECT_EQ(run.seconds, 3.5);
  EXPECT_EQ(run.memory_gib, 20);
  EXPECT_EQ(setting_of(run).cluster, "a100-selene");
}

TEST(PublishedRuns, QuotedFieldsHoldCommasQuotesAndLines) {
  const auto runs = parsed(with("GPT", "\"GPT, \"\"big\"\"\nmodel\"") + std::string(kRow));
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].model_name, "GPT, \"big\"\nmodel");
  EXPECT_EQ(runs[1].line, 4);
}

TEST(PublishedRuns, SaysWhatAConfigurationCannotExpress) {
  const auto why = [](const std::string& old, const std::string& now) {
    return parsed(with(old, now)).front().why_not;
  };
  EXPECT_THAT(why("2048,2,1,4,1,8,,0,full,0,64", "2048,2,2,4,1,8,,0,full,0,128"),
              HasSubstr("context"));
  EXPECT_THAT(why(",3.5,", ",,"), HasSubstr("no step time"));
  EXPECT_THAT(why("512,4,", "512,,"), HasSubstr("no micro-batch"));
  EXPECT_THAT(why("A100-80GB", "MI250X"), HasSubstr("no cluster file"));
  EXPECT_THAT(why("GPT", "mamba"), HasSubstr("not a transformer"));
  EXPECT_THAT(why("1024,16", ",16"), HasSubstr("shape"));
  EXPECT_THAT(why("fp16", "NVFP4"), HasSubstr("precision"));
  EXPECT_THAT(why("512,4,", "4,4,"), HasSubstr("smaller"));
  EXPECT_THAT(why("2048,2,1,4,1,8,,0,full,0,64", "2048,3,1,4,1,8,,0,full,0,96"),
              HasSubstr("tp does not divide"));
  EXPECT_THAT(why("2048,2,1,4,1,8,,0,full,0,64", "2048,2,1,64,1,8,,0,full,0,1024"),
              HasSubstr("more stages than halves"));
  for (const char* layout : {"2048,,1,4,1,8", "2048,2,1,,1,8", "2048,2,1,4,1,"}) {
    EXPECT_THAT(why("2048,2,1,4,1,8", layout), HasSubstr("no micro-batch or layout")) << layout;
  }
}

TEST(PublishedRuns, ReadsTheNamesThatTablesHave) {
  const auto run = [](const std::string& old, const std::string& now) {
    return parsed(with(old, now)).front();
  };
  EXPECT_EQ(run(",,0,full", ",,3(fsdp),full").layout.zero, 3);
  EXPECT_EQ(run(",,0,full", ",,FSDP,full").layout.zero, 3);
  EXPECT_EQ(run("full", "none (8K stage)").layout.recompute, PlanRecompute::none);
  EXPECT_EQ(run("full", "selective").layout.recompute, PlanRecompute::selective);
  EXPECT_EQ(run("fp16", "FP8-CS").precision, PlanPrecision::fp8);
  EXPECT_TRUE(run("full,0,64", "full,1,64").layout.sequence_parallel);
  EXPECT_EQ(run("full,0,64", "full,0,").why_not, "") << "gpus that were not published";
  // Spreadsheets begin a file with a byte order mark and end its lines with CR and LF.
  std::string table = "\xEF\xBB\xBF" + std::string(kHeader) + kRow;
  table.insert(table.size() - 1, "\r");
  EXPECT_EQ(parse_published_runs(table, "runs.csv").size(), 1U);
}

TEST(PublishedRuns, RefusesFiguresThatNoRunHas) {
  const auto refused = [](const std::string& old, const std::string& now) {
    return refused_csv(kHeader + with(old, now));
  };
  for (const char* wrong : {"x", "nan", "-1", "4"}) {
    EXPECT_THAT(
        refused(",,0,full", std::string(",,") + wrong + ",full"),
        HasSubstr(std::string("zero: '") + wrong + "' is not empty or one of 0, 1, 2, 3, fsdp"));
  }
  EXPECT_THAT(refused("full", "garbage"), HasSubstr("recompute: 'garbage' is not"));
  EXPECT_THAT(refused("full,0,64", "full,yes,64"), HasSubstr("seq_par: 'yes' is not"));
  EXPECT_THAT(refused("fp16", "xfp8x"), HasSubstr("precision: 'xfp8x' is not"));
  EXPECT_THAT(refused("full,0,64", "full,0,63"),
              HasSubstr("gpus: '63' is not dp x tp x pp x cp, which is 64"));
  EXPECT_THAT(refused("1024,16", "0,16"), HasSubstr("hidden: '0' is not an integer from 1"));
  EXPECT_THAT(refused("2048,2,1,4,1,8", "2048,2,1,4,1,0"), HasSubstr("dp: '0' is not"));
  EXPECT_THAT(refused(",3.5,", ",0,"), HasSubstr("iter_time_s: '0' is not a number above 0"));
  EXPECT_THAT(refused_csv(kHeader), HasSubstr("no run follows"));
}

TEST(PublishedRuns, RefusesFilesThatAreNoTable) {
  EXPECT_THAT(refused_csv(""), HasSubstr("runs.csv:1: there is no column 'source_id'"));
  EXPECT_THAT(refused_csv("a,a\n"), HasSubstr("two columns are called 'a'"));
  EXPECT_THAT(refused_csv(std::string(kHeader) + "x,y\n"), HasSubstr("runs.csv:2: 2 fields"));
  EXPECT_THAT(refused_csv(std::string(kHeader) + "\"x"), HasSubstr("does not end"));
  EXPECT_THAT(refused_csv(std::string(1000, ',')), HasSubstr("more than 200 fields"));
  for (const char* wrong : {"-1", "nan", "inf", "1e400", "1.5", "7x", "99999999999"}) {
    EXPECT_THAT(refused_csv(kHeader + with("1024", wrong)), HasSubstr("runs.csv:2: hidden"))
        << wrong;
  }
  // The schedule of so many stages would take all of the memory.
  EXPECT_THAT(refused_csv(kHeader + with("2048,2,1,4", "2048,2,1,1000000000")), HasSubstr("pp: "));
  EXPECT_THAT(refused_csv(kHeader + with("2048,2,1,4", "2048,2,1,4096")),
              HasSubstr("'4096' is not an integer from 1 to 512"));
  EXPECT_THAT(refused_csv(kHeader + with("512,4,", "512,99999,")), HasSubstr("mbs: "));
  for (const char* wrong : {"-1", "nan", "1e99", "0x10"}) {
    EXPECT_THAT(refused_csv(kHeader + with("3.5", wrong)), HasSubstr("iter_time_s")) << wrong;
  }
  EXPECT_THAT(refused_csv(kHeader + with("1024", "\033[31m")),
              AllOf(HasSubstr("\\x1b[31m"), ::testing::Not(HasSubstr("\033"))));
}

}  // namespace
}  // namespace trireme

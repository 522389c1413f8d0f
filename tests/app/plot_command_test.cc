#include "src/app/run/plot_command.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;

void plot(std::vector<std::string> arguments) {
  CommandLine app("", "trireme");
  add_plot_command(app);
  arguments.insert(arguments.begin(), "plot");
  app.parse(arguments);
}

TEST(PlotCommand, DrawsWhatARunLogged) {
  const TempFolder folder;
  std::ofstream(folder.path() / "metrics.jsonl") << R"({"step":1,"loss":5.5}
{"step":2,"loss":null}
torn {
[1, 2]
{"step":"x","loss":1}
{"step":3,"loss":4.5,"val_loss":4.75}
{"step":4,"loss":4,"val_loss":4.25}
)";
  const std::string out = (folder.path() / "loss.svg").string();
  testing::internal::CaptureStderr();
  plot({folder.path().string(), "-o", out, "--event", "2:killed", "--event", "3:resumed", "--level",
        "5.1:unigram entropy", "--title", "a <title>"});
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      fmt::format("trireme: {}/metrics.jsonl: ignoring 3 damaged lines (the first is line 3)\n",
                  folder.path().string()));
  const std::string svg = read_file(out);
  for (const char* words : {">training<", ">validation<", ">killed<", ">resumed<",
                            ">unigram entropy<", ">a &lt;title&gt;<"}) {
    EXPECT_THAT(svg, HasSubstr(words));
  }
}

TEST(PlotCommand, StepsThatAreNoneAreDamagedLines) {
  const TempFolder folder;
  {
    std::ofstream metrics(folder.path() / "metrics.jsonl");
    metrics << "{\"step\":1,\"loss\":5.5}\n{\"step\":9,\"loss\":4}\n";
    for (const char* step : {"-6", "6.5", "6.0", "1000000000000000000", "9223372036854775807",
                             "18446744073709551615", "1e30", "1e300"}) {
      metrics << "{\"step\":" << step << ",\"loss\":5}\n";
    }
  }
  make_directories(folder.path() / "logs");
  std::ofstream(folder.path() / "logs/rank-00000.jsonl")
      << "{\"event\":\"resumed\",\"step\":1e300}\n";
  const std::string out = (folder.path() / "loss.svg").string();
  testing::internal::CaptureStderr();
  plot({folder.path().string(), "-o", out});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("ignoring 8 damaged lines (the first is line 3)\n"));
  EXPECT_THAT(read_file(out), testing::Not(HasSubstr("e+2")));
}

TEST(PlotCommand, MarksRestarts) {
  const TempFolder folder;
  std::ofstream(folder.path() / "metrics.jsonl") << R"({"step":1,"loss":5.5}
{"step":9,"loss":4})";
  make_directories(folder.path() / "logs");
  std::ofstream(folder.path() / "logs/rank-00000.jsonl") << R"({"event":"start","pid":1}
{"event":"resumed","step":4}
torn {
{"event":"resumed","step":"x"}
{"event":"resumed","step":4}
{"event":"resumed","step":7}
)";
  const std::string out = (folder.path() / "loss.svg").string();
  plot({folder.path().string(), "-o", out});
  const std::string svg = read_file(out);
  EXPECT_THAT(svg, HasSubstr(">restart at 4<"));
  EXPECT_THAT(svg, HasSubstr(">restart at 7<"));
  plot({folder.path().string(), folder.path().string(), "-o", out});
  EXPECT_THAT(read_file(out), HasSubstr(fmt::format(">{} restart at 4<", folder.path().string())));
}

TEST(PlotCommand, SaysWhatIsMissing) {
  const TempFolder folder;
  const std::string out = (folder.path() / "loss.svg").string();
  EXPECT_THROW(plot({(folder.path() / "absent").string(), "-o", out}), NotFound);
  std::ofstream(folder.path() / "metrics.jsonl") << "";
  EXPECT_THROW(plot({folder.path().string(), "-o", out}), DataError);
  std::ofstream(folder.path() / "metrics.jsonl") << "{\"step\":1,\"loss\":5.5}\n";
  for (const char* wrong : {"killed", "x:killed", "1x:killed", ":killed"}) {
    EXPECT_THROW(plot({folder.path().string(), "-o", out, "--event", wrong}), ConfigError) << wrong;
  }
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace trireme

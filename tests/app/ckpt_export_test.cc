// `trireme ckpt` on encrypted and labelled checkpoints, and `ckpt export`, whose file is read back
// here byte by byte.
#include <algorithm>
#include <bit>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/app/checkpoint/ckpt_command.h"
#include "src/base/digest.h"
#include "tests/app/command_run.h"
#include "tests/io/checkpoint/encrypted_state.h"
#include "tests/support/environment_variables.h"
#include "tests/support/without_policy.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class CkptExport : public testing::Test {
 protected:
  CkptExport() {
    fs::create_directory(path("site"));
    variables_.set("TRIREME_SITE_DIR", path("site"));
    for (const std::int64_t step : {1, 2}) {
      EXPECT_TRUE(save_state(path("plain"), small_state(static_cast<std::uint64_t>(step)), step,
                             cut_flat, 2)
                      .durable);
    }
    EXPECT_TRUE(save_encrypted(path("sealed"), {uri_}, small_state(), 1, cut_flat, 2).durable);
  }
  CommandRun ckpt(Words words) const {
    words.insert(words.begin(), "ckpt");
    AuditTrail audit;
    return run_command_line(
        [&](CommandLine& app, int& code) { add_ckpt_command(app, code, audit, without_policy()); },
        words);
  }
  CommandRun export_from(const std::string& name, const Words& more = {}) const {
    Words words = {"export", path(name), "--out", path("model.safetensors")};
    words.insert(words.end(), more.begin(), more.end());
    return ckpt(words);
  }
  // Returns the header of the exported file.
  json header() const {
    const std::string text = read_file(path("model.safetensors"));
    return json::parse(text.substr(8, header_bytes(text)));
  }
  static std::size_t header_bytes(const std::string& text) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text.data(), sizeof bytes);
    return bytes;
  }
  // Expects the parameters of this state, and nothing of its optimizer.
  void expect_parameters(const State& state) const {
    const std::string text = read_file(path("model.safetensors"));
    const std::size_t begin = 8 + header_bytes(text);
    EXPECT_EQ(begin % 4096, 0U) << "so that it can be mapped";
    const json found = header();
    std::size_t end = 0;
    std::size_t parameters = 0;
    for (const LogicalTensor& tensor : state) {
      if (tensor.name.starts_with("optimizer.")) {
        EXPECT_FALSE(found.contains(tensor.name));
        continue;
      }
      ++parameters;
      const json& entry = found.at(tensor.name);
      EXPECT_EQ(entry["shape"].size(), static_cast<std::size_t>(tensor.shape.rank()));
      const std::size_t at = entry["data_offsets"][0];
      const std::size_t size = entry["data_offsets"][1].get<std::size_t>() - at;
      ASSERT_EQ(size, tensor.bytes.size()) << tensor.name;
      EXPECT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(),
                             text.begin() + static_cast<std::ptrdiff_t>(begin + at),
                             [](std::byte a, char b) { return a == static_cast<std::byte>(b); }))
          << tensor.name;
      end = std::max(end, at + size);
    }
    EXPECT_EQ(text.size(), begin + end);
    EXPECT_EQ(found.size(), parameters + 1) << "and the metadata";
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  TempFolder folder_;
  EnvironmentVariables variables_;
  const std::string uri_ = new_key(folder_.path(), "site");
};

TEST_F(CkptExport, TheNewestStepsParametersAreOneFile) {
  const CommandRun run = export_from("plain");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(testing::StartsWith(path("model.safetensors") + ": 7 tensors, "),
                             testing::EndsWith(" in plain\n")));
  expect_parameters(small_state(2));
  const json metadata = header()["__metadata__"];
  EXPECT_EQ(metadata["format"], "pt");
  EXPECT_EQ(metadata["trireme_manifest_sha256"],
            sha256_hex(read_file(path("plain/step-00000002/manifest.json"))));
  EXPECT_FALSE(metadata.contains("trireme_label"));
  EXPECT_EQ(header()["wte.weight"]["dtype"], "F32");
  EXPECT_EQ(header()["h.0.bias"]["dtype"], "BF16");
}

TEST_F(CkptExport, AStepCanBeNamed) {
  EXPECT_EQ(export_from("plain/step-00000001").code, 0);
  expect_parameters(small_state(1));
}

TEST_F(CkptExport, NoFileIsReplaced) {
  std::ofstream(path("model.safetensors")) << "kept";
  const CommandRun run = export_from("plain");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(run.err, HasSubstr("exists, and an export replaces no file"));
  EXPECT_EQ(read_file(path("model.safetensors")), "kept");
  fs::remove(path("model.safetensors"));
  fs::create_symlink("nowhere", path("model.safetensors"));
  EXPECT_EQ(export_from("plain").code, static_cast<int>(ExitCode::refused));
  EXPECT_FALSE(fs::exists(path("nowhere")));
}

TEST_F(CkptExport, NoFileIsWrittenIntoACheckpoint) {
  const std::string step = path("plain/step-00000002");
  fs::create_directory_symlink(step, path("link"));
  for (const std::string& out : {step + "/model.safetensors", path("link/model.safetensors")}) {
    const CommandRun run = ckpt({"export", path("plain"), "--out", out});
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
    EXPECT_THAT(run.err, HasSubstr("lies in the checkpoint " + step));
  }
  EXPECT_EQ(ckpt({"verify", step}).code, 0);
}

TEST_F(CkptExport, OfDamagedDataNothingIsLeft) {
  File shard = File::open_to_update(path("plain/step-00000002/shard-00001.safetensors"));
  shard.write_at(4100, "????", 4);
  const CommandRun run = export_from("plain/step-00000002");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_FALSE(fs::exists(path("model.safetensors")));
  EXPECT_EQ(export_from("absent").code, static_cast<int>(ExitCode::not_found));
  EXPECT_FALSE(fs::exists(path("model.safetensors")));
}

TEST_F(CkptExport, AnEncryptedCheckpointNeedsItsKey) {
  EXPECT_EQ(export_from("sealed").code, static_cast<int>(ExitCode::refused));
  const std::string other = new_key(folder_.path(), "other");
  EXPECT_EQ(export_from("sealed", {"--key", other}).code, static_cast<int>(ExitCode::refused));
  EXPECT_FALSE(fs::exists(path("model.safetensors")));
  const CommandRun silent = export_from("sealed", {"--key", uri_});
  EXPECT_EQ(silent.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(silent.err, HasSubstr("give --plain if it may be written"));
  EXPECT_FALSE(fs::exists(path("model.safetensors")));
  EXPECT_EQ(export_from("sealed", {"--key", uri_, "--plain"}).code, 0);
  expect_parameters(small_state());
}

TEST_F(CkptExport, VerifySaysHowFarItCouldLook) {
  EXPECT_THAT(ckpt({"verify", path("sealed")}).out,
              HasSubstr("in 2 shards; encrypted, and no key was given to open it\n"));
  EXPECT_THAT(ckpt({"verify", path("sealed"), "--key", uri_}).out,
              HasSubstr("; encrypted, and every block opens\n"));
  EXPECT_THAT(ckpt({"verify", path("plain")}).out, Not(HasSubstr("encrypted")));
  const json closed = json::parse(ckpt({"verify", path("sealed"), "--json"}).out);
  EXPECT_EQ(closed["checkpoints"][0]["encrypted"], true);
  EXPECT_EQ(closed["checkpoints"][0]["opened"], false);
  const json open = json::parse(ckpt({"verify", path("sealed"), "--json", "--key", uri_}).out);
  EXPECT_EQ(open["checkpoints"][0]["opened"], true);
  const std::string other = new_key(folder_.path(), "other");
  EXPECT_EQ(ckpt({"verify", path("sealed"), "--key", other}).code,
            static_cast<int>(ExitCode::refused));
}

TEST_F(CkptExport, TheDigestIsThatOfThePlainContents) {
  const CommandRun sealed = ckpt({"digest", path("sealed"), "--key", uri_});
  EXPECT_EQ(sealed.code, 0) << sealed.err;
  EXPECT_EQ(sealed.out, ckpt({"digest", path("plain/step-00000001")}).out);
  EXPECT_EQ(ckpt({"digest", path("sealed")}).code, static_cast<int>(ExitCode::refused));
}

TEST_F(CkptExport, ShowMarksWhatIsEncrypted) {
  EXPECT_THAT(ckpt({"show", path("sealed")}).out,
              AllOf(HasSubstr(" in 2 shards, encrypted, "), HasSubstr("\n  label: (none)\n")));
  EXPECT_THAT(ckpt({"show", path("plain")}).out, Not(HasSubstr("encrypted")));
}

TEST_F(CkptExport, PinnedAndDivisibleStepsAreKept) {
  for (const std::int64_t step : {3, 4, 5, 6}) {
    ASSERT_TRUE(save_state(path("plain"), small_state(), step).durable);
  }
  const CommandRun run =
      ckpt({"prune", path("plain"), "--keep", "2", "--keep-every", "3", "--json"});
  EXPECT_EQ(run.code, 0) << run.err;
  const json document = json::parse(run.out);
  std::vector<int> steps;
  for (const json& each : document["pruned"]) {
    steps.push_back(each["step"]);
  }
  std::sort(steps.begin(), steps.end());
  EXPECT_THAT(steps, ElementsAre(1, 2, 4)) << "5 and 6 are new, and 3 is divisible";
  EXPECT_EQ(document["kept"], 3);
}

}  // namespace
}  // namespace trireme

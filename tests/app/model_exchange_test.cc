// `trireme export` and `trireme import` on a tiny model that is trained in this process: what they
// write and print, and what they refuse. The formats are tested in tests/interchange.
#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "mpi/self_communicator.h"
#include "src/app/checkpoint/ckpt_command.h"
#include "src/app/command/app_context.h"
#include "src/app/data/data_command.h"
#include "src/app/evidence/verify_command.h"
#include "src/app/model/export_command.h"
#include "src/app/model/import_command.h"
#include "src/app/run/train_command.h"
#include "src/base/file.h"
#include "src/evidence/keys.h"
#include "tests/app/command_run.h"
#include "tests/support/encrypted_files.h"
#include "tests/support/environment_variables.h"
#include "tests/support/temp_folder.h"
#include "tests/support/without_policy.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

// Neither a launcher nor a site has a say.
class WithoutLauncher {
 public:
  WithoutLauncher() {
    for (const char* const name :
         {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID",
          "SLURM_STEP_ID", "SLURM_JOB_ID", "TRIREME_GENERATION", "TRIREME_NODE_DIR"}) {
      variables_.set(name, std::nullopt);
    }
    variables_.set("TRIREME_SITE_DIR", TRIREME_SOURCE_DIR "/tests/support/no_site");
  }

 private:
  EnvironmentVariables variables_;
};

// Trains the model once for all tests.
class ModelExchange : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    const WithoutLauncher alone;
    std::ofstream(path("text.txt")) << std::string(500, 'a') + std::string(100, 'b');
    ASSERT_EQ(run({"data", "pack", path("text.txt"), "--out", path("data")}).code, 0);
    std::ofstream(path("run.yaml"))
        << "model: {family: gpt2, layers: 2, hidden: 16, heads: 2, vocab: 257, context: 16}\n"
           "data: {train: " +
               path("data") +
               "}\n"
               "train: {steps: 2, global_batch: 2, precision: fp32, threads: 1, log_every: 1}\n"
               "run: {dir: " +
               path("run") + "}\n";
    const CommandRun trained = run({"train", path("run.yaml")});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  static void TearDownTestSuite() { folder_.reset(); }
  ModelExchange() { fs::remove_all(path("out")); }

  static CommandRun run(const Words& words) {
    AppContext context;
    SelfCommunicator self;
    CommandRun done = run_command_line(
        [&](CommandLine& app, int& code) {
          add_train_command(app, context);
          add_export_command(app, context);
          add_import_command(app, context);
          add_ckpt_command(app, code, context.audit, without_policy());
          add_verify_command(app, without_policy(), code);
          add_data_command(
              app, [&]() -> Communicator& { return self; }, without_policy(), code);
        },
        words);
    done.code = done.code == 0 ? context.exit_code : done.code;
    return done;
  }
  static CommandRun exported(const std::string& format, const Words& more = {},
                             const std::string& checkpoint = "run/checkpoints") {
    Words words = {"export", path(checkpoint), "--format", format, "--out", path("out")};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  static std::string path(const std::string& name) { return (folder_->path() / name).string(); }

  static std::unique_ptr<TempFolder> folder_;
  const WithoutLauncher alone_;
};
std::unique_ptr<TempFolder> ModelExchange::folder_;

TEST_F(ModelExchange, HfIsAFolderForTransformers) {
  const CommandRun text = exported("hf");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(testing::StartsWith(path("out") + ": step 2, "),
                              HasSubstr(" parameters as "), Not(HasSubstr("signed"))));
  EXPECT_EQ(json::parse(read_file(path("out/config.json")))["model_type"], "gpt2");
  EXPECT_TRUE(fs::exists(path("out/model.safetensors")));
  fs::remove_all(path("out"));
  const json document = json::parse(exported("hf", {"--json", "--dtype", "bf16"}).out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["path"], path("out"));
  EXPECT_EQ(document["format"], "hf");
  EXPECT_EQ(document["step"], 2);
  EXPECT_EQ(document["signed"], false);
  EXPECT_THAT(document["dtype"].get<std::string>(), HasSubstr("bf"));
  EXPECT_THAT(document["checkpoint"].get<std::string>(), testing::EndsWith("step-00000002"));
}

TEST_F(ModelExchange, AnImportReturnsTheWeights) {
  ASSERT_EQ(exported("hf").code, 0);
  fs::remove_all(path("back"));
  const CommandRun text =
      run({"import", path("out"), "--out", path("back"), "--label", "classification=internal"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(testing::StartsWith(path("back") + ": "),
                              HasSubstr(" parameters of gpt2, "), Not(HasSubstr("left out"))));
  const std::string digest = run({"ckpt", "digest", path("run/checkpoints"), "--model"}).out;
  EXPECT_EQ(run({"ckpt", "digest", path("back"), "--model"}).out, digest);
  EXPECT_THAT(run({"ckpt", "show", path("back")}).out, HasSubstr("label: internal\n"));
  const CommandRun again = run({"import", path("out"), "--out", path("back")});
  EXPECT_NE(again.code, 0) << "nothing is replaced";
  fs::remove_all(path("back"));
  const json document =
      json::parse(run({"import", path("out"), "--out", path("back"), "--json"}).out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["model_type"], "gpt2");
  EXPECT_EQ(document["padding_rows"], 0);
  EXPECT_EQ(document["path"], path("back"));
}

TEST_F(ModelExchange, AnImportKeepsTheLabelInTheFiles) {
  ASSERT_EQ(exported("hf").code, 0);
  for (const char* const name : {"secret", "again"}) {
    fs::remove_all(path(name));
  }
  ASSERT_EQ(
      run({"import", path("out"), "--out", path("secret"), "--label", "classification=secret"})
          .code,
      0);
  fs::remove_all(path("out"));
  ASSERT_EQ(exported("hf", {}, "secret").code, 0);
  const CommandRun again = run({"import", path("out"), "--out", path("again"), "--label",
                                "classification=public", "--label", "owner=lab"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(run({"ckpt", "show", path("again")}).out, HasSubstr("label: secret; owner lab\n"));
}

TEST_F(ModelExchange, NothingIsWrittenIntoACheckpointOrADataset) {
  const std::string step = path("run/checkpoints/step-00000002");
  for (const Words& words : {Words{"export", step, "--format", "hf", "--out", path("data/model")},
                             Words{"export", "card", step, "--out", step + "/README.md"},
                             Words{"import", path("absent"), "--out", step + "/model"}}) {
    const CommandRun refused = run(words);
    EXPECT_EQ(refused.code, static_cast<int>(ExitCode::usage)) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(": choose a place outside of it"));
  }
  EXPECT_EQ(run({"ckpt", "verify", step}).code, 0);
}

TEST_F(ModelExchange, GgufIsQuantizedUnlessAskedOtherwise) {
  EXPECT_THAT(exported("gguf").out, HasSubstr(" as q8_0, "));
  bool found = false;
  for (const auto& entry : fs::directory_iterator(path("out"))) {
    found = found ||
            (entry.path().extension() == ".gguf" && read_file(entry.path()).substr(0, 4) == "GGUF");
  }
  EXPECT_TRUE(found);
  for (const char* const dtype : {"fp32", "fp16", "bf16"}) {
    fs::remove_all(path("out"));
    const CommandRun run = exported("gguf", {"--dtype", dtype, "--json"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(json::parse(run.out)["dtype"].get<std::string>(),
                testing::EndsWith(std::string(dtype).substr(2)));
  }
}

TEST_F(ModelExchange, MatricesOfOtherTypesAreCounted) {
  const CommandRun text = exported("gguf", {"--dtype", "q4_k"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr(" as q4_k, "),
                              HasSubstr("as q8_0: 2 matrices whose rows are not whole blocks of "
                                        "q4_k\n"),
                              HasSubstr("as float16: 7 matrices whose rows")));
  fs::remove_all(path("out"));
  const json document = json::parse(exported("gguf", {"--dtype", "q4_k", "--json"}).out);
  EXPECT_EQ(document["other_dtypes"], json({{"q8_0", 2}, {"float16", 7}}));
}

// Rows of 256 numbers have whole blocks.
TEST_F(ModelExchange, Q4KCostsNoMoreThanQ40) {
  const CommandRun trained = run({"train", path("run.yaml"), "model.hidden=256", "model.layers=1",
                                  "train.steps=1", "run.dir=" + path("wide")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  std::map<std::string, json> documents;
  for (const std::string type : {"q4_0", "q4_k"}) {
    fs::remove_all(path("out"));
    const CommandRun run = exported("gguf", {"--dtype", type, "--json"}, "wide/checkpoints");
    ASSERT_EQ(run.code, 0) << run.err;
    documents[type] = json::parse(run.out);
    EXPECT_EQ(documents[type]["other_dtypes"], json::object());
  }
  const auto difference = [&](const char* type) {
    return documents.at(type)["logits"]["relative_difference"].get<double>();
  };
  EXPECT_GT(difference("q4_k"), 0);
  EXPECT_LT(difference("q4_k"), difference("q4_0"));
  EXPECT_EQ(documents["q4_k"]["bytes"], documents["q4_0"]["bytes"]) << "both have 4.5 bits";
}

TEST_F(ModelExchange, GraphsAreWholeUnlessAskedOtherwise) {
  for (const auto& [words, dtype] : std::vector<std::pair<Words, std::string>>{
           {{"--json"}, "float32"}, {{"--dtype", "bf16", "--json"}, "bfloat16"}}) {
    fs::remove_all(path("out"));
    const CommandRun run = exported("onnx", words);
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(json::parse(run.out)["dtype"], dtype);
    EXPECT_TRUE(fs::exists(path("out/model.onnx")));
  }
}

TEST_F(ModelExchange, RefusalsNameTheCauseAndLeaveNothing) {
  for (const auto& [words, why] : std::vector<std::pair<Words, std::string>>{
           {{"export", "--format", "hf", "--out", path("out")}, "CHECKPOINT is missing"},
           {{"export", path("run/checkpoints"), "--out", path("out")}, "--format is missing"},
           {{"export", path("run/checkpoints"), "--format", "hf"}, "--out is missing"},
           {{"export", path("run/checkpoints"), "--format", "onyx", "--out", path("out")}, "hf"}}) {
    const CommandRun refused = run(words);
    EXPECT_EQ(refused.code, static_cast<int>(ExitCode::usage)) << why;
    EXPECT_THAT(refused.err, HasSubstr(why));
  }
  for (const char* const format : {"hf", "onnx", "peft"}) {
    const CommandRun type = exported(format, {"--dtype", "q8_0"});
    EXPECT_EQ(type.code, static_cast<int>(ExitCode::usage));
    EXPECT_THAT(type.err, HasSubstr(std::string("with --format ") + format + ", choose fp32"));
  }
  EXPECT_NE(exported("peft").code, 0) << "it has no adapters";
  EXPECT_NE(exported("hf", {"--ema"}).code, 0) << "it has no moving average";
  EXPECT_EQ(exported("hf", {}, "absent").code, static_cast<int>(ExitCode::not_found));
  EXPECT_FALSE(fs::exists(path("out")));
  ASSERT_EQ(exported("hf").code, 0);
  const std::string before = read_file(path("out/config.json"));
  EXPECT_NE(exported("gguf").code, 0) << "the folder exists";
  EXPECT_EQ(read_file(path("out/config.json")), before);
}

TEST_F(ModelExchange, AnExportIsSignedForWhoChecksModels) {
  const SigningKey key = SigningKey::generate(PublicKey::Kind::ecdsa_p256);
  fs::remove(path("model.key"));
  key.save(path("model.key"));
  std::ofstream(path("trust.pem")) << "# Site A\n" + key.public_key().to_pem();
  const CommandRun text = exported("hf", {"--sign", path("model.key")});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("signed: " + path("out/model.sig") + "\n"));
  const Words verify = {"verify", path("out"), "--trust", path("trust.pem")};
  EXPECT_EQ(run(verify).code, 0) << run(verify).out;
  std::ofstream(path("out/config.json"), std::ios::app) << " ";
  EXPECT_EQ(run(verify).code, static_cast<int>(ExitCode::bad_data));
  fs::remove_all(path("out"));
  fs::remove(path("other.key"));
  SigningKey::generate().save(path("other.key"));
  EXPECT_NE(exported("hf", {"--sign", path("other.key")}).code, 0)
      << "model signatures are of ECDSA";
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(ModelExchange, AnEncryptedCheckpointIsExportedOnRequestOnly) {
  ASSERT_EQ(exported("hf").code, 0);
  fs::rename(path("out"), path("plain-model"));
  fs::remove(path("seal.key"));
  const std::string uri = new_key(folder_->path(), "seal");
  fs::remove_all(path("sealed"));
  ASSERT_EQ(run({"import", path("plain-model"), "--out", path("sealed"), "--key", uri}).code, 0);
  EXPECT_THAT(run({"ckpt", "show", path("sealed")}).out, HasSubstr(", encrypted, "));
  EXPECT_NE(exported("hf", {}, "sealed").code, 0);
  EXPECT_NE(exported("hf", {"--key", uri}, "sealed").code, 0) << "--plain is missing";
  EXPECT_FALSE(fs::exists(path("out")));
  const CommandRun allowed = exported("hf", {"--key", uri, "--plain"}, "sealed");
  EXPECT_EQ(allowed.code, 0) << allowed.err;
  const auto tensors_of = [](const std::string& folder) {  // after the metadata
    const std::string file = read_file(path(folder + "/model.safetensors"));
    return file.substr(file.find("},"));
  };
  EXPECT_EQ(tensors_of("out"), tensors_of("plain-model"));
  fs::remove_all(path("plain-model"));
}

TEST_F(ModelExchange, TwoFirstExportsOfARunToMlflowBothSucceed) {
  const CommandRun first = run({"export", "mlflow", path("run"), path("shared")});
  const fs::path made = first.out.substr(0, first.out.size() - 1);
  fs::remove_all(made);
  std::atomic<bool> is_over = false;
  std::thread other([&] {  // waits for the draft beside the experiment's meta.yaml
    while (!is_over && std::distance(fs::directory_iterator(made.parent_path()), {}) == 1) {
    }
    fs::create_directory(made);
  });
  const CommandRun second = run({"export", "mlflow", path("run"), path("shared")});
  is_over = true;
  other.join();
  EXPECT_EQ(second.out, first.out) << second.err;
  EXPECT_TRUE(fs::exists(made / "meta.yaml"));
}

TEST_F(ModelExchange, ARunBecomesFilesOfMlflow) {
  const CommandRun within = run({"export", "mlflow", path("run"), path("run")});
  EXPECT_EQ(within.code, 2);
  EXPECT_THAT(within.err, HasSubstr("is the folder of a run, and no store"));
  const CommandRun first = run({"export", "mlflow", path("run"), path("store")});
  EXPECT_EQ(first.code, 0) << first.err;
  const fs::path made = first.out.substr(0, first.out.size() - 1);
  EXPECT_TRUE(fs::exists(made / "meta.yaml"));
  EXPECT_EQ(run({"export", "mlflow", path("run"), path("store")}).out, first.out)
      << "it replaces what was exported before";
  for (const fs::directory_entry& each : fs::directory_iterator(made.parent_path())) {
    EXPECT_EQ(each.path().filename().string().find("draft"), std::string::npos);
  }
  const CommandRun other =
      run({"export", "mlflow", path("run"), path("store"), "--experiment", "second"});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_NE(other.out, first.out);
  EXPECT_FALSE(fs::exists(made)) << "one store holds no ID twice";
  fs::create_directories(made);
  const CommandRun both =
      run({"export", "mlflow", path("run"), path("store"), "--experiment", "second"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("are the same run"));
  for (const char* store : {"run/mlruns", "run/checkpoints", "data/mlruns"}) {
    const CommandRun inside = run({"export", "mlflow", path("run"), path(store)});
    EXPECT_EQ(inside.code, 2) << store;
    EXPECT_THAT(inside.err, HasSubstr("lies in")) << store;
  }
  EXPECT_EQ(run({"export", "mlflow", path("run"), path("store"), "--experiment", ""}).code,
            static_cast<int>(ExitCode::usage));
  write_file_durably(
      path("run/metrics.jsonl"),
      "{\"step\": 1, \"loss\": 2, \"time\": 5, \"sources\": {\"a:b\": {\"loss\": 1}}}\n");
  const CommandRun odd = run({"export", "mlflow", path("run"), path("odd")});
  EXPECT_EQ(odd.code, 0) << odd.err;
  EXPECT_NE(odd.err.find("left out the metric 'sources/a:b/loss'"), std::string::npos) << odd.err;
  EXPECT_EQ(odd.err.find("config.yaml"), std::string::npos) << odd.err;
  write_file_durably(path("run/config.yaml"), "a: [\n");
  const CommandRun damaged = run({"export", "mlflow", path("run"), path("odd")});
  EXPECT_EQ(damaged.code, 0) << damaged.err;
  EXPECT_NE(damaged.err.find("config.yaml is damaged"), std::string::npos) << damaged.err;
  EXPECT_EQ(run({"export", "mlflow", path("absent"), path("store")}).code,
            static_cast<int>(ExitCode::not_found));
}

TEST_F(ModelExchange, MlflowGetsNeitherSecretsNorDamagedLines) {
  fs::create_directories(path("leaky"));
  write_file_durably(
      path("leaky/metrics.jsonl"),
      "{\"step\": 1, \"loss\": 2, \"time\": 5}\n{\"st\n\n{\"step\": 2, \"time\": 6}\n");
  write_file_durably(path("leaky/config.yaml"),
                     "launch:\n  on_event: notify --token=hunter2hunter2\ntrain:\n  steps: 2\n");
  const CommandRun leaky = run({"export", "mlflow", path("leaky"), path("out")});
  EXPECT_EQ(leaky.code, 0) << leaky.err;
  EXPECT_EQ(leaky.err, fmt::format("trireme: {}/metrics.jsonl: ignoring 2 damaged lines (the first "
                                   "is line 2)\n",
                                   path("leaky")));
  const fs::path made = leaky.out.substr(0, leaky.out.size() - 1);
  EXPECT_EQ(read_file(made / "metrics/loss"), "5000 2 1\n");
  EXPECT_THAT(read_file(made / "params/launch.on_event"),
              AllOf(HasSubstr("notify"), HasSubstr("REDACTED")));
  for (const fs::directory_entry& each : fs::recursive_directory_iterator(path("out"))) {
    if (each.is_regular_file()) {
      EXPECT_THAT(read_file(each.path()), Not(HasSubstr("hunter2"))) << each.path();
    }
  }
}

TEST_F(ModelExchange, AFileOfMetricsThatIsTooLargeIsNotCalledEmpty) {
  fs::create_directories(path("large"));
  write_file_durably(path("large/metrics.jsonl"), "{\"step\": 1, \"loss\": 2, \"time\": 5}\n");
  write_file_durably(path("large/config.yaml"), "train:\n  steps: 2\n");
  fs::resize_file(path("large/metrics.jsonl"), std::uintmax_t{5} << 30);  // sparse
  const CommandRun large = run({"export", "mlflow", path("large"), path("out")});
  EXPECT_NE(large.code, 0);
  EXPECT_THAT(large.err, AllOf(HasSubstr(path("large/metrics.jsonl")), HasSubstr("bytes"),
                               Not(HasSubstr("no step with a time"))));
  EXPECT_FALSE(fs::exists(path("out")));
}

}  // namespace
}  // namespace trireme

// What of a site's records an archive with --strict takes: figures, and words of the program.
#include "src/study/records/known_records.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "src/base/config_tree.h"
#include "src/base/error.h"
#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

using nlohmann::json;

const std::filesystem::path kSources = TRIREME_SOURCE_DIR;

// Returns what is kept of a record, which is called as the program calls it.
std::string kept(const std::string& suffix, const std::string& text) {
  const std::string stem = suffix == ".yaml" ? "config" : "metrics";
  return KnownRecords().keep(stem + suffix, text).text;
}

json kept_json(const std::string& text) { return json::parse(kept(".json", text)); }

TEST(KnownRecords, FiguresAndWordsOfTheProgramStay) {
  const std::string line =
      R"({"step":3,"device":"cpu","loss":2.5,"loss_bits":"0x40200000","val_loss":null})"
      "\n";
  const KnownRecords::Kept same = KnownRecords().keep("metrics.jsonl", line);
  EXPECT_EQ(same.text, line);
  EXPECT_EQ(same.removed, 0);
}

TEST(KnownRecords, TextsBecomePseudonymsThatAreTheSameEverywhere) {
  KnownRecords records;
  const KnownRecords::Kept first =
      records.keep("exit_reason.json", R"({"host": "n1", "message": "n1 is slow", "kind": "n2"})");
  EXPECT_EQ(json::parse(first.text),
            json::parse(R"({"host": "host-1", "message": "text-1", "kind": "text-2"})"));
  EXPECT_EQ(first.removed, 3);
  EXPECT_EQ(records.keep("config.yaml", "nodes: [n0, n1]\nkind: n2\n").text,
            "nodes: [host-2, host-1]\nkind: text-2\n");
}

TEST(KnownRecords, AWordOfTheProgramIsAPseudonymWhereTheSiteChoosesTheText) {
  EXPECT_EQ(kept(".jsonl", R"({"host":"ring","kind":"memory","precision":"bf16"})"
                           "\n"),
            R"({"host":"host-1","kind":"memory","precision":"bf16"})"
            "\n");
  EXPECT_EQ(kept(".yaml", "run: {name: adamw}\noptimizer: {name: adamw}\nmodel: {family: gpt2}\n"),
            "run:\n  name: text-1\noptimizer:\n  name: adamw\nmodel:\n  family: gpt2\n");
}

TEST(KnownRecords, NumbersOfUnknownFieldsAreSecrets) {
  const KnownRecords::Kept pin =
      KnownRecords().keep("metrics.json", R"({"pin": 4711, "steps": 5, "codes": [1, [2]]})");
  EXPECT_EQ(json::parse(pin.text),
            json::parse(R"({"text-1": "text-2", "steps": 5, "text-3": ["text-4", ["text-5"]]})"));
  EXPECT_EQ(pin.removed, 5);
  EXPECT_EQ(kept(".yaml", "pin: 4711\nsteps: 5\nx: {steps: 6}\n"),
            "text-1: text-2\nsteps: 5\ntext-3:\n  text-4: text-5\n");
}

TEST(KnownRecords, DigitsAreNamesWhereTheSiteChoosesTheText) {
  EXPECT_EQ(kept(".yaml",
                 "run: {name: 0049301234567, dir: 4711}\ndata: {train: 4712, sequence: 64}\n"
                 "audit: {key: 4713}\nmodel: {family: 2026-04-08}\nenergy: {currency: bf16}\n"),
            "run:\n  name: text-1\n  dir: text-2\ndata:\n  train: text-3\n  sequence: 64\n"
            "audit:\n  key: text-4\nmodel:\n  family: text-5\nenergy:\n  currency: text-6\n");
  EXPECT_EQ(kept_json(R"({"host": 4711, "message": 4712, "nodes": 4, "train": 0.5})"),
            json::parse(R"({"host": "host-1", "message": "text-1", "nodes": 4, "train": 0.5})"));
}

TEST(KnownRecords, NumbersInTextsStayWhereTheFormatsHaveFigures) {
  EXPECT_EQ(kept_json(R"({"train.steps": "5", "loss": "nan", "kind": "5",
                          "complaints": ["5"], "groups": ["5"], "train": "5"})"),
            json::parse(R"({"train.steps": "5", "loss": "nan", "kind": "text-1",
                            "complaints": ["text-1"], "groups": ["text-1"], "train": "text-1"})"));
}

TEST(KnownRecords, FiguresStayUnderNamesThatTheSiteChooses) {
  EXPECT_EQ(kept_json(R"({"val_losses": {"loss": 4.5, "jane": null},
                          "sources": {"jane": {"tokens": 5}},
                          "counters": {"disk read": 1, "link eth0": 2},
                          "facts": {"memory GiB": "24", "door": "0815"}})"),
            json::parse(R"({"val_losses": {"text-1": 4.5, "text-2": null},
                            "sources": {"text-2": {"tokens": 5}},
                            "counters": {"disk read": 1, "text-3": 2},
                            "facts": {"memory GiB": "24", "text-4": "text-5"}})"));
}

TEST(KnownRecords, OtherFilesAreRecordsIfTheySayTheirSchemaAndHaveKnownFieldsAlone) {
  KnownRecords records;
  EXPECT_EQ(json::parse(records.keep("a.json", R"({"schema": 2, "command": "coll"})").text),
            json::parse(R"({"schema": 2, "command": "coll"})"));
  EXPECT_THROW(records.keep("a.json", R"({"command": "coll"})"), DataError);
  EXPECT_THROW(records.keep("a.json", R"({"schema": 2, "pin": 4711})"), DataError);
  EXPECT_THROW(records.keep("a.json", R"({"schema": 4711, "command": "coll"})"), DataError);
  EXPECT_THROW(records.keep("a.json", R"({"schema": 2})"), DataError);
  EXPECT_THROW(records.keep("a.json", "4711"), DataError);
  EXPECT_THROW(records.keep("metrics.json", "[4711]"), DataError);
  EXPECT_THROW(records.keep("a.yaml", "steps: 5\n"), DataError);
  EXPECT_EQ(records.keep("a.jsonl", "{\"schema\":1,\"time\":5}\n{\"time\":6}\n").text,
            "{\"schema\":1,\"time\":5}\n");
  EXPECT_THROW(records.keep("a.jsonl", "{\"time\":6}\n"), DataError);
}

TEST(KnownRecords, TheSiteChoosesTheEnvironment) {
  EXPECT_EQ(
      kept_json(R"({"environment": {"NCCL_IB_HCA": "bf16", "OMP_NUM_THREADS": "2"}})"),
      json::parse(R"({"environment": {"NCCL_IB_HCA": "text-1", "OMP_NUM_THREADS": "text-2"}})"));
}

TEST(KnownRecords, PseudonymsOfTwoArchivesDiffer) {
  EXPECT_EQ(KnownRecords("7d20").keep("metrics.jsonl", "{\"host\":\"n1\",\"kind\":\"x\"}\n").text,
            "{\"host\":\"host-7d20-1\",\"kind\":\"text-7d20-1\"}\n");
}

TEST(KnownRecords, NamesThatAreFieldsBecomePseudonymsToo) {
  EXPECT_EQ(kept_json(R"({"nodes": {"n1": {"loss": 1}, "n2": {"loss": 2}}})"),
            json::parse(R"({"nodes": {"host-1": {"loss": 1}, "host-2": {"loss": 2}}})"));
}

TEST(KnownRecords, PartsOfNamesAreNoFields) {
  EXPECT_EQ(kept_json(R"({"nodes": {"n1.site.org": 1, "train.steps": 2}})"),
            json::parse(R"({"nodes": {"host-1": "host-2", "train.steps": 2}})"));
  EXPECT_EQ(kept(".yaml", "nodes: {n1.site.org: 1}\ntrain.steps: 2\n"),
            "nodes:\n  host-1.text-1.text-2: text-3\ntrain:\n  steps: 2\n");
}

TEST(KnownRecords, NamesMayConsistOfWordsOfTheProgram) {
  EXPECT_EQ(kept_json(R"({"rows": [{"name": "gemm m=128 time_us"}, {"name": "gemm jane"},
                                     {"kind": "gemm time_us"}], "name": "gemm"})"),
            json::parse(R"({"rows": [{"name": "gemm m=128 time_us"}, {"name": "text-1"},
                                     {"kind": "text-2"}], "name": "text-3"})"));
}

TEST(KnownRecords, WordsThatTheSiteChoosesLeaveNoComposedText) {
  EXPECT_EQ(kept_json(R"({"details": "config=4711 m=1", "agreed": [{"name": "host=bf16"}],
                          "limits": {"train config=4711 step_ms": 5, "gemm m=1 time_us": 6}})"),
            json::parse(R"({"details": "text-1", "agreed": [{"name": "text-2"}],
                            "limits": {"text-3": 5, "gemm m=1 time_us": 6}})"));
}

TEST(KnownRecords, TruthIsATextWhereTheSiteChoosesIt) {
  EXPECT_EQ(kept(".yaml", "run: {name: true}\nlaunch: {tls: true}\nmodel: {alibi: false}\n"),
            "run:\n  name: text-1\nlaunch:\n  tls: true\nmodel:\n  alibi: false\n");
}

TEST(KnownRecords, NumbersLeaveNoFieldThatHasNone) {
  EXPECT_EQ(
      kept_json(R"({"accepted": 4711, "fmt": 4711, "findings": [4711], "loss_bits": "4711"})"),
      json::parse(R"({"accepted": "text-1", "fmt": "text-1", "findings": ["text-1"],
                            "loss_bits": "text-1"})"));
}

TEST(KnownRecords, VersionsStayAndAddressesDoNot) {
  EXPECT_EQ(kept_json(R"({"rows": [{"fmt": "9.1.0", "mpi": "Open MPI v4.1.4"},
                                                 {"fmt": "10.1.2.3"}, {"host": "1.2.3"}]})"),
            json::parse(R"({"rows": [{"fmt": "9.1.0", "mpi": "Open MPI v4.1.4"},
                                     {"fmt": "text-1"}, {"host": "host-1"}]})"));
}

TEST(KnownRecords, BitsOfFloatsStayInTheirFieldsOnly) {
  EXPECT_EQ(kept_json(R"({"loss_bits": "0x4020000a", "kind": "4020000a",
                                          "val_loss_bits": "deadbeef1"})"),
            json::parse(R"({"kind": "text-1", "loss_bits": "0x4020000a",
                            "val_loss_bits": "text-2"})"));
}

TEST(KnownRecords, ConfigurationsStayConfigurations) {
  const std::string yaml =
      "model:  # of the team jane\n"
      "  preset: tiny-gpt2\n"
      "  hidden: 64\n"
      "data:\n"
      "  train: [{path: /users/jane/x, weight: 2}]\n"
      "  sequence: ~\n"
      "optimizer: {betas: [0.9, 0.95], schedule: {kind: cosine}}\n"
      "parallel: {}\n"
      "comm: {bucket_bytes: 25MiB, async: true}\n";
  const std::string strict = kept(".yaml", yaml);
  EXPECT_EQ(strict,
            "model:\n  preset: tiny-gpt2\n  hidden: 64\n"
            "data:\n  train: [{path: text-1, weight: 2}]\n  sequence: ~\n"
            "optimizer:\n  betas: [0.9, 0.95]\n  schedule.kind: cosine\n"
            "parallel: {}\n"
            "comm:\n  bucket_bytes: 25MiB\n  async: true\n");
  EXPECT_NO_THROW(parse_config(strict, "strict.yaml"));
}

TEST(KnownRecords, NumbersOfYamlAreNumbers) {
  EXPECT_EQ(kept(".yaml", "steps: nan(secret)\nseed: 12secret\nlr: 1e-4\nlog_bytes: 64K\n"),
            "steps: text-1\nseed: text-2\nlr: 1e-4\nlog_bytes: 64K\n");
}

TEST(KnownRecords, DamagedLinesAreLeftOutAndCounted) {
  const KnownRecords::Kept lines = KnownRecords().keep(
      "metrics.jsonl", "{\"step\": 1}\nsecret\n[\"secret\"]\n{\"step\": 2}\n{\"step\": 3, \"loss");
  EXPECT_EQ(lines.text, "{\"step\":1}\n{\"step\":2}\n");
  EXPECT_EQ(lines.removed, 3);
}

TEST(KnownRecords, FreeAndDamagedTextIsNoRecord) {
  KnownRecords records;
  EXPECT_THROW(records.keep("metrics.log", "{}"), DataError);
  EXPECT_THROW(records.keep("metrics", "{}"), DataError);
  EXPECT_THROW(records.keep("metrics.json", "{\"step\": "), DataError);
  EXPECT_THROW(records.keep("metrics.json", std::string(100, '[')), DataError);
  EXPECT_THROW(records.keep("metrics.json", R"({"step": 1, "step": 2})"), DataError);
  EXPECT_THROW(records.keep("config.yaml", "a: [b\n"), DataError);
  EXPECT_THROW(records.keep("config.yaml", "a: &x 1\nb: *x\n"), DataError);
  EXPECT_EQ(records.keep("DONE", "{\"step\": 5}").text, "{\n  \"step\": 5\n}\n");
}

TEST(KnownRecords, OnlyNamesOfFilesThatTheProgramWritesStay) {
  KnownRecords records;
  EXPECT_EQ(records.keep_path("logs/rank-00012.jsonl"), "logs/rank-00012.jsonl");
  EXPECT_EQ(records.keep_path("metrics.jsonl"), "metrics.jsonl");
  EXPECT_EQ(records.keep_path("DONE"), "DONE");
  EXPECT_EQ(records.keep_path("jane/metrics.jsonl"), "file-1/metrics.jsonl");
  EXPECT_EQ(records.keep_path("jane/secret.json"), "file-1/file-2.json");
  EXPECT_EQ(records.keep_path("checkpoints/"), "checkpoints/");
  EXPECT_EQ(records.keep_path("a.secret"), "file-3");
  EXPECT_EQ(records.keep_path("rank-secret.log"), "file-4.log");
  EXPECT_EQ(records.keep_path("rank-000001.log"), "file-5.log");
  EXPECT_EQ(records.keep_path("n0002-r01/rank-0000x.log"), "n0002-r01/file-6.log");
}

TEST(KnownFields, NoneIsCalledLikeASecret) {
  for (const std::string_view name : {"password", "pin", "token", "api_key", "user", "account"}) {
    EXPECT_FALSE(is_known_field(name)) << name;
  }
  std::ifstream source(kSources / "src/study/records/known_fields.cc");
  std::set<std::string> fields;
  for (std::string word; source >> word;) {
    word.erase(std::remove(word.begin(), word.end(), '"'), word.end());
    if (is_known_field(word)) {
      fields.insert(word);
    }
  }
  EXPECT_GT(fields.size(), 300U);
  for (const std::string& field : fields) {
    EXPECT_EQ(redact_value(field, "4711").secrets, 0) << field;
  }
}

TEST(KnownFields, AllThatThePageOfMetricsNamesAreKnown) {
  std::ifstream page(kSources / "docs/metrics.md");
  std::vector<std::string> fields;
  for (std::string line; std::getline(page, line) && !line.starts_with("## Prometheus");) {
    for (std::size_t at = line.find('`'); line.starts_with("| `") && at < line.find(" |");
         at = line.find('`', at + 1)) {
      const std::size_t end = line.find('`', at + 1);
      fields.push_back(line.substr(at + 1, end - at - 1));
      at = end;
    }
  }
  EXPECT_GE(fields.size(), 40U);
  for (const std::string& field : fields) {
    EXPECT_TRUE(is_known_field(field)) << field;
  }
}

TEST(KnownFields, TheSchemasAreKnown) {
  EXPECT_TRUE(is_known_field("busbw_GBps"));
  EXPECT_TRUE(is_known_word("loader_emulation"));
  EXPECT_TRUE(is_known_word("2 M N K"));
  EXPECT_FALSE(is_known_word("a text that nobody has chosen"));
}

}  // namespace
}  // namespace trireme

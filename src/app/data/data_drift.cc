#include <cmath>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/data/token_counts.h"
#include "io/data/unigram_entropy.h"
#include "io/quality/token_drift.h"
#include "mpi/self_communicator.h"
#include "src/app/access/folder_access.h"
#include "src/app/access/key_choice.h"
#include "src/app/command/standard_output.h"
#include "src/app/data/data_subcommands.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/interchange/export.h"
#include "src/train/start/open_dataset.h"
#include "src/train/start/tokenizer_identity.h"
#include "src/train/text/step_tokenizer.h"

namespace trireme {
namespace {

constexpr std::size_t kMostMoved = 20;  // tokens that are listed

struct DriftArguments {
  std::string before;
  std::string after;
  std::string checkpoint;
  KeyChoice keys;
  double most = -1;  // below 0: not given
  bool json = false;
};

constexpr double kMostBits = 1e6;  // no divergence has as many

struct Compared {
  std::string folder;
  DatasetManifest manifest;
  TokenCounts counts;
};

Compared read_one(const std::string& folder, SharedKeys& keys, Communicator& self,
                  const Access& access) {
  constexpr std::int64_t kAnyVocabulary = std::int64_t{1} << 32;
  const Dataset dataset = open_dataset(folder, kAnyVocabulary, self,
                                       {.keys = &keys, .accept_plain = true, .access = &access});
  std::optional<TokenCounts> counts = count_tokens(dataset, dataset.manifest().n_tokens());
  if (!counts || counts->tokens == 0) {
    throw DataError(
        fmt::format("{}: {}", folder, counts ? "it has no tokens" : "its vocabulary is too large"));
  }
  return {folder, dataset.manifest(), *std::move(counts)};
}

void check_comparable(const Compared& before, const Compared& after) {
  if (before.manifest.vocab != after.manifest.vocab ||
      before.manifest.tokenizer_digest != after.manifest.tokenizer_digest) {
    throw ConfigError(fmt::format(
        "{} and {} were packed with different tokenizers, so that their ids mean different texts: "
        "pack one of them again",
        before.folder, after.folder));
  }
}

// Returns the drift of the embeddings that the model of a checkpoint has for the tokens.
EmbeddingDrift drift_in(const DriftArguments& arguments, const Compared& before,
                        const Compared& after, Communicator& self, const Access& access) {
  StepKeys keys(self, with_access(arguments.keys.options(), access));
  CheckpointWeights weights =
      open_weights({.checkpoint = arguments.checkpoint, .out = {}, .plain = true}, self, keys);
  if (weights.model().vocab < before.manifest.vocab) {
    throw ConfigError(fmt::format("the model of {} has only {} token ids, and the datasets have {}",
                                  arguments.checkpoint, weights.model().vocab,
                                  before.manifest.vocab));
  }
  if (const auto other = other_tokenizer_of(weights.step(), tokenizer_of(before.manifest))) {
    throw ConfigError(fmt::format(
        "the model of {} was trained on tokens of {}, and the datasets were packed with {}: its "
        "embeddings belong to other texts",
        printable(arguments.checkpoint), describe(*other),
        describe(tokenizer_of(before.manifest))));
  }
  std::vector<float> embedding = weights.read(std::string(token_matrix(weights.model().family)));
  // The rows of ids that the datasets cannot have come last.
  embedding.resize(static_cast<std::size_t>(before.manifest.vocab * weights.model().hidden));
  return embedding_drift(before.counts, after.counts, embedding);
}

nlohmann::ordered_json json_of(const Compared& each) {
  return {{"folder", each.folder},
          {"tokens", each.counts.tokens},
          {"documents", each.manifest.n_docs()},
          {"tokens_per_document",
           static_cast<double>(each.counts.tokens) / static_cast<double>(each.manifest.n_docs())},
          {"unigram_entropy_nats", unigram_entropy(each.counts)}};
}

nlohmann::ordered_json json_of(const Compared& before, const Compared& after,
                               const TokenDrift& drift,
                               const std::optional<EmbeddingDrift>& embeddings) {
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"before", json_of(before)},
                                 {"after", json_of(after)},
                                 {"divergence_bits", drift.divergence},
                                 {"unseen", drift.unseen}};
  if (embeddings) {
    json["embedding"] = {{"shift", embeddings->shift},
                         {"cosine", embeddings->cosine},
                         {"frechet", embeddings->frechet}};
  }
  json["moved"] = nlohmann::ordered_json::array();
  for (const MovedToken& token : drift.moved) {
    json["moved"].push_back({{"token", token.token},
                             {"before", token.before},
                             {"after", token.after},
                             {"bits", token.bits}});
  }
  return json;
}

void print_drift(const Compared& before, const Compared& after, const TokenDrift& drift,
                 const std::optional<EmbeddingDrift>& embeddings) {
  for (const Compared* const each : {&before, &after}) {
    fmt::print("{}: {} in {}, unigram entropy {:.4f} nats\n", printable(each->folder),
               counted(each->counts.tokens, "token"), counted(each->manifest.n_docs(), "document"),
               unigram_entropy(each->counts));
  }
  fmt::print("divergence of the tokens  {:.6f} bits (0: the same shares, 1: no token in common)\n",
             drift.divergence);
  fmt::print("unseen before             {:.4f} % of the tokens\n", 100 * drift.unseen);
  if (embeddings) {
    fmt::print(
        "embeddings                mean shifted by {:.4f} standard deviations, cosine {:.6f}, "
        "Frechet distance {:.6g}\n",
        embeddings->shift, embeddings->cosine, embeddings->frechet);
  }
  for (const MovedToken& token : drift.moved) {
    fmt::print("  token {:>7}  {:.4f} % before, {:.4f} % after\n", token.token, 100 * token.before,
               100 * token.after);
  }
}

void run_drift(const DriftArguments& arguments, const Access& access, int& exit_code) {
  SelfCommunicator self;
  SharedKeys keys(self, arguments.keys.options().uris);
  const Compared before = read_one(arguments.before, keys, self, access);
  const Compared after = read_one(arguments.after, keys, self, access);
  check_comparable(before, after);
  const TokenDrift drift = token_drift(before.counts, after.counts, kMostMoved);
  std::optional<EmbeddingDrift> embeddings;
  if (!arguments.checkpoint.empty()) {
    embeddings = drift_in(arguments, before, after, self, access);
  }
  if (arguments.json) {
    print_json(json_of(before, after, drift, embeddings));
  } else {
    print_drift(before, after, drift, embeddings);
  }
  if (arguments.most >= 0 && drift.divergence > arguments.most) {
    fmt::print(stderr, "trireme: the divergence of {:.6f} bits is above --at-most {:g}\n",
               drift.divergence, arguments.most);
    exit_code = static_cast<int>(ExitCode::below_threshold);
  }
}

}  // namespace

void add_data_drift(CommandLine& data, const AccessSource& access, int& exit_code) {
  CommandLine& command =
      data.add_command("drift", "Compare how often tokens occur in two datasets");
  const auto arguments = std::make_shared<DriftArguments>();
  command.add_option("BEFORE", arguments->before, "A dataset, such as that of the training")
      .required();
  command.add_option("AFTER", arguments->after, "A dataset with the same tokenizer").required();
  command
      .add_option("--checkpoint", arguments->checkpoint,
                  "Also compare the embeddings that the model of this checkpoint, or of the newest "
                  "in this folder, has for the tokens")
      .type_name("DIR");
  command
      .add_option("--at-most", arguments->most,
                  "Exit with 4 if the divergence is larger than this many bits")
      .no_default()
      .check(within(0.0, kMostBits))
      .type_name("BITS");
  arguments->keys.add_to(command);
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(
      "Example:\n"
      "  trireme data drift data/text/train data/questions \\\n"
      "    --checkpoint runs/first/checkpoints");
  command.callback([arguments, access, &exit_code] { run_drift(*arguments, access(), exit_code); });
}

}  // namespace trireme

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/data/dataset_list.h"
#include "src/app/command/standard_output.h"
#include "src/app/data/data_subcommands.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

struct ListArguments {
  std::string folder = ".";
  bool json = false;
};

nlohmann::ordered_json to_json(const FoundDataset& found) {
  nlohmann::ordered_json object = {{"folder", found.folder.string()},
                                   {"valid", found.manifest.has_value()}};
  if (!found.manifest) {
    object["problem"] = found.problem;
    return object;
  }
  const DatasetManifest& m = *found.manifest;
  object["tokens"] = m.n_tokens();
  object["documents"] = m.n_docs();
  object["shards"] = m.shards.size();
  object["bytes"] = m.bytes();
  object["tokenizer"] = m.tokenizer;
  object["vocab"] = m.vocab;
  object["encrypted"] = m.is_encrypted();
  if (m.is_open()) {
    object["digest"] = m.digest();
  }
  return object;
}

// Prints at most 80 columns for names of up to 15 characters, besides the folder, which is last.
void print_row(const FoundDataset& found) {
  const std::string folder = printable(found.folder.string());
  if (!found.manifest) {
    fmt::print("{:>9} {:>9} {:>6} {:>11} {:>7}  {:<12} {}\n  INVALID: {}\n", "-", "-", "-", "-",
               "-", "-", folder, printable(found.problem));
    return;
  }
  const DatasetManifest& m = *found.manifest;
  fmt::print("{:>9} {:>9} {:>6} {:>11} {:>7}  {:<12} {}\n",
             format_count(static_cast<double>(m.n_tokens())),
             format_count(static_cast<double>(m.n_docs())), m.shards.size(),
             format_bytes(m.bytes()), m.vocab, printable(m.tokenizer),
             m.is_encrypted() ? folder + " (encrypted)" : folder);
}

void run_list(const ListArguments& arguments) {
  const std::vector<FoundDataset> found = list_datasets(arguments.folder);
  if (arguments.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const FoundDataset& dataset : found) {
      list.push_back(to_json(dataset));
    }
    print_json({{"schema", 1}, {"datasets", list}});
    return;
  }
  if (found.empty()) {
    throw NotFound(fmt::format("{}: no datasets here or below: make one with trireme data pack",
                               arguments.folder));
  }
  fmt::print("{:>9} {:>9} {:>6} {:>11} {:>7}  {:<12} {}\n", "tokens", "documents", "shards", "size",
             "vocab", "tokenizer", "folder");
  for (const FoundDataset& dataset : found) {
    print_row(dataset);
  }
}

}  // namespace

void add_data_list(CommandLine& data) {
  CommandLine& command = data.add_command("ls", "List the datasets in a folder and below it");
  const auto arguments = std::make_shared<ListArguments>();
  command.add_option("DIR", arguments->folder, "The folder to look through");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(
      "Reads manifests and the sizes of shards, no tokens; trireme data verify reads every byte.\n"
      "Example:\n  trireme data ls /data");
  command.callback([arguments] { run_list(*arguments); });
}

}  // namespace trireme

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/data/dataset_keys.h"
#include "io/quality/quality_report.h"
#include "io/tokens/dataset_tokenizer.h"
#include "src/app/access/folder_access.h"
#include "src/app/access/key_choice.h"
#include "src/app/command/standard_output.h"
#include "src/app/data/byte_progress.h"
#include "src/app/data/data_subcommands.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/train/start/open_dataset.h"

namespace trireme {
namespace {

struct ReportArguments {
  std::vector<std::string> inputs;
  std::vector<std::string> exclude;
  std::string field = "text";
  KeyChoice keys;
  bool json = false;
};

constexpr std::array kQuantiles = {std::pair{"p10", 0.1}, std::pair{"median", 0.5},
                                   std::pair{"p90", 0.9}, std::pair{"p99", 0.99}};

nlohmann::ordered_json lengths_json(const LengthCounts& lengths) {
  if (lengths.count() == 0) {
    return nullptr;
  }
  nlohmann::ordered_json json = {
      {"sum", lengths.sum()},
      {"mean", static_cast<double>(lengths.sum()) / static_cast<double>(lengths.count())},
      {"least", lengths.least()}};
  for (const auto& [name, q] : kQuantiles) {
    json[name] = lengths.quantile(q);
  }
  json["most"] = lengths.most();
  json["by_power_of_two"] = lengths.by_power_of_two();
  return json;
}

nlohmann::ordered_json quality_json(const ReportArguments& arguments, const QualityReport& report) {
  const TextQuality& quality = report.quality;
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"inputs", arguments.inputs},
                                 {"documents", report.documents},
                                 {"lengths",
                                  {{"bytes", lengths_json(quality.bytes)},
                                   {"characters", lengths_json(quality.characters)},
                                   {"tokens", lengths_json(quality.tokens)}}}};
  json["duplicates"] = {
      {"equal", report.equal},
      {"equal_or_near", report.near ? nlohmann::ordered_json(*report.near) : nullptr}};
  if (!report.has_texts) {
    return json;
  }
  json["not_utf8"] = quality.not_utf8;
  json["scripts"] = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < kScriptNames.size(); ++i) {
    if (quality.letters.at(i) > 0) {
      json["scripts"][std::string(kScriptNames.at(i))] = {{"letters", quality.letters.at(i)},
                                                          {"documents", quality.documents.at(i)}};
    }
  }
  for (std::size_t i = 0; i < kPatternNames.size(); ++i) {
    json["patterns"][std::string(kPatternNames.at(i))] = {
        {"found", quality.patterns.at(i)}, {"documents", quality.documents_with.at(i)}};
  }
  json["files"] = report.inputs.files;
  json["binary_files_skipped"] = report.inputs.binary_files;
  json["empty_documents_skipped"] = report.inputs.empty_documents;
  json["archive_members_skipped"] = report.inputs.skipped_members;
  return json;
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void print_lengths(const char* unit, const LengthCounts& lengths) {
  if (lengths.count() == 0) {
    return;
  }
  fmt::print(
      "{:<12} {:>12} in all; each {} to {}, 10 % below {}, half below {}, 90 % below {}, "
      "99 % below {}\n",
      unit, lengths.sum(), lengths.least(), lengths.most(), lengths.quantile(0.1),
      lengths.quantile(0.5), lengths.quantile(0.9), lengths.quantile(0.99));
}

void print_quality(const QualityReport& report) {
  const TextQuality& quality = report.quality;
  fmt::print("{:<12} {:>12}\n", "documents", report.documents);
  print_lengths("bytes", quality.bytes);
  print_lengths("characters", quality.characters);
  print_lengths("tokens", quality.tokens);
  fmt::print("{:<12} {:>12} {:>6.2f} %  of the documents repeat an earlier one\n", "equal",
             report.equal, percent(report.equal, report.documents));
  if (report.near) {
    fmt::print("{:<12} {:>12} {:>6.2f} %  repeat an earlier one or nearly do (MinHash)\n", "near",
               *report.near, percent(*report.near, report.documents));
  }
  if (!report.has_texts) {
    fmt::print("The tokenizer is not known, so that texts are not looked at.\n");
    return;
  }
  fmt::print("{:<12} {:>12}\n", "not UTF-8", quality.not_utf8);
  std::int64_t letters = 0;
  for (const std::int64_t count : quality.letters) {
    letters += count;
  }
  std::vector<std::size_t> scripts;
  for (std::size_t i = 0; i < kScriptNames.size(); ++i) {
    if (quality.letters.at(i) > 0) {
      scripts.push_back(i);
    }
  }
  std::ranges::stable_sort(scripts, std::greater<>(),
                           [&](std::size_t i) { return quality.letters.at(i); });
  for (const std::size_t i : scripts) {
    fmt::print("{:<12} {:>12} {:>6.2f} %  of the letters; most of those in {}\n",
               kScriptNames.at(i), quality.letters.at(i), percent(quality.letters.at(i), letters),
               counted(quality.documents.at(i), "document"));
  }
  for (std::size_t i = 0; i < kPatternNames.size(); ++i) {
    fmt::print("{:<12} {:>12} in {}\n", kPatternNames.at(i), quality.patterns.at(i),
               counted(quality.documents_with.at(i), "document"));
  }
}

QualityReport report_of_dataset(const ReportArguments& arguments, Communicator& comm,
                                const Access& access, const PackProgress& progress) {
  const std::string& folder = arguments.inputs.front();
  check_dataset_access(access, Deed::read, folder);
  SharedKeys keys(comm, arguments.keys.options().uris);
  constexpr std::int64_t kAnyVocabulary = std::int64_t{1} << 32;
  const Dataset dataset = open_dataset(folder, kAnyVocabulary, comm,
                                       {.keys = &keys, .accept_plain = true, .access = &access});
  check_named_keys(dataset.manifest(), arguments.keys, folder);
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer_of(folder, dataset.manifest());
  return report_on_dataset(dataset, tokenizer.get(), rank_group(comm), progress);
}

QualityReport report_of_texts(const ReportArguments& arguments, const RankGroup& ranks,
                              const PackProgress& progress) {
  std::string listed;
  if (ranks.rank == 0) {
    listed = input_files_text(find_input_files(arguments.inputs, arguments.exclude, {}));
  }
  const InputFiles found = parse_input_files(ranks.broadcast(listed));
  return report_on_texts(found.files, arguments.field, ranks, progress);
}

void run_report(const ReportArguments& arguments, Communicator& comm, const Access& access) {
  const RankGroup ranks = rank_group(comm);
  const ByteProgress progress("report", ranks.rank);
  const bool is_dataset = ranks.broadcast(ranks.rank == 0 && arguments.inputs.size() == 1 &&
                                                  is_dataset_folder(arguments.inputs.front())
                                              ? "dataset"
                                              : "texts") == "dataset";
  const QualityReport report = is_dataset ? report_of_dataset(arguments, comm, access, progress)
                                          : report_of_texts(arguments, ranks, progress);
  if (ranks.rank != 0) {
    return;
  }
  if (report.documents == 0) {
    throw DataError(fmt::format(
        "{}: there is nothing to report on, because the inputs contain no text (files read: {}, "
        "skipped as binary: {}); of a folder with several datasets, name one: DIR/train",
        printable(arguments.inputs.front()), report.inputs.files, report.inputs.binary_files));
  }
  if (arguments.json) {
    print_json(quality_json(arguments, report));
  } else {
    print_quality(report);
  }
}

}  // namespace

void add_data_report(CommandLine& data, const CommunicatorAccess& communicator,
                     const AccessSource& access) {
  CommandLine& command = data.add_command(
      "report",
      "Report on a dataset or on texts: lengths, scripts, duplicates, and what looks like personal "
      "data");
  const auto arguments = std::make_shared<ReportArguments>();
  command
      .add_option("INPUT", arguments->inputs,
                  "The folder of one dataset, or files and folders of text as for pack")
      .required();
  command
      .add_option(
          "--exclude", arguments->exclude,
          "Leave out files and folders whose name matches this shell pattern; can be repeated")
      .type_name("PATTERN");
  command
      .add_option("--field", arguments->field,
                  "The field with the text in the objects of .jsonl files, and of .json files in "
                  "archives")
      .type_name("NAME");
  arguments->keys.add_to(command);
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(
      "Examples:\n"
      "  trireme data report corpus/\n"
      "  mpirun -n 8 trireme data report /data/c4/train --json");
  command.callback(
      [arguments, communicator, access] { run_report(*arguments, communicator(), access()); });
}

}  // namespace trireme

#include "src/app/model/sparsify_command.h"

#include <charconv>
#include <memory>

#include <nlohmann/json.hpp>

#include "src/app/access/folder_access.h"
#include "src/app/access/key_choice.h"
#include "src/app/command/standard_output.h"
#include "src/app/model/model_provenance.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/units.h"
#include "src/interchange/sparsify.h"
#include "src/train/run/access_check.h"

namespace trireme {
namespace {

struct SparsifyArguments {
  SparsifyOptions prune;
  double sparsity = 0;  // 0: not given
  std::string pattern;  // empty: not given
  KeyChoice keys;
  bool ema = false;
  bool json = false;
};

// Accepts a number above 0 and below 1.
Check proper_share() {
  return {"", [](const std::string& text) {
            double share = 0;
            const char* const end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, share);
            const bool is_share = error == std::errc{} && stop == end && share > 0 && share < 1;
            return is_share ? std::string()
                            : fmt::format("'{}' is not a number above 0 and below 1", text);
          }};
}

double percent(std::int64_t zeros, std::int64_t elements) {
  return elements == 0 ? 0 : 100 * static_cast<double>(zeros) / static_cast<double>(elements);
}

void print_as_json(const SparsifyArguments& arguments, const SparsifyResult& result) {
  nlohmann::ordered_json products = nlohmann::ordered_json::array();
  for (const SparsifiedProduct& product : result.products) {
    products.push_back({{"name", product.name},
                        {"matrices", product.matrices},
                        {"elements", product.elements},
                        {"zeros", product.zeros}});
  }
  print_json({{"schema", 1},
              {"path", arguments.prune.out.string()},
              {"checkpoint", result.checkpoint.string()},
              {"step", result.step},
              {"products", products},
              {"parameters", result.parameters},
              {"zeros", result.zeros},
              {"bytes", result.bytes},
              {"seconds", result.seconds}});
}

void print_result(const SparsifyArguments& arguments, const SparsifyResult& result) {
  for (const std::string& why : result.skipped) {
    fmt::print(stderr, "trireme: skipped {}\n", printable(why));
  }
  if (arguments.json) {
    print_as_json(arguments, result);
    return;
  }
  fmt::print("{}: from {}, step {}; {} in {}\n", printable(arguments.prune.out.string()),
             printable(result.checkpoint.string()), result.step, format_bytes(result.bytes),
             format_seconds(result.seconds));
  for (const SparsifiedProduct& product : result.products) {
    fmt::print("  {:<12} {:>5.1f} % zero in {}\n", product.name,
               percent(product.zeros, product.elements),
               product.matrices == 1 ? "1 matrix" : fmt::format("{} matrices", product.matrices));
  }
  fmt::print("  {:<12} {:>5.1f} % zero\n", "all weights", percent(result.zeros, result.parameters));
}

void sparsify_with(SparsifyArguments& arguments, AppContext& context) {
  const bool by_share = arguments.sparsity > 0;
  if (by_share == !arguments.pattern.empty()) {
    throw UsageError(fmt::format(
        "trireme sparsify: give {} --sparsity and --pattern; 'trireme sparsify --help' shows how "
        "to use it",
        by_share ? "only one of" : "one of"));
  }
  context.status.phase = "sparsify";
  Communicator& world = context.session().world();
  SparsifyOptions& options = arguments.prune;
  if (by_share) {
    options.sparsity = arguments.sparsity;
  }
  for (std::string& name : options.products) {  // as in "q_proj, v_proj"
    std::erase(name, ' ');
  }
  options.weights = arguments.ema ? Weights::average : Weights::latest;
  options.admit = [&](const std::optional<Label>& label) {
    check_on_all_ranks(context.access(), {Deed::write, Thing::checkpoint, options.out, label},
                       world);
  };
  StepKeys keys(world, with_access(arguments.keys.options(), context.access()));
  const std::unique_ptr<const ModelProvenance> provenance = model_provenance(context, options.out);
  options.finish = [&](const std::filesystem::path& folder, const StepFolder& base) {
    provenance->sign_pruned(folder, base);
  };
  const SparsifyResult result = sparsify(options, world, keys);
  if (world.rank() == 0) {
    provenance->note(context.audit);
    if (!result.warning.empty()) {
      say("warning: " + result.warning);
    }
    print_result(arguments, result);
  }
}

}  // namespace

void add_sparsify_command(CommandLine& app, AppContext& context) {
  CommandLine& command =
      app.add_command("sparsify", "Prune a checkpoint: set its smallest weights to zero");
  const auto arguments = std::make_shared<SparsifyArguments>();
  command
      .add_option("CHECKPOINT", arguments->prune.checkpoint,
                  "A checkpoint, or a folder of checkpoints: then its newest valid one")
      .required();
  command
      .add_option("--out", arguments->prune.out,
                  "The new checkpoint's folder, which must not exist")
      .required()
      .type_name("DIR");
  command
      .add_option("--sparsity", arguments->sparsity,
                  "The share of each matrix that becomes zero, above 0 and below 1")
      .check(proper_share())
      .no_default()
      .type_name("SHARE");
  command
      .add_option("--pattern", arguments->pattern,
                  "Zero the two smallest of each four consecutive inputs, as GPUs multiply them")
      .check(one_of({"2:4"}));
  command
      .add_option("--products", arguments->prune.products,
                  "The matrix products to prune, by the names of their modules, such as q_proj; "
                  "all: those inside the layers; lm_head: an output matrix that is not tied "
                  "(default: all)")
      .delimiter(',')
      .one_value_per_use()
      .type_name("NAME[,NAME]");
  command.add_flag("--ema", arguments->ema,
                   "Prune the moving average of the weights that optimizer.ema has kept");
  arguments->keys.add_to(command);
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(
      "Examples:\n"
      "  trireme sparsify runs/first/checkpoints --out checkpoints/half --sparsity 0.5\n"
      "  trireme sparsify checkpoints/llama-1b --out checkpoints/sparse --pattern 2:4\n"
      "The new checkpoint has no optimizer state. A run with checkpoint.init_from and "
      "optimizer.keep_zeros=true trains what is left. To delete old checkpoints, see trireme ckpt "
      "prune.");
  command.callback([arguments, &context] { sparsify_with(*arguments, context); });
}

}  // namespace trireme

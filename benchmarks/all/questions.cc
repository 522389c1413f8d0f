#include "benchmarks/all/questions.h"

#include <algorithm>

#include "benchmarks/all/budget.h"
#include "benchmarks/ckpt/model_ckpt.h"
#include "benchmarks/coll/coll.h"
#include "benchmarks/gemm/gemm.h"
#include "benchmarks/io/io.h"
#include "benchmarks/loader/emulation.h"
#include "benchmarks/mem/mem.h"
#include "benchmarks/noise/noise.h"
#include "benchmarks/p2p/p2p.h"
#include "benchmarks/p2p/pairs.h"
#include "benchmarks/per_node.h"
#include "benchmarks/provenance.h"
#include "benchmarks/step/step.h"
#include "src/base/error.h"
#include "src/train/memory/available_memory.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kFileBytes = std::int64_t{64} << 20;
// STREAM moves 20 times an array per round; six rounds at 5 GB/s.
constexpr double kArrayBytesPerSecond = 40e6;
constexpr double kMiB = 1 << 20;
constexpr double kLargeModelSeconds = 40;  // from here on, a step of GPT-2 124M fits

// Sizes are rungs of these ladders, so that nodes of different speeds measure the same, and
// `trireme compare` finds equal rows.
const std::vector<double> kArrayMiB = {8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
const std::vector<double> kStonewallSeconds = {0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};

void demand_right(std::int64_t wrong, const char* what) {
  if (wrong > 0) {
    throw DeviceError(fmt::format("{} came out wrong: run bench {} alone", wrong, what));
  }
}

QuestionResults ask_gemm(AppContext& context, const QuestionTime& time) {
  BenchGemmOptions options;
  options.sizes = {512, 2048};
  options.duration = time.seconds;
  options.rows = time.rows;
  const BenchGemmResult result = bench_gemm(options, context.session());
  demand_right(result.wrong, "gemm");
  return {result.results};
}

// Returns the size of STREAM's arrays: as large as STREAM demands, or what a slow memory passes
// through in the time, or what fits into the memory.
std::int64_t mem_bytes(double seconds) {
  const double cache = static_cast<double>(last_level_cache_bytes());
  const double most =
      std::min(kArrayBytesPerSecond * seconds, static_cast<double>(available_memory().bytes) / 8);
  double mib = largest_rung(kArrayMiB, most / kMiB);
  for (const double rung : kArrayMiB) {
    if (cache > 0 && rung * kMiB >= 4 * cache) {
      mib = std::min(mib, rung);
      break;
    }
  }
  return static_cast<std::int64_t>(mib * kMiB);
}

// Lets the rows that are kept name this node, as on_each_node() does with those that it returns.
void name_host(AppContext& context, const QuestionTime& time) {
  time.rows->begin({{"host", context.session().place().node}});
}

QuestionResults ask_mem(AppContext& context, const QuestionTime& time) {
  name_host(context, time);
  return {on_each_node(context, SecondRank::waits, [&] {
            BenchMemOptions options;
            options.bytes = mem_bytes(time.for_sizes);
            options.duration = time.seconds;
            options.rows = time.rows;
            const BenchMemResult own = bench_mem(options);
            demand_right(own.wrong, "mem");
            return NodeReport{own.results, ""};
          }).results};
}

QuestionResults ask_noise(AppContext& context, const QuestionTime& time) {
  name_host(context, time);
  return {on_each_node(context, SecondRank::waits, [&] {
            BenchNoiseOptions options;
            options.duration = time.seconds;
            options.rows = time.rows;
            return NodeReport{bench_noise(options), ""};
          }).results};
}

QuestionResults ask_coll(AppContext& context, const QuestionTime& time) {
  BenchCollOptions options;
  options.ops = {Collective::all_reduce, Collective::all_gather};
  options.min_bytes = 1024;
  options.max_bytes = std::int64_t{16} << 20;
  options.factor = 128;  // 1 KiB, 128 KiB and 16 MiB
  options.duration = time.seconds;
  options.rows = time.rows;
  const BenchCollResult result = bench_coll(options, context.session());
  demand_right(result.wrong, "coll");
  return {result.results, result.left_out};
}

// The latency of a small message, and the bandwidth of large ones.
QuestionResults ask_p2p(AppContext& context, const QuestionTime& time) {
  Json all = Json::array();
  for (const bool latency : {true, false}) {
    BenchP2pOptions options;
    options.latency = latency;
    options.bandwidth = !latency;
    options.min_bytes = options.max_bytes = latency ? 8 : std::int64_t{1} << 20;
    options.iterations = 20;  // between two looks at the clock
    options.warmup = 2;
    options.duration = time.seconds / 2;
    options.rows = time.rows;
    const BenchP2pResult result = bench_p2p(options, context.session());
    demand_right(result.wrong, "p2p");
    all.insert(all.end(), result.results.begin(), result.results.end());
  }
  return {all};
}

QuestionResults ask_pairs(AppContext& context, const QuestionTime& time) {
  BenchPairsOptions options;
  options.duration = time.seconds;
  return {bench_pairs(options, context.session()).results};
}

// Writes stop in time, whatever the disk can do, and are short enough to be synced in time.
QuestionResults ask_io(AppContext& context, const std::filesystem::path& folder,
                       const QuestionTime& time) {
  BenchIoOptions options;
  options.folder = folder;
  options.layout.file_per_process = true;
  options.layout.block_bytes = kFileBytes;
  options.fsync = true;
  options.reorder = context.session().world().size() > 1;
  options.stonewall = largest_rung(kStonewallSeconds, time.for_sizes / 12);
  options.files = 100;
  options.file_bytes = 4096;
  options.duration = time.seconds / 2;
  options.rows = time.rows;
  const BenchIoResult result = bench_io(options, context.session());
  demand_right(result.wrong, "io");
  return {result.results};
}

QuestionResults ask_loader(AppContext& context, const std::filesystem::path& folder,
                           const QuestionTime& time) {
  EmulationOptions options;
  options.workload = "unet3d";
  options.folder = folder;
  options.scale = 0.02;
  options.data_bytes = 4 * kFileBytes;
  options.steps = 1000;
  options.duration = time.seconds;
  return {emulate_loader(options, context.session()).results};
}

QuestionResults ask_ckpt(AppContext& context, const std::filesystem::path& folder,
                         const QuestionTime& time) {
  ModelCkptOptions options;
  options.model = "llama3-8b";
  options.folder = folder;
  options.bytes = 2 * kFileBytes;
  options.duration = time.seconds;
  return {bench_model_ckpt(options, context.session())};
}

QuestionResults ask_step(AppContext& context, const QuestionTime& time) {
  BenchStepOptions options;
  options.model = time.for_sizes >= kLargeModelSeconds ? "gpt2-124m" : "small-gpt2";
  options.sequence = 128;
  options.micro_batch = 2;
  options.duration = time.seconds;
  return {Json::array({bench_step(options, context)})};
}

}  // namespace

std::vector<std::string> question_names() {
  return {"gemm", "mem", "noise", "coll", "p2p", "pairs", "io", "loader", "ckpt", "step"};
}

std::vector<Question> chosen(std::vector<Question> all, const std::vector<std::string>& only) {
  if (only.empty()) {
    return all;
  }
  std::vector<Question> some;
  for (Question& question : all) {
    if (std::find(only.begin(), only.end(), question.name) != only.end()) {
      some.push_back(std::move(question));
    }
  }
  if (some.empty()) {
    throw ConfigError("--only names nothing that one rank can measure: start more with mpirun");
  }
  return some;
}

std::vector<Question> questions_for(AppContext& context, const std::filesystem::path& folder) {
  using Ask = QuestionResults (*)(AppContext&, const QuestionTime&);
  using AskDisk =
      QuestionResults (*)(AppContext&, const std::filesystem::path&, const QuestionTime&);
  const auto ask = [&context](Ask question) {
    return [&context, question](const QuestionTime& time) { return question(context, time); };
  };
  const auto ask_disk = [&context, folder](AskDisk question) {
    return [&context, folder, question](const QuestionTime& time) {
      return question(context, folder, time);
    };
  };
  std::vector<Question> all = {{"gemm", 2, 1, ask(ask_gemm)},
                               {"mem", 3, 2, ask(ask_mem)},
                               {"noise", 1, 0.5, ask(ask_noise)}};
  if (context.session().world().size() > 1) {
    all.push_back({"coll", 2, 1, ask(ask_coll)});
    all.push_back({"p2p", 1, 1, ask(ask_p2p)});
    all.push_back({"pairs", 1, 1, ask(ask_pairs)});
  }
  all.push_back({"io", 3, 1.5, ask_disk(ask_io)});
  all.push_back({"loader", 2, 1.5, ask_disk(ask_loader)});
  all.push_back({"ckpt", 2, 1.5, ask_disk(ask_ckpt)});
  all.push_back({"step", 4, 4, ask(ask_step)});
  return all;
}

}  // namespace trireme

#include "src/train/memory/dry_parts.h"

#include <algorithm>
#include <new>

namespace trireme {

const Kernels& no_kernels() {
  static const Kernels table = {
      .name = "none",
      .matmul = [](Stream&, const Matmul&) {},
      .column_sum = [](Stream&, const ColumnSum&) {},
      .embedding_forward = [](Stream&, const EmbeddingForward&) {},
      .embedding_backward = [](Stream&, const EmbeddingBackward&) {},
      .layer_norm_forward = [](Stream&, const NormForward&) {},
      .layer_norm_backward = [](Stream&, const NormBackward&) {},
      .rms_norm_forward = [](Stream&, const NormForward&) {},
      .rms_norm_backward = [](Stream&, const NormBackward&) {},
      .rope = [](Stream&, const Rope&) {},
      .attention_forward = [](Stream&, const AttentionForward&) {},
      .attention_backward = [](Stream&, const AttentionBackward&) {},
      .gelu_forward = [](Stream&, View, ConstView) {},
      .gelu_backward = [](Stream&, View, ConstView, ConstView) {},
      .swiglu_forward = [](Stream&, View, ConstView, ConstView) {},
      .swiglu_backward = [](Stream&, View, View, ConstView, ConstView, ConstView) {},
      .dropout = [](Stream&, const Dropout&) {},
      .cross_entropy = [](Stream&, const CrossEntropy&) {},
      .softmax_part = [](Stream&, const SoftmaxPart&) {},
      .cross_entropy_of_parts = [](Stream&, const CrossEntropyOfParts&) {},
      .adamw = [](Stream&, const AdamW&) {},
      .sgd = [](Stream&, const Sgd&) {},
      .moving_average = [](Stream&, const MovingAverage&) {},
      .sums_of_squares = [](Stream&, double*, ConstView) {},
      .add = [](Stream&, View, ConstView) {},
      .add_chain = [](Stream&, View, const ConstView*, int) {},
      .cast = [](Stream&, View, ConstView) {},
      .fill = [](Stream&, View, float) {},
  };
  return table;
}

// calloc() takes large blocks from the kernel as they are, so that pages which are only read cost
// no memory.
DryMemory::DryMemory(std::int64_t readable) {
  constexpr std::size_t kAlignment = 64;
  std::size_t space = static_cast<std::size_t>(readable) + kAlignment;
  bytes_.reset(std::calloc(space, 1));
  if (bytes_ == nullptr) {
    throw std::bad_alloc();
  }
  aligned_ = bytes_.get();
  (void)std::align(kAlignment, space - kAlignment, aligned_, space);
}

void* DryMemory::take(std::int64_t) { return aligned_; }

namespace {

class Waited : public Pending::Operation {
 public:
  void wait() override { done_ = true; }
  bool reached() override { return done_; }
  void abandon() noexcept override {}

 private:
  bool done_ = false;
};

}  // namespace

DryCommunicator::DryCommunicator(int rank, int size, Done done)
    : Communicator(GroupMembers::of_world(
          rank, std::vector<std::string>(static_cast<std::size_t>(size), "nowhere"))),
      done_(done) {}

Pending DryCommunicator::start(const OperationRequest&) {
  return done_ == Done::at_once ? Pending() : Pending(std::make_shared<Waited>());
}

std::unique_ptr<Communicator> DryCommunicator::split(int, int, std::string_view) {
  return std::make_unique<DryCommunicator>(rank(), size(), done_);
}

DryParameters::DryParameters(ParameterStore& store, const ZeroLayout& layout, Pool& shared_pool)
    : store_(store),
      layout_(layout),
      shared_pool_(shared_pool),
      homes_(static_cast<std::size_t>(layout.buckets())) {
  // An address, for all who ask.
  static std::byte nowhere{};
  store.place(0, store.count(),
              {&nowhere, store.flat_elements(), store.compute_dtype(), store.pool().device()});
}

void DryParameters::bring(int bucket) {
  Home& absent = home(bucket);
  if (layout_.level() != 3 || absent.whole.data() != nullptr) {
    return;
  }
  absent.whole = shared_pool_.allocate(layout_.padded(bucket) * size_of(store_.compute_dtype()));
  bytes_ += absent.whole.bytes();
  peak_bytes_ = std::max(peak_bytes_, bytes_);
}

void DryParameters::need(ParameterId first, ParameterId end) {
  for (const int b : layout_.buckets_of(first, end)) {
    bring(b);
    home(b).wanted = false;
    ++home(b).users;
  }
}

void DryParameters::prefetch(ParameterId first, ParameterId end) {
  for (const int b : layout_.buckets_of(first, end)) {
    bring(b);
    home(b).wanted = true;
  }
}

void DryParameters::release(ParameterId first, ParameterId end) {
  for (const int b : layout_.buckets_of(first, end)) {
    Home& used = home(b);
    if (--used.users == 0 && !used.wanted) {
      bytes_ -= used.whole.bytes();
      used.whole = {};
    }
  }
}

}  // namespace trireme

#include "src/train/engine/flight_graphs.h"

#include <utility>

#include "src/train/engine/device_fault.h"

namespace trireme {
namespace {

std::vector<const void*> places_of(const ParameterStore& store) {
  std::vector<const void*> places;
  places.reserve(static_cast<std::size_t>(store.count()));
  for (ParameterId id = 0; id < store.count(); ++id) {
    places.push_back(store.compute(id).data);
  }
  return places;
}

// Copies the token ids in `from` to `copy`, whose memory is allocated once and never moves, because
// recorded kernels read it; `view` then shows them. No ids give an empty view.
void copy_ids(const ConstView& from, Tensor& copy, ConstView& view, DeviceContext& context) {
  if (from.empty()) {
    view = {};
    return;
  }
  if (copy.empty()) {
    copy = Tensor(context.state(), {from.count}, from.dtype);
  }
  context.stream().copy(copy.view(), from);
  view = copy.view();
}

}  // namespace

FlightGraphs::FlightGraphs(const Parts& parts)
    : parts_(parts),
      own_(DeviceContext::Beside{parts.context}),
      recorder_(own_.stream()),
      group_(parts.group, own_.exchange(), recorder_),
      residence_(parts.chunk.state.parameters(), recorder_),
      gradients_(parts.chunk.state.layout(), parts.chunk.state.reducer(), own_, recorder_,
                 [this](const View& first) { device_fault("step.gradient", first, own_); }),
      position_(own_.state(), {2}, DType::u32),
      loss_(own_.state(), {1}, DType::f64) {}

void FlightGraphs::place_tokens(const MicroBatch& micro_batch) {
  placed_.batch = micro_batch.batch;
  placed_.time = micro_batch.time;
  copy_ids(micro_batch.ids, ids_, placed_.ids, own_);
  copy_ids(micro_batch.targets, targets_, placed_.targets, own_);
}

void FlightGraphs::drop_recordings() {
  for (Recorded& recorded : passes_) {
    recorded.work = {};
  }
}

void FlightGraphs::begin(const MicroBatch& micro_batch, std::uint32_t step,
                         std::int64_t first_sample, float scale) {
  check(!busy_, "a micro-batch ends before the next begins");
  busy_ = true;
  place_tokens(micro_batch);
  if (parts_.drops) {
    const std::uint32_t position[2] = {step, static_cast<std::uint32_t>(first_sample)};
    own_.stream().copy(position_.view(), ConstView(position, 2, DType::u32));
  }
  const bool records = own_.device().kind == DeviceKind::cuda && begun_ > 0;
  const std::vector<const void*> places = places_of(parts_.chunk.parameters);
  if (!records) {
    mode_ = Mode::plain;
  } else if (mode_ == Mode::plain || scale != scale_ || places != places_) {
    drop_recordings();
    mode_ = Mode::record;
  } else {
    mode_ = Mode::repeat;
  }
  scale_ = scale;
  places_ = places;
  ++begun_;
}

Tensor FlightGraphs::pass(Pass pass, const Tensor& input, Run run, const Compute& compute,
                          bool is_last) {
  Recorded& recorded = passes_[static_cast<std::size_t>(pass)];
  if (!input.empty()) {
    if (recorded.input.empty()) {
      recorded.input = Tensor(own_.state(), input.shape(), input.dtype());
    }
    own_.stream().copy(recorded.input.view(), input.view());
  }
  if (!run.sample_losses.empty() && sample_losses_.empty()) {
    sample_losses_ = Tensor(own_.state(), {run.sample_losses.count}, DType::f64);
  }
  Tensor output;
  const auto work = [&] {
    Run here{.context = own_, .parameters = run.parameters};
    here.training = true;
    here.dropout = run.dropout;
    here.first_sample = run.first_sample;
    here.dropout_position = parts_.drops ? ConstView(position_.view()) : ConstView();
    here.loss_terms = run.loss_terms;
    here.loss = run.loss.empty() ? View{} : loss_.view();
    here.sample_losses = run.sample_losses.empty() ? View{} : sample_losses_.view();
    here.gradients = pass == Pass::forward ? nullptr : &gradients_;
    here.later = run.later;
    here.residence = run.residence == nullptr ? nullptr : &residence_;
    here.group = &group_;
    here.sequence_parallel = run.sequence_parallel;
    output = compute(placed_, recorded.input, here);
    if (is_last) {
      gradients_.finish();
    }
  };
  group_.begin();
  if (mode_ == Mode::repeat) {
    recorded.work.repeat(own_.stream());
  } else {
    if (mode_ == Mode::record) {
      recorded.work = recorder_.record(work);
    } else {
      work();
    }
    recorded.output = output.view();
    recorded.output_shape = output.shape();
  }
  busy_ = !is_last;
  if (recorded.output.empty()) {
    return {};
  }
  Tensor copy(parts_.context.activations(), recorded.output_shape, recorded.output.dtype);
  own_.stream().copy(copy.view(), recorded.output);
  return copy;
}

std::int64_t FlightGraphs::nodes() const {
  std::int64_t sum = 0;
  for (const Recorded& recorded : passes_) {
    sum += recorded.work.nodes();
  }
  return sum;
}

}  // namespace trireme

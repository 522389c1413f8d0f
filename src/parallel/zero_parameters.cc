#include "src/parallel/zero_parameters.h"

#include <algorithm>

namespace trireme {
ZeroParameters::ZeroParameters(ParameterStore& store, const ZeroLayout& layout,
                               const ZeroTools& tools)
    : store_(store),
      layout_(layout),
      tools_(tools),
      homes_(static_cast<std::size_t>(layout.buckets())) {
  if (layout.level() == 0) {
    store.allocate();
    bytes_ = peak_bytes_ = store.working_copies().bytes();
    return;
  }
  for (int b = 0; b < layout.buckets(); ++b) {
    if (layout.level() == 3) {
      home(b).own = zeroed(take(tools.context.state(), layout.block(b)));
    } else {
      home(b).whole = zeroed(take(tools.context.exchange_state(), layout.padded(b)));
      store.place(layout.bucket(b).begin, layout.bucket(b).end,
                  home(b).whole.view(store.compute_dtype()));
    }
  }
  for (ParameterId id = 0, end = 0; id < store.count(); id = end) {
    end = store.end_of_joined(id);
    if (layout.bucket_of(id) < 0) {
      const std::int64_t elements = store.joined_elements(id, end - id);
      others_.push_back(zeroed(take(tools.context.state(), elements)));
      store.place(id, end, others_.back().view(store.compute_dtype()));
    }
  }
}

// If an error passes through, the gathers in flight are abandoned, and their buffers are freed.
ZeroParameters::~ZeroParameters() {
  for (Home& home : homes_) {
    home.gather.abandon();
  }
}

Buffer ZeroParameters::take(Pool& pool, std::int64_t elements) {
  Buffer buffer = pool.allocate(elements * size_of(store_.compute_dtype()));
  bytes_ += buffer.bytes();
  peak_bytes_ = std::max(peak_bytes_, bytes_);
  return buffer;
}

Buffer ZeroParameters::zeroed(Buffer buffer) const {
  tools_.context.stream().clear(buffer.view(store_.compute_dtype()));
  return buffer;
}

// Returns this rank's block of a bucket, [block]; at level 0, the whole bucket.
View ZeroParameters::own_block(int bucket) const {
  const Home& home = homes_[static_cast<std::size_t>(bucket)];
  const std::int64_t block = layout_.block(bucket);
  switch (layout_.level()) {
    case 0:
      return store_.working_copies().slice(layout_.bucket(bucket).first, block);
    case 3:
      return home.own.view(store_.compute_dtype());
    default:
      return home.whole.view(store_.compute_dtype()).slice(block * layout_.rank(), block);
  }
}

std::vector<HeldRange> ZeroParameters::held() const {
  std::vector<HeldRange> held;
  for (int b = 0; b < layout_.buckets(); ++b) {
    const IndexRange owned = layout_.owned(b);
    held.push_back({owned.first, own_block(b).slice(0, owned.count)});
  }
  return held;
}

void ZeroParameters::publish(int bucket) {
  Home& changed = home(bucket);
  if (layout_.level() == 3) {
    check(changed.users == 0, "parameters do not change while a layer uses them");
    drop(bucket);
  } else if (layout_.level() > 0) {
    wait(changed);
    changed.gather =
        tools_.dp.all_gather(changed.whole.view(store_.compute_dtype()), &tools_.context.stream());
  }
}

void ZeroParameters::settle() {
  for (Home& home : homes_) {
    wait(home);
  }
}

void ZeroParameters::wait(Home& home) {
  const StreamTimer timer(tools_.context.stream(), exposed_);
  const SpanTimer span(home.gather.done() ? nullptr : tools_.spans, SpanKind::replicas,
                       "parameters");
  home.gather.wait(tools_.context.stream());
  home.gather = {};
}

// At level 3, starts the all-gather of a bucket that is not in memory.
void ZeroParameters::bring(int bucket) {
  Home& absent = home(bucket);
  if (layout_.level() != 3 || absent.whole.data() != nullptr) {
    return;
  }
  absent.whole = take(tools_.context.exchange_state(), layout_.padded(bucket));
  const View whole = absent.whole.view(store_.compute_dtype());
  const View own = absent.own.view(store_.compute_dtype());
  tools_.context.stream().copy(whole.slice(own.count * layout_.rank(), own.count), own);
  absent.gather = tools_.dp.all_gather(whole, &tools_.context.stream());
}

void ZeroParameters::drop(int bucket) {
  Home& gathered = home(bucket);
  wait(gathered);
  gathered.wanted = false;
  if (gathered.whole.data() != nullptr) {
    store_.place(layout_.bucket(bucket).begin, layout_.bucket(bucket).end, {});
    bytes_ -= gathered.whole.bytes();
    gathered.whole = {};
  }
}

void ZeroParameters::need(ParameterId first, ParameterId end) {
  const std::vector<int> buckets = layout_.buckets_of(first, end);
  for (const int b : buckets) {
    bring(b);
  }
  for (const int b : buckets) {
    Home& needed = home(b);
    wait(needed);
    needed.wanted = false;
    if (++needed.users == 1 && layout_.level() == 3) {
      store_.place(layout_.bucket(b).begin, layout_.bucket(b).end,
                   needed.whole.view(store_.compute_dtype()));
    }
  }
}

void ZeroParameters::prefetch(ParameterId first, ParameterId end) {
  for (const int b : layout_.buckets_of(first, end)) {
    bring(b);
    home(b).wanted = true;
  }
}

void ZeroParameters::release(ParameterId first, ParameterId end) {
  for (const int b : layout_.buckets_of(first, end)) {
    Home& used = home(b);
    check(used.users > 0, "only what was needed is released");
    if (--used.users == 0 && layout_.level() == 3 && !used.wanted) {
      drop(b);
    }
  }
}

}  // namespace trireme

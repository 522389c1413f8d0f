#include "src/kernels/mirrored/mirrored_kernels.h"

#include <initializer_list>
#include <vector>

#include "src/kernels/cuda_kernels.h"

namespace trireme {
namespace {

// These functions pass all views of an entry's arguments to the mirror.

void mirror_views(Mirror& m, Matmul& p) {
  m.add(p.a);
  m.add(p.b);
  m.add(p.c);
  m.add(p.bias);
  m.add(p.aux);
  for (Fp8Operand* operand : {&p.fp8_a, &p.fp8_b}) {
    m.add(operand->scale);
    m.add(operand->most);
  }
}
void mirror_views(Mirror& m, ColumnSum& p) {
  m.add(p.x);
  m.add(p.sum);
}
void mirror_views(Mirror& m, EmbeddingForward& p) {
  m.add(p.out);
  m.add(p.ids);
  m.add(p.token);
  m.add(p.position);
}
void mirror_views(Mirror& m, EmbeddingBackward& p) {
  m.add(p.dout);
  m.add(p.ids);
  m.add(p.dtoken);
  m.add(p.dposition);
}
void mirror_views(Mirror& m, NormForward& p) {
  for (ConstView* view : {&p.x, &p.residual, &p.weight, &p.bias}) {
    m.add(*view);
  }
  for (View* view : {&p.sum, &p.y, &p.mean, &p.rstd}) {
    m.add(*view);
  }
}
void mirror_views(Mirror& m, NormBackward& p) {
  for (ConstView* view : {&p.dy, &p.x, &p.weight, &p.mean, &p.rstd, &p.dresidual}) {
    m.add(*view);
  }
  for (View* view : {&p.dx, &p.dweight, &p.dbias}) {
    m.add(*view);
  }
}
void mirror_views(Mirror& m, Rope& p) {
  m.add(p.x);
  m.add(p.inverse_frequency);
}
void mirror_views(Mirror& m, AttentionForward& p) {
  for (ConstView* view : {&p.q, &p.k, &p.v, &p.slopes}) {
    m.add(*view);
  }
  m.add(p.out);
  m.add(p.lse);
}
void mirror_views(Mirror& m, AttentionBackward& p) {
  mirror_views(m, p.forward);
  m.add(p.dout);
  for (View* view : {&p.dq, &p.dk, &p.dv}) {
    m.add(*view);
  }
}
void mirror_views(Mirror& m, Dropout& p) {
  m.add(p.x);
  m.add(p.y);
}
void mirror_views(Mirror& m, CrossEntropy& p) {
  m.add(p.logits);
  m.add(p.targets);
  m.add(p.losses);
}
void mirror_views(Mirror& m, SoftmaxPart& p) {
  m.add(p.logits);
  m.add(p.targets);
  m.add(p.statistics);
}
void mirror_views(Mirror& m, CrossEntropyOfParts& p) {
  mirror_views(m, p.own);
  m.add(p.statistics);
}
void mirror_views(Mirror& m, Distillation& p) {
  m.add(p.logits);
  m.add(p.teacher);
  m.add(p.targets);
  m.add(p.divergences);
}
void mirror_views(Mirror& m, AdamW& p) {
  for (View* view : {&p.value, &p.m, &p.v, &p.compute}) {
    m.add(*view);
  }
  m.add(p.gradient);
}
void mirror_views(Mirror& m, Sgd& p) {
  for (View* view : {&p.value, &p.buffer, &p.compute}) {
    m.add(*view);
  }
  m.add(p.gradient);
}
void mirror_views(Mirror& m, MovingAverage& p) {
  m.add(p.average);
  m.add(p.value);
}
void mirror_views(Mirror& m, Combine& p) {
  m.add(p.result);
  m.add(p.x);
  m.add(p.y);
}

// Entries that take a struct of arguments.
template <Placement kPlacement, class Arguments,
          void (*Kernels::*kEntry)(Stream&, const Arguments&),
          CudaAttention kAttention = CudaAttention::own>
void run_struct(Stream& stream, const Arguments& arguments) {
  Arguments copy = arguments;
  Mirror mirror(stream, kPlacement);
  mirror_views(mirror, copy);
  mirror.upload();
  (cuda_kernels(kAttention).*kEntry)(stream, copy);
  mirror.download();
}

// Entries that take views.
template <Placement kPlacement, class... Views>
void run_views(Stream& stream, void (*Kernels::*entry)(Stream&, Views...), Views... views) {
  Mirror mirror(stream, kPlacement);
  (mirror.add(views), ...);
  mirror.upload();
  (cuda_kernels().*entry)(stream, views...);
  mirror.download();
}

template <Placement kPlacement>
void run_add_chain(Stream& stream, View y, const ConstView* x, int n) {
  std::vector<ConstView> copies(x, x + n);
  Mirror mirror(stream, kPlacement);
  mirror.add(y);
  for (ConstView& view : copies) {
    mirror.add(view);
  }
  mirror.upload();
  cuda_kernels().add_chain(stream, y, copies.data(), n);
  mirror.download();
}

template <Placement kPlacement>
void run_normalize(Stream& stream, View x, ConstView sums, float epsilon) {
  Mirror mirror(stream, kPlacement);
  mirror.add(x);
  mirror.add(sums);
  mirror.upload();
  cuda_kernels().normalize(stream, x, sums, epsilon);
  mirror.download();
}

template <Placement kPlacement>
void run_fill(Stream& stream, View y, float value) {
  Mirror mirror(stream, kPlacement);
  mirror.add(y);
  mirror.upload();
  cuda_kernels().fill(stream, y, value);
  mirror.download();
}

template <Placement kPlacement>
void run_scale(Stream& stream, View x, float factor) {
  Mirror mirror(stream, kPlacement);
  mirror.add(x);
  mirror.upload();
  cuda_kernels().scale(stream, x, factor);
  mirror.download();
}

template <Placement kPlacement>
void set_structs(Kernels& table) {
  table.matmul = run_struct<kPlacement, Matmul, &Kernels::matmul>;
  table.column_sum = run_struct<kPlacement, ColumnSum, &Kernels::column_sum>;
  table.embedding_forward = run_struct<kPlacement, EmbeddingForward, &Kernels::embedding_forward>;
  table.embedding_backward =
      run_struct<kPlacement, EmbeddingBackward, &Kernels::embedding_backward>;
  table.layer_norm_forward = run_struct<kPlacement, NormForward, &Kernels::layer_norm_forward>;
  table.layer_norm_backward = run_struct<kPlacement, NormBackward, &Kernels::layer_norm_backward>;
  table.rms_norm_forward = run_struct<kPlacement, NormForward, &Kernels::rms_norm_forward>;
  table.rms_norm_backward = run_struct<kPlacement, NormBackward, &Kernels::rms_norm_backward>;
  table.rope = run_struct<kPlacement, Rope, &Kernels::rope>;
  table.attention_forward = run_struct<kPlacement, AttentionForward, &Kernels::attention_forward>;
  table.attention_backward =
      run_struct<kPlacement, AttentionBackward, &Kernels::attention_backward>;
  table.dropout = run_struct<kPlacement, Dropout, &Kernels::dropout>;
  table.cross_entropy = run_struct<kPlacement, CrossEntropy, &Kernels::cross_entropy>;
  table.softmax_part = run_struct<kPlacement, SoftmaxPart, &Kernels::softmax_part>;
  table.cross_entropy_of_parts =
      run_struct<kPlacement, CrossEntropyOfParts, &Kernels::cross_entropy_of_parts>;
  table.distillation = run_struct<kPlacement, Distillation, &Kernels::distillation>;
  table.adamw = run_struct<kPlacement, AdamW, &Kernels::adamw>;
  table.sgd = run_struct<kPlacement, Sgd, &Kernels::sgd>;
  table.moving_average = run_struct<kPlacement, MovingAverage, &Kernels::moving_average>;
  table.combine = run_struct<kPlacement, Combine, &Kernels::combine>;
}

template <Placement kPlacement>
Kernels table_for(std::string_view name) {
  Kernels table{};
  table.name = name;
  set_structs<kPlacement>(table);
  table.gelu_forward = [](Stream& stream, View y, ConstView x) {
    run_views<kPlacement>(stream, &Kernels::gelu_forward, y, x);
  };
  table.gelu_backward = [](Stream& stream, View dx, ConstView dy, ConstView x) {
    run_views<kPlacement>(stream, &Kernels::gelu_backward, dx, dy, x);
  };
  table.swiglu_forward = [](Stream& stream, View y, ConstView gate, ConstView up) {
    run_views<kPlacement>(stream, &Kernels::swiglu_forward, y, gate, up);
  };
  table.swiglu_backward = [](Stream& stream, View dgate, View dup, ConstView dy, ConstView gate,
                             ConstView up) {
    run_views<kPlacement>(stream, &Kernels::swiglu_backward, dgate, dup, dy, gate, up);
  };
  table.sums_of_squares = [](Stream& stream, View sums, ConstView x) {
    run_views<kPlacement>(stream, &Kernels::sums_of_squares, sums, x);
  };
  table.sum = [](Stream& stream, View total, ConstView x) {
    run_views<kPlacement>(stream, &Kernels::sum, total, x);
  };
  table.digest = [](Stream& stream, View digest, ConstView x) {
    run_views<kPlacement>(stream, &Kernels::digest, digest, x);
  };
  table.add = [](Stream& stream, View y, ConstView x) {
    run_views<kPlacement>(stream, &Kernels::add, y, x);
  };
  table.zero_where_zero = [](Stream& stream, View x, ConstView y) {
    run_views<kPlacement>(stream, &Kernels::zero_where_zero, x, y);
  };
  table.cast = [](Stream& stream, View y, ConstView x) {
    run_views<kPlacement>(stream, &Kernels::cast, y, x);
  };
  table.add_chain = run_add_chain<kPlacement>;
  table.normalize = run_normalize<kPlacement>;
  table.fill = run_fill<kPlacement>;
  table.scale = run_scale<kPlacement>;
  return table;
}

}  // namespace

const Kernels& mirrored_kernels(Placement placement) {
  static const Kernels aligned = table_for<Placement::aligned>("cuda aligned");
  static const Kernels as_on_host = table_for<Placement::as_on_host>("cuda as on host");
  return placement == Placement::aligned ? aligned : as_on_host;
}

namespace {

template <Placement kPlacement>
Kernels table_with_cudnn(std::string_view name) {
  Kernels table = table_for<kPlacement>(name);
  table.attention_forward =
      run_struct<kPlacement, AttentionForward, &Kernels::attention_forward, CudaAttention::cudnn>;
  table.attention_backward =
      run_struct<kPlacement, AttentionBackward, &Kernels::attention_backward, CudaAttention::cudnn>;
  return table;
}

}  // namespace

const Kernels& mirrored_kernels(Placement placement, CudaAttention attention) {
  static const Kernels aligned = table_with_cudnn<Placement::aligned>("cuda with cuDNN, aligned");
  static const Kernels as_on_host =
      table_with_cudnn<Placement::as_on_host>("cuda with cuDNN, as on host");
  if (attention == CudaAttention::own) {
    return mirrored_kernels(placement);
  }
  return placement == Placement::aligned ? aligned : as_on_host;
}

}  // namespace trireme

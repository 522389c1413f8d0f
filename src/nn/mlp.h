// The two MLPs: GPT-2's with GELU, and Llama's with SwiGLU (Shazeer, 2020).
#pragma once

#include "src/nn/layer.h"
#include "src/nn/linear.h"

namespace trireme {

// y = project(gelu(expand(x)))
class GeluMlp : public Branch {
 public:
  GeluMlp(const Linear& expand, const Linear& project) : expand_(expand), project_(project) {}
  Tensor forward(const Tensor& x, Saved& saved, Run& run) const override;
  Tensor backward(const Tensor& dy, Saved& saved, Run& run) const override;

 private:
  Linear expand_;
  Linear project_;
};

// y = down(silu(gate(x)) up(x))
class SwigluMlp : public Branch {
 public:
  SwigluMlp(const Linear& gate, const Linear& up, const Linear& down)
      : gate_(gate), up_(up), down_(down) {}
  Tensor forward(const Tensor& x, Saved& saved, Run& run) const override;
  Tensor backward(const Tensor& dy, Saved& saved, Run& run) const override;

 private:
  Tensor input_gradient(const Tensor& dgate, const Tensor& dup, const Tensor& x, Run& run) const;

  Linear gate_;
  Linear up_;
  Linear down_;
};

}  // namespace trireme

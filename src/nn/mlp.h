// Declares the two MLPs, which are Branches: GPT-2's with GELU, and that with SwiGLU (Shazeer,
// 2020) of Llama and of models like Jais. With `lean`, activations that are cheap to compute are
// not saved for backward, which computes them again. They have no state.
#pragma once

#include "src/nn/layer.h"
#include "src/nn/linear.h"

namespace trireme {

// y = project(gelu(expand(x)))
class GeluMlp : public Branch {
 public:
  GeluMlp(const Linear& expand, const Linear& project, bool lean)
      : expand_(expand), project_(project), lean_(lean) {}
  Tensor forward(const Tensor& x, Saved& saved, Run& run) const override;
  BranchGradient backward(const Tensor& dy, const GatheredRows& x, Saved& saved,
                          Run& run) const override;

 private:
  Linear expand_;
  Linear project_;
  bool lean_;
};

// y = down(silu(gate(x)) up(x))
class SwigluMlp : public Branch {
 public:
  SwigluMlp(const Linear& gate, const Linear& up, const Linear& down, bool lean)
      : gate_(gate), up_(up), down_(down), lean_(lean) {}
  Tensor forward(const Tensor& x, Saved& saved, Run& run) const override;
  BranchGradient backward(const Tensor& dy, const GatheredRows& x, Saved& saved,
                          Run& run) const override;

 private:
  Tensor input_gradient(const Tensor& dgate, const Tensor& dup, const Tensor& place,
                        Run& run) const;

  Linear gate_;
  Linear up_;
  Linear down_;
  bool lean_;
};

}  // namespace trireme

// A model's weights, bound by name with their shapes checked, and packed.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "model/linear.h"
#include "model/model.h"

namespace unisono::model {

// One expert of a layer: a feed-forward network of its own.
struct Expert {
  Linear gate_up{};  // parts gate, up
  Linear down{};     // k = d_ff
};

struct Layer {
  std::vector<float> attn_norm{};       // [d_model]
  Linear qkv{};                         // parts q, k, v
  std::vector<float> qkv_bias{};        // [qkv.columns()], empty: none
  std::vector<float> q_norm{}, k_norm{};  // [head_dim], empty: none
  Linear attn_output{};                 // k = n_heads * head_dim
  std::vector<float> post_attn_norm{};  // [d_model], empty: none
  std::vector<float> ffn_norm{};        // [d_model]
  Linear gate_up{};                     // parts gate, up; empty in a mixture of experts
  Linear ffn_down{};                    // k = d_ff
  Linear router{};                      // scores, always with f32 activations: of n_experts, then as a part of that which all share
  std::vector<Expert> experts{};        // [n_experts], all packed as the same types, then that which all share; empty: no mixture
  std::vector<float> post_ffn_norm{};   // [d_model], empty: none
};

struct Weights {
  Linear embedding{};                   // [vocab][d_model], never multiplied; empty where the head is the same
  std::vector<Layer> layers{};
  std::vector<float> output_norm{};     // [d_model]
  Linear head{};                        // [vocab][d_model]; the embedding as well where the file has no own
  std::vector<float> rope_factors{};    // [rope_dims / 2], empty: none

  Buffer memory{};                      // of all panels, so that they lie on huge pages however small a matrix is

  void embed(int token, float* out) const;  // [d_model]: the token's row of the embedding
  size_t bytes() const;                 // of the products
  Activations activations() const;      // that most of them, by bytes, are multiplied with
  // About how many positions of context take a token as long to attend to as its products in the layers take, with
  // `experts` of each mixture and the one that all share.
  int attention_unit(const Hparams& h, int experts) const;
};

// visit(Linear&) of every product, the embedding not among them: the head, then layer by layer. W: Weights or const Weights.
template <class W, class Visit>
void each_linear(W& weights, Visit visit) {
  visit(weights.head);
  for (auto& layer : weights.layers) {
    visit(layer.qkv);
    visit(layer.attn_output);
    visit(layer.gate_up);
    visit(layer.ffn_down);
    visit(layer.router);
    for (auto& expert : layer.experts) {
      visit(expert.gate_up);
      visit(expert.down);
    }
  }
}

Result<Weights> load_weights(const Arch& arch, const Hparams& h, const TensorSource& source, Activations dial,
                             ThreadTeam& team, void (*progress)(void*, size_t, size_t), void* progress_context);

}  // namespace unisono::model

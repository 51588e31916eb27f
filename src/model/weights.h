// A model's weights, bound by name with their shapes checked, and packed.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "model/linear.h"
#include "model/model.h"

namespace unisono::model {

struct Layer {
  std::vector<float> attn_norm{};       // [d_model]
  Linear qkv{};                         // parts q, k, v
  std::vector<float> qkv_bias{};        // [qkv.columns()], empty: none
  std::vector<float> q_norm{}, k_norm{};  // [head_dim], empty: none
  Linear attn_output{};                 // k = n_heads * head_dim
  std::vector<float> post_attn_norm{};  // [d_model], empty: none
  std::vector<float> ffn_norm{};        // [d_model]
  Linear gate_up{};                     // parts gate, up
  Linear ffn_down{};                    // k = d_ff
  std::vector<float> post_ffn_norm{};   // [d_model], empty: none
};

struct Weights {
  TensorView embedding{};               // [vocab][d_model], as in the file
  std::vector<Layer> layers{};
  std::vector<float> output_norm{};     // [d_model]
  Linear head{};                        // [vocab][d_model]; the embedding where the file has no own
  std::vector<float> rope_factors{};    // [rope_dims / 2], empty: none

  Buffer memory{};                      // of all panels, so that they lie on huge pages however small a matrix is

  size_t bytes() const;                 // packed
  Activations activations() const;      // that most of them, by bytes, are multiplied with
  // About how many positions of context take a token as long to attend to as its products in the layers take.
  int attention_unit(const Hparams& h) const;
};

// visit(Linear&) of every product: the head, then layer by layer. W: Weights or const Weights.
template <class W, class Visit>
void each_linear(W& weights, Visit visit) {
  visit(weights.head);
  for (auto& layer : weights.layers) {
    visit(layer.qkv);
    visit(layer.attn_output);
    visit(layer.gate_up);
    visit(layer.ffn_down);
  }
}

Result<Weights> load_weights(const Arch& arch, const Hparams& h, const TensorSource& source, Activations dial,
                             ThreadTeam& team, void (*progress)(void*, size_t, size_t), void* progress_context);

}  // namespace unisono::model

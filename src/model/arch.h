// What a model family is: a row of traits. And the numbers of one model. A new family is a row here, a tiny random
// checkpoint and a golden test; forward() never asks for a family by name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace unisono::model {

enum class RopeStyle : uint8_t {
  interleaved,  // pairs (2i, 2i + 1): Llama family in GGUF
  halves,       // pairs (i, i + n/2): Qwen, Gemma
};
enum class Activation : uint8_t { silu, gelu_tanh };
// Whether a layer's feed-forward network is a mixture of experts.
enum class Mixture : uint8_t {
  never,
  where_told,  // in files with an expert count
  always,
};

struct Arch {
  std::string_view gguf_name{};           // general.architecture
  std::string_view hf_name{};             // architectures[0] in config.json
  RopeStyle rope = RopeStyle::interleaved;
  Activation activation = Activation::silu;
  bool qkv_bias = false;
  bool qk_norm = false;                   // RMS norm over each head of q and k, before rope
  bool post_norms = false;                // RMS norm of a sub-layer's output before it is added
  bool scale_embedding = false;           // embeddings times sqrt(d_model)
  int window_period = 0;                  // n > 0: every n-th layer sees all, the others a window; 0: all see all
  Mixture experts = Mixture::never;       // a row's are those of its largest soft-max scores, of all experts
  bool shared_expert = false;             // one more that every row goes to, at a weight of its own: a score's sigmoid
  bool renormalise = true;                // the weights of a row's chosen experts sum to 1, where the file doesn't say
  float local_rope_base = 0;              // of windowed layers, where the file doesn't say; 0: the same as global
};

std::span<const Arch> architectures();
const Arch* find_arch(std::string_view gguf_name);  // null: unknown

// One model's numbers, checked: every division below is exact.
struct Hparams {
  int n_layers = 0;
  int d_model = 0;
  int n_heads = 0, n_kv_heads = 0;
  int head_dim = 0;
  int d_ff = 0;                      // of the feed-forward network, or of each expert
  int n_experts = 0;                 // of each layer; 0: no mixtures
  int n_experts_used = 0;            // by a row, at most n_experts
  int shared_ff = 0;                 // of the expert that every row goes to besides; 0: none
  bool renormalise = true;           // the weights of a row's chosen experts sum to 1
  int vocab_size = 0;
  int context_length = 0;
  float norm_eps = 1e-5f;
  int rope_dims = 0;                 // of head_dim, even
  float rope_base = 10000;
  float local_rope_base = 10000;     // windowed layers
  float rope_scale = 1;              // positions are divided by this (linear scaling), in unwindowed layers
  int window = 0;                    // positions a windowed layer sees, itself included; 0: no windows
  float attention_scale = 0;         // q is multiplied by this
  std::vector<uint8_t> windowed{};   // [n_layers] 1: this layer has the window
};

}  // namespace unisono::model

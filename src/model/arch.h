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
  int d_ff = 0;
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

#include "model/arch.h"

#include <array>

namespace unisono::model {

namespace {
constexpr std::array kArchitectures = {
    // Llama 1 to 3, Mistral 7B, SmolLM2, TinyLlama; with experts Mixtral (MixtralForCausalLM)
    Arch{.gguf_name = "llama", .hf_name = "LlamaForCausalLM", .experts = Mixture::where_told},
    // Qwen 2 and 2.5
    Arch{.gguf_name = "qwen2", .hf_name = "Qwen2ForCausalLM", .rope = RopeStyle::halves, .qkv_bias = true},
    // Qwen 1.5 MoE A2.7B, Qwen 2 57B-A14B
    Arch{.gguf_name = "qwen2moe",
         .hf_name = "Qwen2MoeForCausalLM",
         .rope = RopeStyle::halves,
         .qkv_bias = true,
         .experts = Mixture::always,
         .shared_expert = true,
         .renormalise = false},
    // Qwen 3 0.6B to 32B
    Arch{.gguf_name = "qwen3", .hf_name = "Qwen3ForCausalLM", .rope = RopeStyle::halves, .qk_norm = true},
    // Qwen 3 30B-A3B, 235B-A22B, Qwen 3 Coder
    Arch{.gguf_name = "qwen3moe",
         .hf_name = "Qwen3MoeForCausalLM",
         .rope = RopeStyle::halves,
         .qk_norm = true,
         .experts = Mixture::always},
    Arch{.gguf_name = "gemma3",
         .hf_name = "Gemma3ForCausalLM",
         .rope = RopeStyle::halves,
         .activation = Activation::gelu_tanh,
         .qk_norm = true,
         .post_norms = true,
         .scale_embedding = true,
         .window_period = 6,
         .local_rope_base = 10000},
};
}  // namespace

std::span<const Arch> architectures() { return kArchitectures; }

const Arch* find_arch(std::string_view gguf_name) {
  for (const Arch& arch : kArchitectures)
    if (arch.gguf_name == gguf_name) return &arch;
  return nullptr;
}

}  // namespace unisono::model

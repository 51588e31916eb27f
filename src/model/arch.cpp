#include "model/arch.h"

#include <array>

namespace unisono::model {

namespace {
constexpr std::array kArchitectures = {
    // Llama 1 to 3, Mistral 7B, SmolLM2, TinyLlama
    Arch{.gguf_name = "llama", .hf_name = "LlamaForCausalLM"},
    // Qwen 2 and 2.5
    Arch{.gguf_name = "qwen2", .hf_name = "Qwen2ForCausalLM", .rope = RopeStyle::halves, .qkv_bias = true},
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

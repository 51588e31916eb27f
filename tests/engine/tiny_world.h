// A random two-layer model and a tokenizer of bytes and a few pieces, made in memory: enough to run an engine without
// files.
#pragma once

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace unisono::engine {

inline constexpr int32_t kUnknown = 0, kBos = 1, kEos = 2, kFirstByte = 3, kFirstPiece = 259;

// Tokens: <unk>, <s>, </s>, the 256 bytes, then pieces.
class TinyTokenizer {
 public:
  TinyTokenizer() {
    const auto add = [&](std::string text, text::TokenType type, float score) {
      texts_.push_back(std::move(text));
      spec_.types.push_back(type);
      spec_.scores.push_back(score);
    };
    add("<unk>", text::TokenType::unknown, 0);
    add("<s>", text::TokenType::control, 0);
    add("</s>", text::TokenType::control, 0);
    for (int byte = 0; byte < 256; byte++) {
      std::array<char, 8> text{};
      std::snprintf(text.data(), text.size(), "<0x%02X>", byte);
      add(text.data(), text::TokenType::byte, 0);
    }
    float score = 0;
    for (const char* piece : {"\u2581",  "a",
                              "b",       "c",
                              "d",       "e",
                              "n",       "o",
                              "t",       "\u00e9",
                              "\u2581a", "\u2581the",
                              "th",      "he",
                              "the",     "on",
                              "an",      "\u2581on",
                              "\u00e9t", "\u2581\u2581",
                              "\u65e5",  "\u65e5\u672c",
                              ".",       "\n"})
      add(piece, text::TokenType::normal, score -= 1);
    while (texts_.size() < 288) add("p" + std::to_string(texts_.size()), text::TokenType::normal, score -= 1);
    for (const std::string& text : texts_) spec_.tokens.push_back(text);
    spec_.kind = text::TokenizerKind::sentencepiece_bpe;
    spec_.bos = kBos;
    spec_.eos = kEos;
    spec_.unknown = kUnknown;
    auto made = text::Tokenizer::create(spec_);
    check(made.ok(), made.ok() ? "" : made.error().message.c_str());
    tokenizer_ = std::make_unique<text::Tokenizer>(std::move(*made));
  }
  const text::Tokenizer& get() const { return *tokenizer_; }

 private:
  std::deque<std::string> texts_{};
  text::TokenizerSpec spec_{};
  std::unique_ptr<text::Tokenizer> tokenizer_{};
};

class RandomWeights : public model::TensorSource {
 public:
  explicit RandomWeights(const model::Hparams& h) {
    const int q = h.n_heads * h.head_dim, kv = h.n_kv_heads * h.head_dim;
    add("token_embd.weight", {h.vocab_size, h.d_model}, 1);
    add("output.weight", {h.vocab_size, h.d_model}, 0.35f);
    add("output_norm.weight", {h.d_model}, 0);
    for (int layer = 0; layer < h.n_layers; layer++) {
      const std::string at = "blk." + std::to_string(layer) + ".";
      add(at + "attn_norm.weight", {h.d_model}, 0);
      add(at + "ffn_norm.weight", {h.d_model}, 0);
      add(at + "attn_q.weight", {q, h.d_model}, 0.3f);
      add(at + "attn_k.weight", {kv, h.d_model}, 0.3f);
      add(at + "attn_v.weight", {kv, h.d_model}, 0.3f);
      add(at + "attn_output.weight", {h.d_model, q}, 0.3f);
      if (h.n_experts > 0) {
        add(at + "ffn_gate_inp.weight", {h.n_experts, h.d_model}, 0.2f);
        add(at + "ffn_gate_exps.weight", {h.n_experts, h.d_ff, h.d_model}, 0.2f);
        add(at + "ffn_up_exps.weight", {h.n_experts, h.d_ff, h.d_model}, 0.2f);
        add(at + "ffn_down_exps.weight", {h.n_experts, h.d_model, h.d_ff}, 0.2f);
        continue;
      }
      add(at + "ffn_gate.weight", {h.d_ff, h.d_model}, 0.2f);
      add(at + "ffn_up.weight", {h.d_ff, h.d_model}, 0.2f);
      add(at + "ffn_down.weight", {h.d_model, h.d_ff}, 0.2f);
    }
  }
  const TensorView* find(std::string_view name) const override {
    const auto found = views_.find(std::string(name));
    return found == views_.end() ? nullptr : &found->second;
  }

 private:
  // spread 0: ones, for norms.
  void add(const std::string& name, std::vector<int64_t> dims, float spread) {
    TensorView view{.type = DType::f32, .n_dims = static_cast<int>(dims.size())};
    size_t n = 1;
    for (size_t i = 0; i < dims.size(); i++) {
      view.dims[i] = dims[i];
      n *= static_cast<size_t>(dims[i]);
    }
    Buffer& memory = memory_.emplace_back(n * sizeof(float));
    std::normal_distribution<float> normal(0, 1);
    for (float& v : memory.as<float>()) v = spread == 0 ? 1.0f : spread * normal(rng_);
    view.data = memory.data();
    views_[name] = view;
  }
  std::mt19937 rng_{7};
  std::deque<Buffer> memory_{};
  std::map<std::string, TensorView> views_{};
};

struct TinyWorld {
  // With a cache that all threads share, so that steps fetch keys and values ahead.
  explicit TinyWorld(int n_threads, const model::Hparams& h = tiny_hparams())
      : team(Placement{.threads = n_threads, .cache = {.bytes = size_t{32} << 20, .threads = n_threads}}), hparams(h) {
    auto loaded = model::Model::load(*model::find_arch("llama"), hparams, weights, {}, team);
    check(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    model = std::make_unique<model::Model>(std::move(*loaded));
  }
  static model::Hparams tiny_hparams() {
    return {.n_layers = 2,
            .d_model = 64,
            .n_heads = 4,
            .n_kv_heads = 2,
            .head_dim = 16,
            .d_ff = 96,
            .vocab_size = 288,
            .context_length = 256,
            .rope_dims = 16,
            .attention_scale = 0.25f,
            .windowed = std::vector<uint8_t>(2, 0)};
  }
  // Each row goes to 2 of 6 experts.
  static model::Hparams mixture_hparams() {
    model::Hparams h = tiny_hparams();
    h.d_ff = 32;
    h.n_experts = 6;
    h.n_experts_used = 2;
    return h;
  }
  // Two of three layers see a window; long enough that attention is cut into pieces.
  static model::Hparams windowed_hparams(int window) {
    model::Hparams h = tiny_hparams();
    h.n_layers = 3;
    h.context_length = 1024;
    h.window = window;
    h.windowed = {1, 0, 1};
    return h;
  }

  ThreadTeam team;
  const model::Hparams hparams;
  RandomWeights weights{hparams};
  TinyTokenizer tokenizer{};
  std::unique_ptr<model::Model> model{};
};

}  // namespace unisono::engine

#include "engine/load.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/buffer.h"
#include "base/quoted.h"
#include "text/unicode.h"

namespace unisono::engine {

namespace {

using checkpoint::Checkpoint;
using model::Arch;
using model::Hparams;

// Reads keys of one family; keeps the first error, so that reading looks like a list.
class Keys {
 public:
  Keys(const Checkpoint& file, std::string_view prefix) : file_(file), prefix_(prefix) {}

  // A required integer.
  int count(const std::string& key, int64_t min, int64_t max) {
    const auto found = optional_count(key, min, max);
    if (!found && !error_) error_ = Error{"The file lacks the key '" + full(key) + "', which its family needs.", full(key)};
    return found.value_or(static_cast<int>(min));
  }
  std::optional<int> optional_count(const std::string& key, int64_t min, int64_t max) {
    return take<int>(file_.integer(full(key), min, max));
  }
  std::optional<float> number(const std::string& key) { return take<float>(file_.number(full(key))); }
  std::optional<bool> flag(const std::string& key) { return take<bool>(file_.boolean(full(key))); }
  std::optional<std::string> string(const std::string& key) { return take<std::string>(file_.string(full(key))); }
  void refuse(const std::string& key, const std::string& why) {
    if (!error_) error_ = Error{"The key '" + full(key) + "' " + why + ".", full(key)};
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string full(const std::string& key) const { return std::string(prefix_) + "." + key; }
  template <class T, class U>
  std::optional<T> take(Result<std::optional<U>> result) {
    if (!result) {
      if (!error_) error_ = result.error();
      return std::nullopt;
    }
    if (!result->has_value()) return std::nullopt;
    return static_cast<T>(**result);
  }
  const Checkpoint& file_;
  std::string_view prefix_;
  std::optional<Error> error_{};
};

// Which layers have the window: a period, as an integer or one bool a layer, or the family's own.
void read_windows(Keys& keys, const Arch& arch, Hparams& h) {
  h.windowed.assign(static_cast<size_t>(h.n_layers), 0);
  if (arch.window_period == 0) return;
  h.window = keys.optional_count("attention.sliding_window", 0, 1 << 30).value_or(0);
  if (h.window == 0) return;
  const int period = keys.optional_count("attention.sliding_window_pattern", 1, 1024).value_or(arch.window_period);
  for (int i = 0; i < h.n_layers; i++) h.windowed[static_cast<size_t>(i)] = i % period < period - 1;
}

// The width of each expert, a multiple of what their products take together.
int expert_width(Keys& keys, const std::string& key, int otherwise) {
  const int width = keys.optional_count(key, 1, 1 << 24).value_or(otherwise);
  if (width % kernels::kBlock != 0)
    keys.refuse(key, "(" + std::to_string(width) + ", or the feed-forward length) is no multiple of " +
                         std::to_string(kernels::kBlock) + ", which experts need");
  return width;
}

// What other mixtures of experts have: refused by the key that asks for it.
void refuse_other_mixtures(Keys& keys, const Arch& arch) {
  const auto most = [&](const char* key, int n, const char* why) {
    if (keys.optional_count(key, 0, INT32_MAX).value_or(0) > n)
      keys.refuse(key, std::string(why) + ", which is not supported");
  };
  most("expert_shared_count", arch.shared_expert ? 1 : 0,
       "asks for more experts that all tokens share than its family has");
  if (!arch.shared_expert)
    most("expert_shared_feed_forward_length", 0, "asks for an expert that all tokens share, as its family has none");
  most("expert_gating_func", 1, "asks for other weights of experts than their soft-max");
  most("expert_group_count", 1, "asks for groups of experts");
  most("expert_group_used_count", 1, "asks for groups of experts");
  most("leading_dense_block_count", 0, "asks for layers without experts among those with");
  const float scale = keys.number("expert_weights_scale").value_or(1);
  if (scale != 0 && scale != 1)  // files write 0 for none
    keys.refuse("expert_weights_scale", "scales the weights of experts, which is not supported");
}

void read_experts(Keys& keys, const Arch& arch, Hparams& h) {
  constexpr int kMost = 4096;
  if (arch.experts == model::Mixture::always) {
    h.n_experts = keys.count("expert_count", 1, kMost);
  } else {
    h.n_experts = keys.optional_count("expert_count", 0, kMost).value_or(0);
  }
  if (h.n_experts == 0) return;
  if (arch.experts == model::Mixture::never)
    keys.refuse("expert_count", "says this is a mixture of experts, which is not supported in this family");
  h.n_experts_used = keys.count("expert_used_count", 1, kMost);
  if (h.n_experts_used > h.n_experts)
    keys.refuse("expert_used_count",
                "(" + std::to_string(h.n_experts_used) + ") is more than the " + std::to_string(h.n_experts) + " experts");
  if (arch.shared_expert) h.shared_ff = expert_width(keys, "expert_shared_feed_forward_length", h.d_ff);
  h.d_ff = expert_width(keys, "expert_feed_forward_length", h.d_ff);
  h.renormalise = keys.flag("expert_weights_norm").value_or(arch.renormalise);
  refuse_other_mixtures(keys, arch);
}

void read_rope(Keys& keys, const Arch& arch, Hparams& h) {
  h.rope_dims = keys.optional_count("rope.dimension_count", 2, h.head_dim).value_or(h.head_dim);
  if (h.rope_dims % 2 != 0) keys.refuse("rope.dimension_count", "is odd: rotary dimensions come in pairs");
  h.rope_base = keys.number("rope.freq_base").value_or(10000.0f);
  if (!(h.rope_base > 1)) keys.refuse("rope.freq_base", "must be larger than 1");
  h.local_rope_base =
      keys.number("rope.freq_base_swa").value_or(arch.local_rope_base > 0 ? arch.local_rope_base : h.rope_base);
  if (!(h.local_rope_base > 1)) keys.refuse("rope.freq_base_swa", "must be larger than 1");
  const std::string scaling = keys.string("rope.scaling.type").value_or("");
  const float factor = keys.number("rope.scaling.factor").value_or(1.0f);
  if (scaling != "" && scaling != "none" && scaling != "linear")
    keys.refuse("rope.scaling.type", "is " + quoted(scaling) + "; supported are 'none' and 'linear'");
  if (scaling != "none") h.rope_scale = factor;
  if (!(h.rope_scale > 0)) keys.refuse("rope.scaling.factor", "must be positive");
}

// End tokens are a set: the file's eos and eot, and the markers that end a turn in some family, known by their text:
// control tokens, or user-defined ones, as older converters call them.
constexpr std::array<std::string_view, 14> kEndTexts = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>",      "<|call|>", "<end_of_turn>",    "<|endoftext|>",
    "<|eom_id|>", "[EOT]",      "[EOS]",   "<|end_of_text|>", "<turn|>",  "<|tool_response>", "<｜end▁of▁sentence｜>"};

Result<std::vector<text::TokenId>> read_end_tokens(const Checkpoint& file) {
  std::vector<text::TokenId> ends;
  auto add = [&](text::TokenId id) {
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  };
  auto tokens = file.strings("tokenizer.ggml.tokens");
  if (!tokens) return tokens.error();
  if (!tokens->has_value()) return ends;
  const auto n = static_cast<int64_t>((*tokens)->size());
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    auto id = file.integer(key, 0, INT64_MAX);
    if (!id) return id.error();
    if (id->has_value() && **id < n) add(static_cast<text::TokenId>(**id));  // larger: files write 2^32 - 1 for "none"
  }
  auto types = file.integers("tokenizer.ggml.token_type", INT32_MIN, INT32_MAX);
  if (!types) return types.error();
  for (size_t i = 0; i < (*tokens)->size(); i++) {
    const int64_t type = types->has_value() && i < (*types)->size() ? (**types)[i] : 0;
    const bool marker =
        type == static_cast<int>(text::TokenType::control) || type == static_cast<int>(text::TokenType::user_defined);
    if (marker && std::find(kEndTexts.begin(), kEndTexts.end(), (**tokens)[i]) != kEndTexts.end())
      add(static_cast<text::TokenId>(i));
  }
  return ends;
}

std::optional<text::TokenId> special_id(const Checkpoint& file, const char* key, int64_t vocab,
                                        std::optional<Error>& error) {
  auto id = file.integer(key, 0, INT64_MAX);
  if (!id) {
    error = id.error();
    return std::nullopt;
  }
  if (!id->has_value() || **id >= vocab) return std::nullopt;
  return static_cast<text::TokenId>(**id);
}

class Tensors : public model::TensorSource {
 public:
  explicit Tensors(const Checkpoint& file) : file_(file) {}
  const TensorView* find(std::string_view name) const override { return file_.find(name); }
  std::vector<std::string_view> names() const override {
    std::vector<std::string_view> all;
    for (const auto& tensor : file_.tensors()) all.push_back(tensor.name);
    return all;
  }
  void release(std::span<const std::byte> bytes) const override { file_.release(bytes); }

 private:
  const Checkpoint& file_;
};

// The text itself where a terminal and JSON can take it.
std::string printable(std::string_view text) {
  const bool control = std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  return control || text::valid_prefix(text) < text.size() ? quoted(text) : std::string(text);
}

std::string families() {
  std::string list;
  for (const Arch& arch : model::architectures()) list += (list.empty() ? "" : ", ") + std::string(arch.gguf_name);
  return list;
}

}  // namespace

Result<Hparams> read_hparams(const Checkpoint& file, const Arch& arch) {
  Keys keys(file, arch.gguf_name);
  Hparams h;
  h.n_layers = keys.count("block_count", 1, 4096);
  h.d_model = keys.count("embedding_length", 1, 1 << 20);
  h.n_heads = keys.count("attention.head_count", 1, 1 << 16);
  h.n_kv_heads = keys.optional_count("attention.head_count_kv", 1, 1 << 16).value_or(h.n_heads);
  h.d_ff = keys.count("feed_forward_length", 1, 1 << 24);
  h.context_length = keys.count("context_length", 1, 1 << 30);
  h.norm_eps = keys.number("attention.layer_norm_rms_epsilon").value_or(-1);
  if (!keys.error() && !(h.norm_eps >= 0)) keys.refuse("attention.layer_norm_rms_epsilon", "is missing or negative");
  if (h.n_heads % h.n_kv_heads != 0)
    keys.refuse("attention.head_count_kv",
                "(" + std::to_string(h.n_kv_heads) + ") does not divide the " + std::to_string(h.n_heads) + " heads");
  const auto key_length = keys.optional_count("attention.key_length", 1, 1 << 16);
  if (!key_length && h.d_model % h.n_heads != 0)
    keys.refuse("attention.head_count",
                "(" + std::to_string(h.n_heads) + ") does not divide the embedding length " + std::to_string(h.d_model));
  h.head_dim = key_length.value_or(h.d_model / h.n_heads);
  if (keys.optional_count("attention.value_length", 1, 1 << 16).value_or(h.head_dim) != h.head_dim)
    keys.refuse("attention.value_length", "differs from the key length, which is not supported");
  read_experts(keys, arch, h);
  read_rope(keys, arch, h);
  read_windows(keys, arch, h);
  h.attention_scale = keys.number("attention.scale").value_or(1 / std::sqrt(static_cast<float>(h.head_dim)));
  for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (keys.number(cap).value_or(0) != 0) keys.refuse(cap, "asks for a soft cap, which is not supported");
  if (keys.error()) return *keys.error();
  const TensorView* embedding = file.find("token_embd.weight");
  if (embedding == nullptr)
    return Error{"The file has no tensor 'token_embd.weight', which a model of this family needs.", "token_embd.weight"};
  if (embedding->n_dims != 2 || embedding->dims[0] > (1 << 24))
    return Error{"Tensor 'token_embd.weight' has shape " + shape_text(*embedding) + ", which is no embedding.",
                 "token_embd.weight"};
  h.vocab_size = static_cast<int>(embedding->dims[0]);
  return h;
}

Result<Description> describe(const Checkpoint& file, const std::string& path) {
  auto family = file.string("general.architecture");
  if (!family) return family.error();
  if (!family->has_value()) return Error{"The file lacks the key 'general.architecture'.", "general.architecture"};
  Description d;
  d.arch = model::find_arch(**family);
  if (d.arch == nullptr)
    return Error{
        "The file's model family is " + quoted(**family) + ", which is not supported (supported: " + families() + ").",
        "general.architecture"};
  auto hparams = read_hparams(file, *d.arch);
  if (!hparams) return hparams.error();
  d.hparams = *hparams;
  auto name = file.string("general.name");
  if (!name) return name.error();
  d.name = name->has_value() ? printable(**name) : path.substr(path.find_last_of('/') + 1);
  auto chat = file.string("tokenizer.chat_template");
  if (!chat) return chat.error();
  if (chat->has_value()) d.chat_template = std::string(**chat);
  auto ends = read_end_tokens(file);
  if (!ends) return ends.error();
  d.end_tokens = *ends;
  std::map<DType, uint64_t> bytes;
  for (const auto& tensor : file.tensors()) {
    const auto n = static_cast<uint64_t>(tensor.view.rows() * tensor.view.columns());
    const bool of_experts = d.hparams.n_experts > 0 && tensor.name.ends_with("_exps.weight");
    d.parameters += n;
    d.active_parameters +=
        of_experts ? n / static_cast<uint64_t>(d.hparams.n_experts) * static_cast<uint64_t>(d.hparams.n_experts_used) : n;
    bytes[tensor.view.type] += tensor.view.bytes();
  }
  d.types.assign(bytes.begin(), bytes.end());
  std::sort(d.types.begin(), d.types.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return d;
}

Result<text::Tokenizer> load_tokenizer(const Checkpoint& file) {
  auto kind = file.string("tokenizer.ggml.model");
  if (!kind) return kind.error();
  text::TokenizerSpec spec;
  if (!kind->has_value()) return Error{"The file has no tokenizer (key 'tokenizer.ggml.model').", "tokenizer.ggml.model"};
  if (**kind == "gpt2") {
    spec.kind = text::TokenizerKind::byte_bpe;
  } else if (**kind == "llama") {
    spec.kind = text::TokenizerKind::sentencepiece_bpe;
  } else {
    return Error{"The file's tokenizer is of kind " + quoted(**kind) + ", which is not supported (supported: gpt2, llama).",
                 "tokenizer.ggml.model"};
  }
  auto pre = file.string("tokenizer.ggml.pre");
  if (!pre) return pre.error();
  spec.pre = std::string(pre->value_or(std::string_view("default")));
  auto tokens = file.strings("tokenizer.ggml.tokens");
  if (!tokens) return tokens.error();
  if (!tokens->has_value()) return Error{"The file lacks the key 'tokenizer.ggml.tokens'.", "tokenizer.ggml.tokens"};
  spec.tokens = std::move(**tokens);
  auto types = file.integers("tokenizer.ggml.token_type", 1, 6);
  if (!types) return types.error();
  if (types->has_value())
    for (int64_t t : **types) spec.types.push_back(static_cast<text::TokenType>(t));
  auto scores = file.numbers("tokenizer.ggml.scores");
  if (!scores) return scores.error();
  if (scores->has_value()) spec.scores.assign((*scores)->begin(), (*scores)->end());
  auto merges = file.strings("tokenizer.ggml.merges");
  if (!merges) return merges.error();
  if (merges->has_value()) spec.merges = std::move(**merges);
  std::optional<Error> error;
  const auto vocab = static_cast<int64_t>(spec.tokens.size());
  spec.bos = special_id(file, "tokenizer.ggml.bos_token_id", vocab, error);
  spec.eos = special_id(file, "tokenizer.ggml.eos_token_id", vocab, error);
  spec.unknown = special_id(file, "tokenizer.ggml.unknown_token_id", vocab, error);
  auto flag = [&](const char* key, std::optional<bool>& into) {
    auto value = file.boolean(key);
    if (!value) {
      error = value.error();
    } else {
      into = *value;
    }
  };
  flag("tokenizer.ggml.add_bos_token", spec.add_bos);
  flag("tokenizer.ggml.add_eos_token", spec.add_eos);
  flag("tokenizer.ggml.add_space_prefix", spec.add_space_prefix);
  if (error) return *error;
  return text::Tokenizer::create(spec);
}

namespace {

// The last step: the file's metadata isn't needed any more.
Result<model::Model> pack(Checkpoint& file, const Description& description, const LoadOptions& options, ThreadTeam& team) {
  file.forget_metadata();
  release_free_memory();  // what reading it took
  auto call = [](void* context, size_t done, size_t total) {
    (*static_cast<const std::function<void(size_t, size_t)>*>(context))(done, total);
  };
  const bool report = static_cast<bool>(options.progress);
  return model::Model::load(*description.arch, description.hparams, Tensors(file), options.model, team,
                            report ? +call : nullptr, const_cast<std::function<void(size_t, size_t)>*>(&options.progress));
}

}  // namespace

Result<LoadedModel> load_model(const std::string& path, const LoadOptions& options, ThreadTeam& team) {
  auto file = Checkpoint::open(path);
  if (!file) return file.error();
  auto description = describe(*file, path);
  if (!description) return description.error();
  auto model = pack(*file, *description, options, team);
  if (!model) return model.error();
  return LoadedModel{std::move(*description), std::move(*model)};
}

Result<std::unique_ptr<Loaded>> load(const std::string& path, const LoadOptions& options, ThreadTeam& team) {
  auto file = Checkpoint::open(path);
  if (!file) return file.error();
  auto description = describe(*file, path);
  if (!description) return description.error();
  auto tokenizer = load_tokenizer(*file);
  if (!tokenizer) return tokenizer.error();
  if (tokenizer->vocab_size() > description->hparams.vocab_size)
    return Error{"The tokenizer has " + std::to_string(tokenizer->vocab_size()) + " tokens, more than the " +
                     std::to_string(description->hparams.vocab_size) + " rows of 'token_embd.weight'.",
                 "tokenizer.ggml.tokens"};
  std::optional<text::ChatTemplate> chat;
  if (!description->chat_template.empty()) {
    auto token_text = [&](std::optional<text::TokenId> id) { return id ? tokenizer->bytes(*id, true) : std::string(); };
    auto parsed =
        text::ChatTemplate::parse(description->chat_template, token_text(tokenizer->bos()), token_text(tokenizer->eos()));
    if (!parsed)
      return Error{"The model's chat template can't be used: " + parsed.error().message, "tokenizer.chat_template"};
    chat = std::move(*parsed);
  }
  auto model = pack(*file, *description, options, team);
  if (!model) return model.error();
  return std::make_unique<Loaded>(
      Loaded{{std::move(*description), std::move(*model)}, std::move(*tokenizer), std::move(chat)});
}

}  // namespace unisono::engine

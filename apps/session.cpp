#include "session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string_view>

#include "engine/window_blocks.h"
#include "input.h"

namespace unisono::apps {

namespace {

// Bytes, by a line of Linux's /proc/meminfo; nothing where it isn't there.
std::optional<double> memory(std::string_view line) {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  double kib = 0;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == line) return kib * 1024;
  }
  return {};
}

// "512M", "2G", "1.5GiB", "1000000": bytes.
Result<double> parse_size(const std::string& text) {
  const Error wrong{"'" + text + "' is no size: write a number with K, M or G, as in 2G.", "--kv-memory"};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return wrong;
  const std::string unit(end, text.data() + text.size());
  if (!unit.empty()) {
    const size_t power = std::string("KMGT").find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
    const std::string rest = unit.substr(1);
    if (power == std::string::npos || !(rest.empty() || rest == "B" || rest == "iB")) return wrong;
    for (size_t i = 0; i <= power; i++) value *= 1024;
  }
  if (!(value > 0) || value > 1e15) return wrong;
  return value;
}

Result<void> size_cache(const ModelFlags& flags, const model::Hparams& h, engine::EngineOptions& options) {
  const int context = flags.max_context > 0 ? std::min(flags.max_context, h.context_length) : h.context_length;
  const CacheCost cost(h, kv_type(flags), context, options.token_budget);
  const int full = engine::blocks_for(context);
  double bytes = std::min(free_memory() / 4, cost.of(16 * full));
  if (!flags.kv_memory.empty()) {
    auto given = parse_size(flags.kv_memory);
    if (!given) return given.error();
    bytes = *given;
    const auto ram = memory("MemTotal:");
    if (const double all = ram.value_or(0) + memory("SwapTotal:").value_or(0); ram && bytes > all)
      return Error{fmt::format("--kv-memory of {} is more than the {} that this machine has.", size_text(bytes), size_text(all)),
                   "--kv-memory"};
  }
  options.n_blocks = cost.blocks_in(bytes);
  if (options.n_blocks < 2)
    return Error{fmt::format("--kv-memory of {} holds no sequence: 32 tokens of this model take {}.", size_text(bytes),
                             size_text(cost.of(2))),
                 "--kv-memory"};
  options.n_window_blocks = cost.window_blocks(options.n_blocks);
  options.max_context = static_cast<int>(std::min<int64_t>(context, int64_t{model::kBlockTokens} * options.n_blocks));
  if (flags.max_context > h.context_length)
    return Error{fmt::format("--max-context {} is more than the model's {}.", flags.max_context, h.context_length),
                 "--max-context"};
  if (flags.max_context > options.max_context)
    return Error{fmt::format("--max-context {} needs {} of key/value memory, but --kv-memory allows {}.", flags.max_context,
                             size_text(cost.of(full)), size_text(bytes)),
                 "--kv-memory"};
  return {};
}

}  // namespace

CacheCost::CacheCost(const model::Hparams& h, model::KvType type, int context, int budget)
    : window(h.window), max_context(context), token_budget(budget) {
  const auto bytes = [&](int layers) {
    return static_cast<double>(model::KvStore::block_bytes(type, layers, h.n_kv_heads, h.head_dim));
  };
  const int apart = engine::WindowBlocks::useful(h, context) ? static_cast<int>(std::ranges::count(h.windowed, 1)) : 0;
  block = bytes(h.n_layers - apart);
  window_block = bytes(apart);
}

int CacheCost::window_blocks(int n_blocks) const {
  return window_block > 0 ? engine::WindowBlocks::good_number(n_blocks, window, max_context, token_budget) : 0;
}

int CacheCost::blocks_in(double bytes) const {
  int fits = 0, too_many = 100'000'000;
  while (too_many - fits > 1) {
    const int middle = fits + (too_many - fits) / 2;
    (of(middle) <= bytes ? fits : too_many) = middle;
  }
  return fits;
}

void add_model_flags(CLI::App& command, ModelFlags& flags) {
  command.add_option("MODEL", flags.model, "Model file (GGUF)")->required();
  command.add_option("--threads", flags.threads, "Computing threads; 0: one for each CPU this process may use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      .add_option("--numa", flags.numa,
                  "Where threads and memory lie: distribute: a core for each thread, over all memory nodes; isolate: on the node where it "
                  "starts; numactl: memory as told from outside; off: as the system likes. Changes speed, never an answer")
      ->check(CLI::IsMember({"distribute", "isolate", "numactl", "off"}))
      ->capture_default_str();
  command.add_option("--isa", flags.isa, "Instruction set; auto: the fastest that runs here. All give the same bits")
      ->check(CLI::IsMember({"auto", "scalar", "avx2", "avxvnni", "avx512", "avx512bf16", "amx"}))
      ->capture_default_str();
  command
      .add_option("--activations", flags.activations,
                  "What activations are rounded to before a product: int8 is fastest, f32 the reference, bf16 near it")
      ->check(CLI::IsMember({"int8", "bf16", "f32"}))
      ->capture_default_str();
  command
      .add_option("--kv-type", flags.kv_type,
                  "Number type of cached keys and values; auto: what goes with the activations, bf16 with int8, f16 with bf16, f32 with f32")
      ->check(CLI::IsMember({"auto", "f16", "bf16", "f32", "q8_0"}))
      ->capture_default_str();
}

void add_context_flags(CLI::App& command, ModelFlags& flags) {
  command
      .add_option("--max-context", flags.max_context,
                  "Longest sequence in tokens; 0: the model's, or what --kv-memory holds")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command
      .add_option("--kv-memory", flags.kv_memory,
                  "Memory for keys and values, as in 2G; default: a quarter of the free memory, at most 16 full contexts")
      ->check(kNotEmpty);
}

double free_memory() { return memory("MemAvailable:").value_or(4e9); }

Placement placement(const ModelFlags& flags) {
  const Numa numa = flags.numa == "isolate"   ? Numa::isolate
                    : flags.numa == "numactl" ? Numa::numactl
                    : flags.numa == "off"     ? Numa::off
                                              : Numa::distribute;
  Placement where = place(flags.threads, numa);
  if (!where.note.empty()) remark("unisono: {}\n", where.note);
  return where;
}

std::string kv_type_name(const ModelFlags& flags) {
  if (flags.kv_type != "auto") return flags.kv_type;
  return flags.activations == "f32" ? "f32" : flags.activations == "bf16" ? "f16" : "bf16";
}
model::KvType kv_type(const ModelFlags& flags) {
  const std::string name = kv_type_name(flags);
  if (name == "bf16") return model::KvType::bf16;
  if (name == "q8_0") return model::KvType::q8_0;
  return name == "f32" ? model::KvType::f32 : model::KvType::f16;
}

Result<engine::LoadOptions> load_options(const ModelFlags& flags) {
  engine::LoadOptions options;
  options.model.activations = flags.activations == "f32"    ? model::Activations::f32
                              : flags.activations == "bf16" ? model::Activations::bf16
                                                            : model::Activations::int8;
  if (flags.isa == "auto" || flags.isa == "amx")
    if (const char* why = kernels::passed_over(); why != nullptr)
      remark("unisono: {} Without it the fastest is '{}'.\n", why, kernels::best_ops().name);
  if (flags.isa != "auto") {
    options.model.ops = kernels::find_ops(flags.isa.c_str());
    if (options.model.ops == nullptr)
      return Error{"This CPU can't run --isa " + flags.isa + "; it runs '" + kernels::best_ops().name + "'.", "--isa"};
  }
  if (isatty(2))
    options.progress = [](size_t done, size_t total) {
      remark("\rPacking weights: {:3.0f} % of {}", 100.0 * static_cast<double>(done) / static_cast<double>(total),
             size_text(static_cast<double>(total)));
      if (done == total) remark("\r\x1b[K");
      std::fflush(stderr);
    };
  return options;
}

Result<std::unique_ptr<Session>> open_session(const ModelFlags& flags, bool with_engine, engine::EngineOptions options) {
  auto session = std::make_unique<Session>(placement(flags));
  auto loading = load_options(flags);
  if (!loading) return loading.error();
  auto loaded = engine::load(flags.model, *loading, session->team);
  if (!loaded) return loaded.error();
  session->loaded = std::move(*loaded);
  const model::Hparams& h = session->loaded->description.hparams;
  auto& e = session->engine_options = std::move(options);
  if (auto sized = size_cache(flags, h, e); !sized) return sized.error();
  e.kv_type = kv_type(flags);
  e.end_tokens = session->loaded->description.end_tokens;
  if (with_engine)
    session->engine =
        std::make_unique<engine::Engine>(session->loaded->model, session->loaded->tokenizer, session->team, e);
  return session;
}

int complain(const Error& error) {
  remark("unisono: {}\n", error.message);
  return 2;
}

std::string size_text(double bytes) {
  const char* unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int i = 0;
  for (; bytes >= 1024 && i < 4; i++) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, i > 0 && bytes < 100 ? 1 : 0, unit[i]);
}

}  // namespace unisono::apps

#include "serve/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace unisono::serve {

using prometheus::Counter;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::MetricFamily;
using prometheus::MetricType;

namespace {

using Bounds = std::vector<double>;
const Bounds kWaits{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};
const Bounds kGaps{0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2.5, 5};
const Bounds kCounts{1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};

// vLLM's words for how an answer ended.
const char* finished_reason(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::stop_token:
    case engine::FinishReason::stop_string:
    case engine::FinishReason::complete: return "stop";
    case engine::FinishReason::length:
    case engine::FinishReason::context: return "length";
    case engine::FinishReason::cancelled:
    case engine::FinishReason::deadline: return "abort";
    case engine::FinishReason::error: return "error";
  }
  return "error";
}

MetricFamily one(const char* name, const char* help, MetricType type, const Labels& labels, double value) {
  prometheus::ClientMetric metric;
  for (const auto& [key, text] : labels) metric.label.push_back({key, text});
  if (type == MetricType::Counter) metric.counter.value = value;
  if (type == MetricType::Gauge) metric.gauge.value = value;
  return {.name = name, .help = help, .type = type, .metric = {metric}};
}

MetricFamily step_family(const engine::StepCounts& counts, const Labels& labels) {
  MetricFamily family = one("unisono:step_seconds", "Time of one step of the engine.", MetricType::Histogram, labels, 0);
  auto& histogram = family.metric[0].histogram;
  for (size_t i = 0; i < counts.in_class.size(); i++) {
    histogram.sample_count += counts.in_class[i];
    if (i == engine::kStepBounds.size()) break;
    histogram.bucket.push_back({.cumulative_count = histogram.sample_count, .upper_bound = engine::kStepBounds[i]});
  }
  histogram.sample_sum = counts.sum_s;
  return family;
}

// Of each kind of layers that has blocks of its own.
MetricFamily blocks_family(const char* name, const char* help, const Labels& labels, int all, std::optional<int> window) {
  MetricFamily family{.name = name, .help = help, .type = MetricType::Gauge, .metric = {}};
  const auto add = [&](const char* layers, int value) {
    Labels kind = labels;
    kind["layers"] = layers;
    family.metric.push_back(one(name, help, MetricType::Gauge, kind, value).metric[0]);
  };
  add(window ? "full" : "all", all);
  if (window) add("window", *window);
  return family;
}

// What the engine knows, made when somebody asks.
class EngineMetrics final : public prometheus::Collectable {
 public:
  EngineMetrics(Labels labels, std::function<engine::EngineState()> state)
      : labels_(std::move(labels)), state_(std::move(state)) {}

  std::vector<MetricFamily> Collect() const override {
    const engine::EngineState s = state_();
    const auto used_of = [](int free, int total) { return total > 0 ? 1 - static_cast<double>(free) / total : 0; };
    const double used =
        std::max(used_of(s.blocks_free, s.blocks_total), used_of(s.window_blocks_free, s.window_blocks_total));
    const auto gauge = [&](const char* name, const char* help, double value) {
      return one(name, help, MetricType::Gauge, labels_, value);
    };
    const auto counter = [&](const char* name, const char* help, uint64_t value) {
      return one(name, help, MetricType::Counter, labels_, static_cast<double>(value));
    };
    Labels cache = labels_;
    cache["block_size"] = std::to_string(s.block_tokens);
    cache["num_gpu_blocks"] = std::to_string(s.blocks_total);
    std::optional<int> window_free, window_total;
    if (s.window_blocks_total > 0) {
      cache["num_window_blocks"] = std::to_string(s.window_blocks_total);
      window_free = s.window_blocks_free;
      window_total = s.window_blocks_total;
    }
    return {
        gauge("vllm:num_requests_running", "Requests that take part in steps.", s.running),
        gauge("vllm:num_requests_waiting", "Requests in the queue.", s.waiting),
        gauge("vllm:kv_cache_usage_perc", "Share of the key/value blocks in use, 0 to 1.", used),
        one("vllm:cache_config_info", "Size and number of the key/value blocks.", MetricType::Gauge, cache, 1),
        blocks_family("unisono:kv_blocks", "Key/value blocks.", labels_, s.blocks_total, window_total),
        blocks_family("unisono:kv_blocks_free", "Of them, those in no request's use.", labels_, s.blocks_free, window_free),
        counter("vllm:num_preemptions_total", "Requests that gave their blocks back and computed again.", s.preemptions),
        counter("vllm:prefix_cache_queries_total", "Prompt tokens looked for in the prefix cache.", s.prefix_queries),
        counter("vllm:prefix_cache_hits_total", "Of them, those found.", s.prefix_hits),
        counter("unisono:steps_total", "Steps of the engine.", s.steps),
        counter("unisono:step_tokens_total", "Tokens computed in steps, recomputed ones included.", s.rows),
        one("unisono:model_seconds_total", "Of the steps' time, the forward pass and choosing tokens.", MetricType::Counter,
            labels_, s.step_times.model_s),
        gauge("unisono:busy_seconds", "How long the engine's loop has been at its present round.", s.busy_s),
        step_family(s.step_times, labels_)};
  }

 private:
  Labels labels_;
  std::function<engine::EngineState()> state_;
};

}  // namespace

struct Metrics::Impl {
  Impl(const std::string& model_name, std::function<engine::EngineState()> state)
      : labels{{"model_name", model_name}}, engine(labels, std::move(state)) {}

  Histogram& histogram(const char* name, const char* help, const Bounds& bounds, const Labels& more = {}) {
    return prometheus::BuildHistogram().Name(name).Help(help).Labels(labels).Register(registry).Add(more, bounds);
  }
  Counter& counter(const char* name, const char* help, const Labels& more = {}) {
    return prometheus::BuildCounter().Name(name).Help(help).Labels(labels).Register(registry).Add(more);
  }
  Histogram& part(const char* name) {
    return histogram("unisono:first_token_part_seconds", "The parts of the time to the first token.", kWaits,
                     {{"part", name}});
  }

  const Labels labels;
  prometheus::Registry registry{prometheus::Registry::InsertBehavior::Merge};
  EngineMetrics engine;
  Histogram& ttft =
      histogram("vllm:time_to_first_token_seconds", "From the request's last byte to its first token.", kWaits);
  Histogram &text = part("text"), &queue = part("queue"), &prefill = part("prefill"), &write = part("write");
  Histogram& gap = histogram("vllm:inter_token_latency_seconds", "Between two parts of an answer.", kGaps);
  Histogram& per_token =
      histogram("vllm:request_time_per_output_token_seconds", "An answer's mean time per token after its first.", kGaps);
  Histogram& whole =
      histogram("vllm:e2e_request_latency_seconds", "From the request's last byte to the answer's last token.", kWaits);
  Histogram& queue_time = histogram("vllm:request_queue_time_seconds", "In the queue.", kWaits);
  Histogram& prefill_time = histogram("vllm:request_prefill_time_seconds", "From the queue to the first token.", kWaits);
  Histogram& decode_time = histogram("vllm:request_decode_time_seconds", "From the first token to the last.", kWaits);
  Histogram& inference_time = histogram("vllm:request_inference_time_seconds", "From the queue to the last token.", kWaits);
  Histogram& prompt_tokens = histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", kCounts);
  Histogram& answer_tokens = histogram("vllm:request_generation_tokens", "Tokens of an answer.", kCounts);
  Counter& prompt_total = counter("vllm:prompt_tokens_total", "Tokens of prompts.");
  Counter& cached_total = counter("unisono:cached_prompt_tokens_total", "Of prompts' tokens, those that were cached.");
  Counter& answer_total = counter("vllm:generation_tokens_total", "Tokens of answers.");
};

Metrics::Metrics(const std::string& model_name, std::function<engine::EngineState()> state)
    : impl_(std::make_unique<Impl>(model_name, std::move(state))) {}

Metrics::~Metrics() = default;

void Metrics::first_token(const FirstTokenTimes& times) {
  impl_->text.Observe(times.text);
  impl_->queue.Observe(times.queue);
  impl_->prefill.Observe(times.prefill);
  impl_->write.Observe(times.write);
  impl_->ttft.Observe(times.text + times.queue + times.prefill + times.write);
}

void Metrics::token_gap(double seconds) { impl_->gap.Observe(seconds); }

void Metrics::tokens(int prompt, int cached, int generated) {
  impl_->prompt_total.Increment(prompt);
  impl_->cached_total.Increment(cached);
  impl_->answer_total.Increment(generated);
}

void Metrics::ended(const AnswerTimes& answer) {
  const auto& [queue_s, prefill_s, decode_s] = answer.timings;
  const int n_tokens = answer.usage.completion_tokens;
  impl_->queue_time.Observe(queue_s);
  impl_->whole.Observe(answer.whole);
  impl_->prompt_tokens.Observe(answer.usage.prompt_tokens);
  impl_->answer_tokens.Observe(n_tokens);
  if (n_tokens > 0) {
    impl_->prefill_time.Observe(prefill_s);
    impl_->decode_time.Observe(decode_s);
    impl_->inference_time.Observe(prefill_s + decode_s);
  }
  if (n_tokens > 1) impl_->per_token.Observe(decode_s / (n_tokens - 1));
  impl_
      ->counter("vllm:request_success_total", "Answers that ended, by vLLM's reasons.",
                {{"finished_reason", finished_reason(answer.finish)}})
      .Increment();
  impl_->counter("unisono:answers_total", "Answers that ended, by reason.", {{"reason", reason_name(answer.finish)}})
      .Increment();
}

void Metrics::responded(int status) {
  impl_
      ->counter("unisono:responses_total", "HTTP responses by status; 499: the client left before.",
                {{"status", std::to_string(status)}})
      .Increment();
}

std::string Metrics::text() const {
  auto families = impl_->engine.Collect();
  for (auto& family : impl_->registry.Collect()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

const char* reason_name(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::stop_token: return "stop_token";
    case engine::FinishReason::stop_string: return "stop_string";
    case engine::FinishReason::length: return "length";
    case engine::FinishReason::context: return "context";
    case engine::FinishReason::cancelled: return "cancelled";
    case engine::FinishReason::deadline: return "deadline";
    case engine::FinishReason::complete: return "complete";
    case engine::FinishReason::error: return "error";
  }
  return "error";
}

}  // namespace unisono::serve

#include "model/head.h"

#include <algorithm>
#include <cstring>

namespace unisono::model {

using kernels::Bf16Block;
using kernels::kBlock;
using kernels::kLanes;
using kernels::QuantBlock;

namespace {
constexpr int kRefinedPairs = 32;
constexpr float kReach = 16;  // what is behind it weighs less than 1e-6 of the best
constexpr int kPairColumns = PanelDeal::kPair * kLanes;
// For so few rows memory bounds the product: both roundings are multiplied at once.
constexpr int kTogether = 4;
}  // namespace

// By bisection: the same floats on any machine, no order to be kept, and a sort would take longer than a row's product.
float refining_threshold(std::span<const float> peaks) {
  const auto reaching = [&](float threshold) {
    int n = 0;
    for (const float peak : peaks) n += peak >= threshold ? 1 : 0;
    return n;
  };
  float high = *std::max_element(peaks.begin(), peaks.end()), low = high - kReach;
  if (reaching(low) <= kRefinedPairs) return low;
  for (int i = 0; i < 10; i++) {
    const float middle = low + (high - low) / 2;
    (reaching(middle) > kRefinedPairs ? low : high) = middle;
  }
  return high;
}

Head::Head(const Hparams& hparams, const Weights& weights, const kernels::Ops& ops)
    : h_(hparams), norm_(weights.output_norm), linear_(weights.head), ops_(ops) {
  twice_ = linear_.needs(Activations::int8);
  blocks_ = linear_.k() / kBlock;
  pairs_ = PanelDeal::pairs(linear_.panels());
}

void Head::reserve(int rows, int workers) {
  if (rows <= capacity_ && workers <= workers_) return;
  capacity_ = std::max({rows, capacity_, 1});
  workers_ = std::max(workers, workers_);
  const auto make = [](Buffer& buffer, int64_t n, size_t each) { buffer = Buffer(static_cast<size_t>(n) * each); };
  const int64_t n = capacity_;
  make(normed_, n * linear_.k(), sizeof(float));
  if (linear_.needs(Activations::bf16)) make(bf16_, n * blocks_, sizeof(Bf16Block));
  make(logits_, (twice_ ? 2 : 1) * n * linear_.columns(), sizeof(float));
  if (linear_.columns() != h_.vocab_size) make(compact_, n * h_.vocab_size, sizeof(float));
  if (!twice_) return;
  make(int8_, 2 * n * blocks_, sizeof(QuantBlock));
  make(peaks_, n * pairs_, sizeof(float));
  make(thresholds_, n, sizeof(float));
  make(gathered_, workers_ * n * blocks_, sizeof(QuantBlock));
  make(wanting_, workers_ * n, sizeof(int));
}

void Head::prepare(int row, int rows, const float* hidden) {
  float* in = normed_.as<float>().data() + int64_t{row} * linear_.k();
  ops_.rms_norm(hidden, norm_.data(), h_.norm_eps, in, h_.d_model);
  if (linear_.needs(Activations::bf16)) ops_.round_bf16(in, linear_.k(), bf16_.as<Bf16Block>().data() + row * blocks_);
  if (!twice_) return;
  QuantBlock* int8 = int8_.as<QuantBlock>().data();
  ops_.quantise(in, linear_.k(), int8 + row * blocks_);
  ops_.rounding(in, linear_.k(), int8 + row * blocks_, in);
  ops_.quantise(in, linear_.k(), int8 + (rows + row) * blocks_);
}

void Head::multiply(Worker& worker, PanelDeal::Hand& hand, int rows) {
  const ActivationRows in{int8_.as<QuantBlock>().data(), bf16_.as<Bf16Block>().data(), normed_.as<float>().data(),
                          linear_.k()};
  const int at_once = twice_ && rows <= kTogether ? 2 * rows : rows;
  hand.each_pair(linear_.panels(), [&](int panel, int end, int next) {
    linear_.multiply(ops_, in, 0, at_once, row(0), linear_.columns(), panel, end, linear_.upcoming(next));
    if (twice_) note_peaks(rows, panel, end);
  });
  if (!twice_) return;
  worker.barrier();
  refine(worker, hand, rows);
}

// The best logits of the pairs of panels [panel, end). Lanes beyond the vocabulary are no tokens.
void Head::note_peaks(int rows, int panel, int end) {
  for (int r = 0; r < rows; r++)
    for (int p = panel; p < end; p += PanelDeal::kPair) {
      const int first = p * kLanes, last = std::min(first + kPairColumns, h_.vocab_size);
      peaks(r)[p / PanelDeal::kPair] = ops_.maximum(row(r) + first, last - first);
    }
}

void Head::refine(Worker& worker, PanelDeal::Hand& hand, int rows) {
  const auto threshold = [&](int r) { return refining_threshold({peaks(r), static_cast<size_t>(pairs_)}); };
  if (rows <= kTogether) {
    const auto [begin, end] = hand.share(linear_.panels());
    for (int r = 0; r < rows; r++) {
      const float t = threshold(r);
      for (int pair = begin; pair < end; pair++)
        if (peaks(r)[pair] >= t) add_second(pair, r, rows + r);
    }
    return;
  }
  const auto mine = worker.share(rows);
  float* thresholds = thresholds_.as<float>().data();
  for (int64_t r = mine.begin; r < mine.end; r++) thresholds[r] = threshold(static_cast<int>(r));
  worker.barrier();
  const int w = worker.index();
  const int* wanting = wanting_.as<int>().data() + int64_t{w} * capacity_;
  const ActivationRows in{gathered_.as<QuantBlock>().data() + int64_t{w} * capacity_ * blocks_, nullptr, nullptr, 0};
  hand.each_pair(linear_.panels(), [&](int panel, int end, int) {
    for (int p = panel; p < end; p += PanelDeal::kPair) {
      const int pair = p / PanelDeal::kPair, n = gather(pair, rows, w);
      if (n == 0) continue;
      linear_.multiply(ops_, in, 0, n, row(rows), linear_.columns(), p, std::min(p + PanelDeal::kPair, linear_.panels()),
                       {});
      for (int i = 0; i < n; i++) add_second(pair, wanting[i], rows + i);
    }
  });
}

// The second roundings of the rows that want the pair, side by side for this worker: how many.
int Head::gather(int pair, int rows, int worker) {
  int* wanting = wanting_.as<int>().data() + int64_t{worker} * capacity_;
  QuantBlock* out = gathered_.as<QuantBlock>().data() + int64_t{worker} * capacity_ * blocks_;
  const QuantBlock* second = int8_.as<QuantBlock>().data() + rows * blocks_;
  const float* thresholds = thresholds_.as<float>().data();
  int n = 0;
  for (int r = 0; r < rows; r++) {
    if (peaks(r)[pair] < thresholds[r]) continue;
    std::memcpy(out + n * blocks_, second + r * blocks_, static_cast<size_t>(blocks_) * sizeof(QuantBlock));
    wanting[n++] = r;
  }
  return n;
}

// Row `to`'s logits of the pair += row `second`'s.
void Head::add_second(int pair, int to, int second) {
  const int first = pair * kPairColumns;
  ops_.add(row(to) + first, row(second) + first, std::min(kPairColumns, linear_.columns() - first));
}

std::span<const float> Head::logits(int rows) {
  const size_t vocab = static_cast<size_t>(h_.vocab_size), n = static_cast<size_t>(rows);
  if (linear_.columns() == h_.vocab_size) return {row(0), n * vocab};
  float* compact = compact_.as<float>().data();
  for (int r = 0; r < rows; r++) std::memcpy(compact + static_cast<size_t>(r) * vocab, row(r), vocab * sizeof(float));
  return {compact, n * vocab};
}

}  // namespace unisono::model

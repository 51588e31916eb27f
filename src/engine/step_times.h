// How long the engine's steps took: counted on its thread with neither lock nor allocation, read from any.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace unisono::engine {

// Upper bounds of the classes, in seconds; one more class has all that is longer.
inline constexpr std::array<double, 14> kStepBounds{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                                    0.1,    0.2,   0.5,   1,     2,    5,    10};

struct StepCounts {
  std::array<uint64_t, kStepBounds.size() + 1> in_class{};
  double sum_s = 0;
  double model_s = 0;  // of the sum, in the forward pass and choosing tokens
};

class StepTimes {
 public:
  // One thread only. model: of the seconds, those in the forward pass and choosing tokens.
  void add(double seconds, double model) {
    const auto bound = std::ranges::lower_bound(kStepBounds, seconds);
    in_class_[static_cast<size_t>(bound - kStepBounds.begin())].fetch_add(1, std::memory_order_relaxed);
    sum_s_.store(sum_s_.load(std::memory_order_relaxed) + seconds, std::memory_order_relaxed);
    model_s_.store(model_s_.load(std::memory_order_relaxed) + model, std::memory_order_relaxed);
  }
  StepCounts read() const {
    StepCounts out;
    for (size_t i = 0; i < in_class_.size(); i++) out.in_class[i] = in_class_[i].load(std::memory_order_relaxed);
    out.sum_s = sum_s_.load(std::memory_order_relaxed);
    out.model_s = model_s_.load(std::memory_order_relaxed);
    return out;
  }

 private:
  std::array<std::atomic<uint64_t>, kStepBounds.size() + 1> in_class_{};
  std::atomic<double> sum_s_{0}, model_s_{0};
};

}  // namespace unisono::engine

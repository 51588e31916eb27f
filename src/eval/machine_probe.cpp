#include "eval/machine_probe.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

namespace unisono::eval {

namespace {
// Read again and again, some of it is still in the last-level cache: beside one of 32 MB, 256 MiB seem 8 % faster than
// memory is, 1 GiB 1 %.
constexpr size_t kBytes = size_t{1} << 30;
constexpr int64_t kGrain = int64_t{1} << 20;
constexpr int kTries = 3;
constexpr double kSeconds = 0.004;
}  // namespace

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

MachineProbe::MachineProbe(const kernels::Probe& probe, ThreadTeam& team) : probe_(probe), team_(team), memory_(kBytes) {
  team_.run([&](Worker& worker) {  // who reads a part writes it first: so it lies in that thread's memory
    const auto mine = worker.share(kBytes, kGrain);
    std::memset(memory_.data() + mine.begin, 1, static_cast<size_t>(mine.end - mine.begin));
  });
}

double MachineProbe::read_bytes() {
  double best = 0;
  for (int i = 0; i < kTries; i++) {
    const double begin = seconds_now();
    team_.run([&](Worker& worker) {
      const auto mine = worker.share(kBytes, kGrain);
      probe_.read(memory_.data() + mine.begin, static_cast<size_t>(mine.end - mine.begin));
    });
    best = std::max(best, static_cast<double>(kBytes) / (seconds_now() - begin));
  }
  return best;
}

double MachineProbe::operations(model::Activations kind) {
  const auto loop = kind == model::Activations::int8 ? probe_.int8 : kind == model::Activations::bf16 ? probe_.bf16 : probe_.f32;
  int64_t& rounds = rounds_[static_cast<size_t>(kind)];
  std::vector<double> done(static_cast<size_t>(team_.size()));
  auto rate = [&](int64_t n) {
    const double begin = seconds_now();
    team_.run([&](Worker& worker) { done[static_cast<size_t>(worker.index())] = loop(n); });
    const double seconds = seconds_now() - begin;
    double sum = 0;
    for (double d : done) sum += d;
    return sum / seconds;
  };
  if (rounds == 0) {
    constexpr int64_t kSome = 4096;
    const double a_second = rate(kSome);
    const double of_round = loop(1) * team_.size();
    rounds = std::max<int64_t>(kSome, static_cast<int64_t>(kSeconds * a_second / of_round));
  }
  double best = 0;
  for (int i = 0; i < kTries; i++) best = std::max(best, rate(rounds));
  return best;
}

}  // namespace unisono::eval

#include "kernels/amx.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/buffer.h"
#include "base/philox.h"
#include "base/thread_team.h"
#include "kernels/pack.h"

namespace unisono::kernels {

namespace {

bool cpu_has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTile) != 0 && (d & kInt8) != 0;
}

// Linux saves tiles for who asks: their memory is large (Documentation/arch/x86/xstate.rst).
bool system_permits_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  constexpr unsigned kTileState = 3u << 17;                   // XTILECFG and XTILEDATA in XCR0
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return false;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a & kTileState) == kTileState && ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Two tiles of rows and a few more; a pair of panels and one more; more blocks than are unpacked at a time.
constexpr int kRows = 37, kPanels = 3, kDepth = 768;

// Units of pseudo-random bytes. Each begins with its scales in f16: without the highest bit of their exponents these are
// finite.
Buffer random_panels(DType type, size_t bytes) {
  const size_t unit = panel_bytes(type, info(type).block_elems < 64 ? 64 : info(type).block_elems);
  Buffer panels(bytes);
  for (size_t i = 0; i < bytes; i++) {
    const uint32_t random = philox({static_cast<uint32_t>(i), 0, 0, 0}, {static_cast<uint32_t>(type), 0})[0];
    panels.data()[i] = static_cast<std::byte>(i % unit < 128 && i % 2 == 1 ? random & 0xbf : random);
  }
  return panels;
}

bool equal_products(DType type, const Ops& tiled, const Ops& plain) {
  constexpr size_t kOutputs = size_t{kRows} * kPanels * kLanes;
  FlushDenormals flushed;
  PanelMatrix w{type, kPanels * kLanes, kDepth, kPanels, panel_bytes(type, kDepth), nullptr};
  const Buffer panels = random_panels(type, w.panel_bytes * kPanels);
  w.data = panels.data();
  std::vector<float> x(size_t{kRows} * kDepth), y[2];
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(philox_uniform(1, 0, i)) - 0.5f;
  std::vector<QuantBlock> blocks(x.size() / kBlock);
  plain.quantise(x.data(), static_cast<int64_t>(x.size()), blocks.data());
  for (const Ops* ops : {&tiled, &plain}) {
    std::vector<float>& out = y[ops == &plain ? 1 : 0];
    out.resize(kOutputs);
    ops->matmul_int8(w, blocks.data(), kRows, out.data(), kPanels * kLanes, 0, kPanels, {});
  }
  return std::memcmp(y[0].data(), y[1].data(), kOutputs * sizeof(float)) == 0;
}

}  // namespace

TileMachine this_machine() { return {cpu_has_tiles, system_permits_tiles}; }

TileVerdict judge_tiles(const TileMachine& machine, const Ops& tiled, const Ops& plain) {
  if (!machine.has()) return {};
  if (!machine.permits())
    return {false, "This CPU has AMX, but the system doesn't let programs use it: Linux does from 5.16 on."};
  for (const DType type :
       {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q4_k, DType::q5_k, DType::q6_k})
    if (!equal_products(type, tiled, plain))
      return {false, "This CPU's AMX failed a trial: a product's bits differ from AVX-512's. Please report it."};
  return {true, nullptr};
}

}  // namespace unisono::kernels

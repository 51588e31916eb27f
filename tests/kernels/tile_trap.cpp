#include "kernels/tile_trap.h"

#include <signal.h>
#include <ucontext.h>

namespace unisono::kernels {

namespace {

#if defined(__x86_64__)

thread_local TileModel thread_tiles;
struct sigaction before;

constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

// A VEX instruction of map 0F38 with 128 bits and W0 (Intel's manual, volume 2, chapter 2.3).
struct Instruction {
  int prefix = 0, opcode = 0;     // prefix: 0 none, 1 66, 2 F3, 3 F2
  int reg = 0, rm = 0, vvvv = 0;  // numbers of registers; rm of memory: undefined
  bool in_memory = false;
  std::byte* at = nullptr;  // base and displacement
  ptrdiff_t index = 0;      // times its scale
  int length = 0;
};

// Empty length: none such.
Instruction decode(const uint8_t* code, const greg_t* registers) {
  Instruction i;
  if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x84) != 0) return i;
  const auto value = [&](int number) { return registers[kRegisters[number]]; };
  const int r = code[1] & 0x80 ? 0 : 8, x = code[1] & 0x40 ? 0 : 8, b = code[1] & 0x20 ? 0 : 8;
  i.prefix = code[2] & 3;
  i.vvvv = ~(code[2] >> 3) & 15;
  i.opcode = code[3];
  const int mod = code[4] >> 6, rm = code[4] & 7;
  i.reg = (code[4] >> 3 & 7) + r;
  i.rm = rm + b;
  i.in_memory = mod != 3;
  int at = 5;
  if (i.in_memory) {
    greg_t base = 0;
    int displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    bool from_rip = false;
    if (rm == 4) {
      const int sib = code[at++], index = (sib >> 3 & 7) + x, number = (sib & 7) + b;
      if (index != 4) i.index = static_cast<ptrdiff_t>(value(index)) << (sib >> 6);
      if (mod == 0 && (sib & 7) == 5) {
        displacement = 4;
      } else {
        base = value(number);
      }
    } else if (mod == 0 && rm == 5) {
      displacement = 4;
      from_rip = true;
    } else {
      base = value(i.rm);
    }
    if (displacement == 1) {
      base += static_cast<int8_t>(code[at]);
    } else if (displacement == 4) {
      int32_t more;
      std::memcpy(&more, code + at, 4);
      base += more;
    }
    at += displacement;
    if (from_rip) base += reinterpret_cast<greg_t>(code) + at;
    i.at = reinterpret_cast<std::byte*>(base);
  }
  i.length = at;
  return i;
}

bool execute(const Instruction& i, TileModel& tiles) {
  const int what = i.opcode << 4 | (i.in_memory ? 8 : 0) | i.prefix;
  switch (what) {
    case 0x498: {  // LDTILECFG m512
      TileConfig config;
      std::memcpy(&config, i.at + i.index, sizeof config);
      tiles.ldtilecfg(config);
      return true;
    }
    case 0x490: tiles.tilerelease(); return i.reg == 0 && i.rm == 0;
    case 0x493: tiles.tilezero(i.reg); return true;
    case 0x4bb: tiles.tileloadd(i.reg, i.at, i.index); return true;
    case 0x4ba: tiles.tilestored(i.reg, i.at, i.index); return true;
    case 0x5e3: tiles.tdpbssd(i.reg, i.rm, i.vvvv); return true;
    default: return false;
  }
}

void on_illegal(int, siginfo_t*, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const Instruction i = decode(reinterpret_cast<const uint8_t*>(registers[REG_RIP]), registers);
  check(i.length > 0 && execute(i, thread_tiles), "an illegal instruction that is none of the tiles'");
  registers[REG_RIP] += i.length;
}

#else
thread_local TileModel thread_tiles;
#endif

}  // namespace

#if defined(__x86_64__)
TileTrap::TileTrap() {
  struct sigaction action {};
  action.sa_sigaction = on_illegal;
  action.sa_flags = SA_SIGINFO;
  check(sigaction(SIGILL, &action, &before) == 0, "SIGILL can be handled");
}
TileTrap::~TileTrap() { sigaction(SIGILL, &before, nullptr); }
#else
TileTrap::TileTrap() = default;
TileTrap::~TileTrap() = default;
#endif

TileModel& TileTrap::tiles() { return thread_tiles; }

}  // namespace unisono::kernels

#include "grammar/lexicon.h"

#include <algorithm>

namespace unisono::grammar {

namespace {

// The kinds of a character's remaining bytes, for `skip` states.
enum Rest : uint32_t { one_left = 1, two_left = 2, three_left = 3, after_e0, after_ed, after_f0, after_f4 };

struct Lead {
  uint32_t first, last;  // the characters that begin with this byte
  uint32_t bits, left, least;
  Rest rest;
};

// lead >= 0xC2 and < 0xF5
Lead lead_of(uint32_t byte) {
  if (byte < 0xE0) return {(byte & 31) << 6, ((byte & 31) << 6) | 63, byte & 31, 1, 0x80, one_left};
  if (byte < 0xF0) {
    const uint32_t first = (byte & 15) << 12;
    const Rest rest = byte == 0xE0 ? after_e0 : byte == 0xED ? after_ed : two_left;
    return {std::max(first, 0x800u), byte == 0xED ? 0xD7FF : first | 0xFFF, byte & 15, 2, 0x800, rest};
  }
  const uint32_t first = (byte & 7) << 18;
  const Rest rest = byte == 0xF0 ? after_f0 : byte == 0xF4 ? after_f4 : three_left;
  return {std::max(first, 0x10000u), std::min(first | 0x3FFFF, kMaxChar), byte & 7, 3, 0x10000, rest};
}

// 0: not a continuation here; 1: the character is complete; otherwise what is left, plus one.
uint32_t skip(uint32_t rest, uint8_t byte) {
  uint8_t low = 0x80, high = 0xBF;
  uint32_t next = one_left;
  if (rest == one_left) next = 0;
  if (rest == three_left || rest == after_f0 || rest == after_f4) next = two_left;
  if (rest == after_e0) low = 0xA0;
  if (rest == after_ed) high = 0x9F;
  if (rest == after_f0) low = 0x90;
  if (rest == after_f4) high = 0x8F;
  return byte < low || byte > high ? 0 : next + 1;
}

int hex_digit(uint8_t c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

size_t Lexicon::KeyHash::operator()(const Key& k) const {
  uint64_t h = uint64_t(k.kind);
  for (uint64_t v : {k.a, k.b, k.c, k.d}) {
    h = (h ^ v) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 29;
  }
  return h;
}

Lexicon::Lexicon(RegexPool& pool) : pool_(pool) {
  states_.emplace_back();
  hot_.push_back({nullptr, 0, false, 0});
}

LexId Lexicon::state(Kind kind, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  auto [it, fresh] = index_.try_emplace({kind, a, b, c, d}, LexId(states_.size()));
  if (fresh) {
    State s;
    s.kind = kind;
    s.a = a, s.b = b, s.c = c, s.d = d;
    Hot hot;
    if (kind == Kind::list) hot.accepting = lists_[a][b].size() == d;
    if (kind == Kind::raw) hot.accepting = pool_.nullable(a);
    if (kind == Kind::number) hot.accepting = numbers_[a].complete(texts_[b]);
    if (kind == Kind::done) hot.accepting = true;
    if (kind != Kind::body) hot.span = 0;
    states_.push_back(std::move(s));
    hot_.push_back(hot);
  }
  return it->second;
}

LexId Lexicon::literals(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  if (texts.empty()) return kDead;
  std::string key;
  for (const std::string& t : texts) {
    const auto n = uint32_t(t.size());
    key.append(reinterpret_cast<const char*>(&n), sizeof n).append(t);
  }
  auto [it, fresh] = list_index_.try_emplace(std::move(key), uint32_t(lists_.size()));
  const auto count = uint32_t(texts.size());
  if (fresh) {
    std::vector<std::string_view>& list = lists_.emplace_back();
    for (std::string& t : texts) list.push_back(list_texts_.emplace_back(std::move(t)));
  }
  return state(Kind::list, it->second, 0, count, 0);
}

LexId Lexicon::sorted_literals(std::vector<std::string_view> texts) {
  if (texts.empty()) return kDead;
  lists_.push_back(std::move(texts));
  return state(Kind::list, uint32_t(lists_.size() - 1), 0, uint32_t(lists_.back().size()), 0);
}

LexId Lexicon::regex(RegexId content) { return pool_.alive(content) ? state(Kind::raw, content) : kDead; }

LexId Lexicon::json_string(RegexId content) { return pool_.alive(content) ? state(Kind::open, content) : kDead; }

LexId Lexicon::number(const NumberSet& set) {
  if (set.empty()) return kDead;
  auto [it, fresh] = number_index_.try_emplace(set.key(), uint32_t(numbers_.size()));
  if (fresh) numbers_.push_back(set);
  const auto text = text_index_.try_emplace("", uint32_t(texts_.size()));
  if (text.second) texts_.emplace_back();
  return state(Kind::number, it->second, text.first->second);
}

bool Lexicon::ask_continues(LexId id) {
  const State& s = states_[id];
  bool out = true;
  switch (s.kind) {
    case Kind::dead:
    case Kind::done: out = false; break;
    case Kind::list: out = s.c - s.b > 1 || lists_[s.a][s.b].size() > s.d; break;
    case Kind::raw: out = pool_.any_next(s.a, 0, kMaxChar); break;
    case Kind::number:
      out = false;
      for (char c : std::string_view("0123456789.-eE+")) out = out || step(id, uint8_t(c)) != kDead;
      break;
    default: break;
  }
  hot_[id].continues = out;
  return out;
}

uint32_t Lexicon::ask_free_span(LexId id) {
  return hot_[id].span = std::min(pool_.free_span(states_[id].a), kNotAsked - 1);
}

uint32_t Lexicon::full_span(LexId id) {
  const State& s = states_[id];
  return s.kind == Kind::body && pool_.nullable(s.a) && pool_.holds_all_short(s.a) ? free_span(id) : 0;
}

LexId* Lexicon::give_row(LexId id, std::unique_ptr<LexId[]> row) {
  states_[id].row = std::move(row);
  ++rows_;
  return hot_[id].row = states_[id].row.get();
}

const Lexicon::Bytes& Lexicon::first_bytes(LexId id) {
  State& s = states_[id];
  if (s.first) return *s.first;
  auto out = std::make_unique<Bytes>();
  auto add = [&](uint8_t b) { (*out)[b / 64] |= uint64_t(1) << (b % 64); };
  if (s.kind == Kind::list) {
    for (uint32_t i = s.b; i < s.c; ++i)
      if (lists_[s.a][i].size() > s.d) add(uint8_t(lists_[s.a][i][s.d]));
  } else if (s.kind == Kind::number) {
    for (char c : std::string_view("0123456789.-eE+")) add(uint8_t(c));
  } else {
    for (int b = 0; b < 256; ++b)
      if (step(id, uint8_t(b)) != kDead) add(uint8_t(b));
  }
  states_[id].first = std::move(out);
  return *states_[id].first;
}

void Lexicon::drop_rows() {
  for (State& s : states_) s.row.reset();
  for (Hot& hot : hot_) hot.row = nullptr;
  rows_ = 0;
}

LexId Lexicon::step_slowly(LexId id, uint8_t byte) {
  State& s = states_[id];
  switch (s.kind) {
    case Kind::dead:
    case Kind::done: return kDead;
    case Kind::open: return byte == '"' ? state(Kind::body, s.a) : kDead;
    case Kind::list:
      // A single literal needs no row: one byte goes on.
      if (s.c - s.b == 1 && (s.d >= lists_[s.a][s.b].size() || uint8_t(lists_[s.a][s.b][s.d]) != byte)) return kDead;
      return step_list(s, byte);
    case Kind::raw:
    case Kind::body: fill_text_row(id); return states_[id].row[byte];
    case Kind::raw_skip:
    case Kind::body_skip: {
      const uint32_t rest = skip(s.b, byte);
      if (rest == 0) return kDead;
      if (rest == 1) return state(s.kind == Kind::raw_skip ? Kind::raw : Kind::body, s.a);
      return state(s.kind, s.a, rest - 1);
    }
    default: break;
  }
  if (!s.row) {
    auto row = std::make_unique<LexId[]>(256);
    std::fill_n(row.get(), 256, kUnknown);
    give_row(id, std::move(row));
  }
  const LexId next = s.kind == Kind::number                                        ? step_number(s, byte)
                     : s.kind == Kind::raw_partial || s.kind == Kind::body_partial ? step_partial(s, byte)
                                                                                   : step_escape(s, byte);
  return states_[id].row[byte] = next;
}

LexId Lexicon::step_list(const State& s, uint8_t byte) {
  const std::vector<std::string_view>& list = lists_[s.a];
  // Sorted, so that a text that ends here stands first.
  auto at = [&](std::string_view t) { return t.size() > s.d ? int(uint8_t(t[s.d])) : -1; };
  const auto begin = list.begin() + s.b, end = list.begin() + s.c;
  const auto low = std::partition_point(begin, end, [&](std::string_view t) { return at(t) < byte; });
  const auto high = std::partition_point(low, end, [&](std::string_view t) { return at(t) <= byte; });
  if (low == high) return kDead;
  return state(Kind::list, s.a, uint32_t(low - list.begin()), uint32_t(high - list.begin()), s.d + 1);
}

LexId Lexicon::step_number(const State& s, uint8_t byte) {
  const std::string& before = texts_[s.b];
  const char c = char(byte);
  const bool mantissa = before.find_first_of("eE") == std::string::npos;
  const char last = before.empty() ? ' ' : before.back();
  const bool after_digit = last >= '0' && last <= '9';
  bool fits = c >= '0' && c <= '9';
  if (c == '-') fits = before.empty() || last == 'e' || last == 'E';
  if (c == '+') fits = last == 'e' || last == 'E';
  if (c == '.') fits = mantissa && after_digit && before.find('.') == std::string::npos;
  if (c == 'e' || c == 'E') fits = mantissa && after_digit;
  if (!fits) return kDead;
  std::string text = before + c;
  const uint32_t set = s.a;
  if (!numbers_[set].alive(text)) return kDead;
  const auto [it, fresh] = text_index_.try_emplace(text, uint32_t(texts_.size()));
  if (fresh) texts_.push_back(std::move(text));
  return state(Kind::number, set, it->second);
}

bool Lexicon::range_alive(RegexId content, uint32_t first, uint32_t last) {
  // Surrogates are no characters.
  return pool_.any_next(content, first, std::min(last, 0xD7FFu)) || pool_.any_next(content, std::max(first, 0xE000u), last);
}

LexId Lexicon::after_char(Kind kind, RegexId content, uint32_t c) {
  const RegexId next = pool_.next(content, c);
  return next == RegexPool::kNothing ? kDead : state(kind, next);
}

LexId Lexicon::step_partial(const State& s, uint8_t byte) {
  if ((byte & 0xC0) != 0x80) return kDead;
  const uint32_t bits = (s.b << 6) | (byte & 63), left = s.c - 1;
  if (left == 0) {
    if (bits < s.d || bits > kMaxChar || (bits >= 0xD800 && bits < 0xE000)) return kDead;
    return after_char(s.kind == Kind::raw_partial ? Kind::raw : Kind::body, s.a, bits);
  }
  const uint32_t first = std::max(bits << (6 * left), s.d);
  const uint32_t last = std::min(((bits + 1) << (6 * left)) - 1, kMaxChar);
  return first <= last && range_alive(s.a, first, last) ? state(s.kind, s.a, bits, left, s.d) : kDead;
}

LexId Lexicon::step_escape(const State& s, uint8_t byte) {
  switch (s.kind) {
    case Kind::slash: {
      constexpr std::string_view kNames = "\"\\/bfnrt", kMeans = "\"\\/\b\f\n\r\t";
      const size_t i = kNames.find(char(byte));
      if (i != std::string_view::npos) return after_char(Kind::body, s.a, uint8_t(kMeans[i]));
      return byte == 'u' && range_alive(s.a, 0, kMaxChar) ? state(Kind::hex, s.a, 0, 4) : kDead;
    }
    case Kind::hex: {
      const int digit = hex_digit(byte);
      if (digit < 0) return kDead;
      const uint32_t value = s.b * 16 + uint32_t(digit), left = s.c - 1;
      const uint32_t first = value << (4 * left), last = ((value + 1) << (4 * left)) - 1;
      // A high half needs some character above U+FFFF that begins with it.
      const uint32_t high = std::max(first, 0xD800u), high_last = std::min(last, 0xDBFFu);
      const bool pair = high <= high_last &&
                        range_alive(s.a, 0x10000 + ((high - 0xD800) << 10), 0x10000 + ((high_last - 0xD800) << 10) + 0x3FF);
      if (left > 0) return pair || range_alive(s.a, first, last) ? state(Kind::hex, s.a, value, left) : kDead;
      if (value >= 0xD800 && value < 0xE000) return pair ? state(Kind::low_slash, s.a, value) : kDead;
      return after_char(Kind::body, s.a, value);
    }
    case Kind::low_slash: return byte == '\\' ? state(Kind::low_u, s.a, s.b) : kDead;
    case Kind::low_u: return byte == 'u' ? state(Kind::low_hex, s.a, s.b, 0, 4) : kDead;
    case Kind::low_hex: {
      const int digit = hex_digit(byte);
      if (digit < 0) return kDead;
      const uint32_t value = s.c * 16 + uint32_t(digit), left = s.d - 1;
      const uint32_t first = std::max(value << (4 * left), 0xDC00u),
                     last = std::min(((value + 1) << (4 * left)) - 1, 0xDFFFu);
      if (first > last) return kDead;
      const uint32_t base = 0x10000 + ((s.b - 0xD800) << 10) - 0xDC00;
      if (left == 0) return after_char(Kind::body, s.a, base + value);
      return range_alive(s.a, base + first, base + last) ? state(Kind::low_hex, s.a, s.b, value, left) : kDead;
    }
    default: return kDead;
  }
}

// All bytes at once: a state's characters come in few runs.
void Lexicon::fill_text_row(LexId id) {
  const Kind kind = states_[id].kind;
  const RegexId content = states_[id].a;
  const bool string = kind == Kind::body;
  auto row = std::make_unique<LexId[]>(256);
  std::fill_n(row.get(), 256, kDead);
  std::vector<RegexPool::Arc> arcs;
  if (content == RegexPool::kAll)
    arcs = {{0, RegexPool::kAll}};
  else
    arcs.assign(pool_.arcs(content).begin(), pool_.arcs(content).end());
  for (size_t i = 0; i < arcs.size() && arcs[i].first < 128; ++i) {
    if (arcs[i].next == RegexPool::kNothing) continue;
    const uint32_t end = i + 1 < arcs.size() ? std::min(arcs[i + 1].first, 128u) : 128;
    const LexId next = state(kind, arcs[i].next);
    for (uint32_t c = std::max(arcs[i].first, string ? 32u : 0u); c < end; ++c) row[c] = next;
  }
  size_t i = 0;
  for (uint32_t byte = 0xC2; byte < 0xF5; ++byte) {
    const Lead lead = lead_of(byte);
    while (i + 1 < arcs.size() && arcs[i + 1].first <= lead.first) ++i;
    const bool same = i + 1 == arcs.size() || arcs[i + 1].first > lead.last;
    if (same && arcs[i].next != RegexPool::kNothing)
      row[byte] = state(string ? Kind::body_skip : Kind::raw_skip, arcs[i].next, lead.rest);
    else if (!same && range_alive(content, lead.first, lead.last))
      row[byte] = state(string ? Kind::body_partial : Kind::raw_partial, content, lead.bits, lead.left, lead.least);
  }
  if (string) {
    row['\\'] = pool_.any_next(content, 0, kMaxChar) ? state(Kind::slash, content) : kDead;
    row['"'] = pool_.nullable(content) ? state(Kind::done, 0) : kDead;
  }
  give_row(id, std::move(row));
}

}  // namespace unisono::grammar

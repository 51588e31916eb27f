#include "grammar/number.h"

#include <algorithm>
#include <charconv>

namespace unisono::grammar {

using boost::multiprecision::cpp_int;

namespace {

const cpp_int& power_of_ten(int n) {
  static const std::vector<cpp_int> table = [] {
    std::vector<cpp_int> out{1};
    for (int i = 0; i < 1000; ++i) out.push_back(out.back() * 10);
    return out;
  }();
  return table[size_t(n)];
}

cpp_int floor_div(const cpp_int& a, const cpp_int& b) {
  cpp_int q = a / b;
  if (a % b != 0 && a < 0) --q;
  return q;
}

// Of consecutive integers at most 57 can each be divisible by one of eleven numbers above 1: Jacobsthal's function at the
// product of the first eleven primes is 58 (OEIS A048670).
constexpr size_t kMaxNotMultiples = 11, kMaxRun = 58;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

const Decimal& zero() {
  static const Decimal value{};
  return value;
}

}  // namespace

std::optional<Decimal> Decimal::parse(std::string_view text) {
  Decimal out;
  size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++i;
  const size_t from = i;
  for (; i < text.size() && is_digit(text[i]); ++i) out.digits = out.digits * 10 + (text[i] - '0');
  if (i == from) return std::nullopt;
  if (i < text.size() && text[i] == '.')
    for (++i; i < text.size() && is_digit(text[i]); ++i, ++out.scale) out.digits = out.digits * 10 + (text[i] - '0');
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && text[i] == '+') ++i;
    int exponent = 0;
    auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), exponent);
    if (error != std::errc() || exponent > 400 || exponent < -400) return std::nullopt;
    i = size_t(end - text.data());
    out.scale -= exponent;
  }
  if (i != text.size() || out.scale > 900) return std::nullopt;
  if (out.scale < 0) out.digits *= power_of_ten(-out.scale), out.scale = 0;
  if (negative) out.digits = -out.digits;
  return out.trimmed();
}

Decimal Decimal::of(double value) {
  char text[64];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  auto out = parse(std::string_view(text, size_t(end - text)));
  return out ? *out : Decimal{};
}

cpp_int Decimal::at(int new_scale) const {
  return new_scale == scale ? digits : cpp_int(digits * power_of_ten(std::min(new_scale - scale, 1000)));
}

int Decimal::compare(const Decimal& other) const {
  if (scale == other.scale) return digits.compare(other.digits);
  const int common = std::max(scale, other.scale);
  return at(common).compare(other.at(common));
}

bool Decimal::is_multiple_of(const Decimal& step) const {
  const int common = std::max(scale, step.scale);
  return at(common) % step.at(common) == 0;
}

bool Decimal::is_integer() const { return scale == 0 || digits % power_of_ten(scale) == 0; }

Decimal Decimal::trimmed() const {
  Decimal out = *this;
  while (out.scale > 0 && out.digits % 10 == 0) out.digits /= 10, --out.scale;
  return out;
}

std::string Decimal::text() const {
  const Decimal value = trimmed();
  const bool negative = value.digits < 0;
  std::string out = cpp_int(abs(value.digits)).str();
  if (value.scale > 0) {
    if (int(out.size()) <= value.scale) out.insert(0, size_t(value.scale + 1) - out.size(), '0');
    out.insert(out.size() - size_t(value.scale), ".");
  }
  return negative ? "-" + out : out;
}

void NumberSet::at_least(const Decimal& bound, bool open) {
  const int order = low_ ? bound.compare(*low_) : 1;
  if (order > 0) low_ = bound, low_open_ = open;
  if (order == 0) low_open_ |= open;
}

void NumberSet::at_most(const Decimal& bound, bool open) {
  const int order = high_ ? bound.compare(*high_) : -1;
  if (order < 0) high_ = bound, high_open_ = open;
  if (order == 0) high_open_ |= open;
}

bool NumberSet::multiple_of(const Decimal& step) {
  if (!step_) {
    step_ = step.trimmed();
  } else {
    const int common = std::max(step_->scale, step.scale);
    step_ = Decimal{lcm(step_->at(common), step.at(common)), common}.trimmed();
  }
  return step_->scale <= kMaxFractionDigits && msb(step_->digits) < 200;
}

bool NumberSet::not_multiple_of(const Decimal& step) {
  auto equals = [&](const Decimal& other) { return other.compare(step) == 0; };
  if (std::none_of(not_multiples_.begin(), not_multiples_.end(), equals)) not_multiples_.push_back(step);
  return not_multiples_.size() <= kMaxNotMultiples;
}

void NumberSet::integer(bool strict) {
  integer_ = true;
  strict_ |= strict;
  multiple_of(Decimal::of(int64_t(1)));
}

void NumberSet::only(std::vector<Decimal> values) {
  std::vector<Decimal> kept;
  for (const Decimal& v : values)
    if (contains(v)) kept.push_back(v.trimmed());
  std::sort(kept.begin(), kept.end(), [](const Decimal& a, const Decimal& b) { return a.compare(b) < 0; });
  kept.erase(std::unique(kept.begin(), kept.end(), [](const Decimal& a, const Decimal& b) { return a.compare(b) == 0; }),
             kept.end());
  finite_ = std::move(kept);
}

void NumberSet::settle() {
  if (!finite_) return;
  std::vector<Decimal> values = std::move(*finite_);
  finite_.reset();
  only(std::move(values));
}

bool NumberSet::contains(const Decimal& value) const {
  if (low_) {
    const int order = value.compare(*low_);
    if (order < 0 || (order == 0 && low_open_)) return false;
  }
  if (high_) {
    const int order = value.compare(*high_);
    if (order > 0 || (order == 0 && high_open_)) return false;
  }
  if (step_ && !value.is_multiple_of(*step_)) return false;
  for (const Decimal& step : not_multiples_)
    if (value.is_multiple_of(step)) return false;
  auto equals = [&](const Decimal& other) { return other.compare(value) == 0; };
  if (std::any_of(excluded_.begin(), excluded_.end(), equals)) return false;
  return !finite_ || std::binary_search(finite_->begin(), finite_->end(), value,
                                        [](const Decimal& a, const Decimal& b) { return a.compare(b) < 0; });
}

bool NumberSet::plain() const {
  const bool only_integer = !step_ || (integer_ && step_->digits == 1 && step_->scale == 0);
  return !low_ && !high_ && only_integer && not_multiples_.empty() && excluded_.empty() && !finite_;
}

uint64_t NumberSet::count(uint64_t cap) const {
  if (finite_) return std::min<uint64_t>(cap, finite_->size());
  if (!low_ || !high_ || !step_) return cap;
  const int scale = std::max({low_->scale, high_->scale, step_->scale});
  const cpp_int step = step_->at(scale), last = floor_div(high_->at(scale), step);
  uint64_t n = 0;
  for (cpp_int t = -floor_div(-low_->at(scale), step); t <= last && n < cap; ++t)
    if (contains({t * step, scale})) ++n;
  return n;
}

// Is there a member in the interval that can be written with the digits a fraction may have?
bool NumberSet::meets(Interval in) const {
  if (low_) {
    const int order = low_->compare(in.low);
    if (order > 0) in.low = *low_, in.low_open = low_open_;
    if (order == 0) in.low_open |= low_open_;
  }
  if (high_) {
    const int order = high_->compare(in.high);
    if (order < 0) in.high = *high_, in.high_open = high_open_;
    if (order == 0) in.high_open |= high_open_;
  }
  const int order = in.low.compare(in.high);
  if (order > 0 || (order == 0 && (in.low_open || in.high_open))) return false;
  if (!step_ && order < 0 && not_multiples_.empty() && excluded_.empty() && in.low.scale + 3 < kMaxFractionDigits &&
      in.high.scale + 3 < kMaxFractionDigits)
    return true;
  const Decimal step = step_ ? *step_ : Decimal{1, kMaxFractionDigits};
  const int scale = std::max({in.low.scale, in.high.scale, step.scale});
  const cpp_int width = step.at(scale), low = in.low.at(scale), high = in.high.at(scale);
  cpp_int first = -floor_div(-low, width), last = floor_div(high, width);
  if (in.low_open && first * width == low) ++first;
  if (in.high_open && last * width == high) --last;
  // Exclusions can remove a few of them; multiples that aren't wanted remove all, or fewer than kMaxRun in a row.
  cpp_int tries = not_multiples_.empty() ? 1 + excluded_.size() : (1 + excluded_.size()) * kMaxRun;
  for (cpp_int t = first; t <= last && tries > 0; ++t, --tries)
    if (not_multiples_.empty() && excluded_.empty())
      return true;
    else if (contains({t * width, scale}))
      return true;
  return false;
}

// text: [-] digits [. digits], perhaps unfinished.
bool NumberSet::alive_plain(std::string_view text) const {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  auto check = [&](const Decimal& low, const Decimal& high, bool closed) {
    if (!negative) return meets({low, high, false, !closed});
    return meets({Decimal{-high.digits, high.scale}, Decimal{-low.digits, low.scale}, !closed, false});
  };
  if (text.empty()) {
    const Decimal end{power_of_ten(kMaxIntegerDigits), 0};
    // "-0" alone is no reason to begin with a minus sign.
    if (negative) return meets({Decimal{-end.digits, 0}, zero(), true, true});
    return meets({zero(), end, false, true}) || meets({Decimal{-end.digits, 0}, zero(), true, true});
  }
  const size_t point = text.find('.');
  const size_t fraction = point == std::string_view::npos ? 0 : text.size() - point - 1;
  cpp_int digits = 0;
  for (char c : text)
    if (is_digit(c)) digits = digits * 10 + (c - '0');
  if (point != std::string_view::npos) {
    if (strict_) return false;
    if (integer_ && digits % power_of_ten(int(fraction)) != 0) return false;
    if (fraction > size_t(kMaxFractionDigits)) return false;
    const Decimal low{digits, int(fraction)};
    if (integer_) return contains({negative ? cpp_int(-digits) : digits, int(fraction)});
    return fraction == size_t(kMaxFractionDigits) ? check(low, low, true) : check(low, {digits + 1, int(fraction)}, false);
  }
  if (text.size() > size_t(kMaxIntegerDigits)) return false;
  if (text[0] == '0') return text.size() == 1 && check(zero(), Decimal{1, 0}, false);
  for (size_t more = 0; more + text.size() <= size_t(kMaxIntegerDigits); ++more) {
    const Decimal low{digits * power_of_ten(int(more)), 0}, high{(digits + 1) * power_of_ten(int(more)), 0};
    if (check(low, high, false)) return true;
    // Longer numbers only move further away from zero.
    if (!negative && high_ && low.compare(*high_) > 0) return false;
    if (negative && low_ && Decimal{-low.digits, 0}.compare(*low_) < 0) return false;
  }
  return false;
}

bool NumberSet::alive_exponent(const Decimal& mantissa, std::string_view exponent) const {
  int sign = 0;
  if (!exponent.empty() && (exponent[0] == '-' || exponent[0] == '+')) {
    sign = exponent[0] == '-' ? -1 : 1;
    exponent.remove_prefix(1);
  }
  if (exponent.size() > 2) return false;
  auto member = [&](int e) {
    if (e >= 0) return contains({mantissa.digits * power_of_ten(e), mantissa.scale});
    return contains({mantissa.digits, mantissa.scale - e});
  };
  auto signed_member = [&](int e) { return (sign >= 0 && member(e)) || (sign <= 0 && member(-e)); };
  if (sign == 0 && !exponent.empty()) sign = 1;
  if (exponent.size() == 2) return signed_member((exponent[0] - '0') * 10 + exponent[1] - '0');
  if (exponent.size() == 1) {
    const int tens = exponent[0] - '0';
    if (signed_member(tens)) return true;
    for (int e = 0; e < 10; ++e)
      if (signed_member(tens * 10 + e)) return true;
    return false;
  }
  for (int e = 0; e <= kMaxExponent; ++e)
    if (signed_member(e)) return true;
  return false;
}

bool NumberSet::alive(std::string_view text) const {
  const size_t e = text.find_first_of("eE");
  if (e == std::string_view::npos) {
    if (alive_plain(text)) return true;
    // A mantissa that only an exponent can save.
    std::string_view mantissa = text.substr(text.starts_with('-') ? 1 : 0);
    if (integer_ || mantissa.empty() || mantissa[0] == '0' || (mantissa.size() > 1 && mantissa[1] != '.')) return false;
    if (mantissa.size() == 2) return false;
    if (mantissa.size() > size_t(kMaxFractionDigits)) return false;
    return alive_exponent(*Decimal::parse(text), "");
  }
  std::string_view mantissa = text.substr(text.starts_with('-') ? 1 : 0, e - (text.starts_with('-') ? 1 : 0));
  if (integer_ || mantissa.empty() || mantissa[0] == '0' || mantissa.size() == 2 ||
      (mantissa.size() > 1 && mantissa[1] != '.'))
    return false;
  return alive_exponent(*Decimal::parse(text.substr(0, e)), text.substr(e + 1));
}

bool NumberSet::complete(std::string_view text) const {
  if (text.empty() || !is_digit(text.back())) return false;
  auto value = Decimal::parse(text);
  return value && contains(*value);
}

std::string NumberSet::key() const {
  std::string out = strict_ ? "s" : integer_ ? "i" : "n";
  auto add = [&](char name, const Decimal& v) { out += name + v.text() + ";"; };
  if (low_) add(low_open_ ? '(' : '[', *low_);
  if (high_) add(high_open_ ? ')' : ']', *high_);
  if (step_) add('*', *step_);
  for (const Decimal& v : not_multiples_) add('/', v);
  for (const Decimal& v : excluded_) add('-', v);
  if (finite_) {
    out += '=';
    for (const Decimal& v : *finite_) add(',', v);
  }
  return out;
}

}  // namespace unisono::grammar

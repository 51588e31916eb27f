// Sets of JSON numbers, exact in decimal: bounds, multiples, exclusions. It says which beginnings of a number's text can
// still become a member, so that no choice of digits leads to a dead end.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::grammar {

// digits / 10^scale, scale >= 0.
struct Decimal {
  boost::multiprecision::cpp_int digits = 0;
  int scale = 0;

  // JSON's notation; nothing if the text isn't a number or its exponent is beyond +-400.
  static std::optional<Decimal> parse(std::string_view text);
  static Decimal of(double value);  // the shortest decimal that reads back as the value
  static Decimal of(int64_t value) { return {value, 0}; }
  static Decimal of(uint64_t value) { return {value, 0}; }
  boost::multiprecision::cpp_int at(int new_scale) const;  // the digits at a scale that isn't smaller
  int compare(const Decimal& other) const;
  bool is_multiple_of(const Decimal& step) const;  // step > 0
  bool is_integer() const;
  Decimal trimmed() const;   // the smallest scale
  std::string text() const;  // without an exponent, no zeros at the end of a fraction
};

// How long the text of a number may be.
inline constexpr int kMaxIntegerDigits = 32, kMaxFractionDigits = 24, kMaxExponent = 99;

class NumberSet {
 public:
  // Each narrows the set.
  void at_least(const Decimal& bound, bool open);
  void at_most(const Decimal& bound, bool open);
  bool multiple_of(const Decimal& step);      // step > 0; false: the steps together are too fine to count
  bool not_multiple_of(const Decimal& step);  // step > 0; false: more of them than are looked through
  void integer(bool strict = false);          // strict: written without a fraction
  void exclude(const Decimal& value) { excluded_.push_back(value); }
  void only(std::vector<Decimal> values);
  // Applies to listed members what narrowed the set later.
  void settle();

  bool contains(const Decimal& value) const;
  bool empty() const { return finite_ ? finite_->empty() : !alive(""); }
  // No constraint but, perhaps, being an integer.
  bool plain() const;
  bool is_integer() const { return integer_; }
  bool is_strict() const { return strict_; }
  // The members where they were listed.
  const std::optional<std::vector<Decimal>>& finite() const { return finite_; }
  // At most `cap` members; cap where there are more, or they weren't counted.
  uint64_t count(uint64_t cap) const;

  // Of a number's text. Plain decimals, or one digit other than zero before the point and an exponent; an integer may
  // have a fraction of zeros.
  bool alive(std::string_view beginning) const;
  bool complete(std::string_view text) const;

  std::string key() const;  // equal keys, equal sets

 private:
  struct Interval {
    Decimal low, high;
    bool low_open, high_open;
  };
  bool meets(Interval interval) const;
  bool alive_plain(std::string_view text) const;
  bool alive_exponent(const Decimal& mantissa, std::string_view exponent) const;

  std::optional<Decimal> low_{}, high_{}, step_{};
  bool low_open_ = false, high_open_ = false, integer_ = false, strict_ = false;
  std::vector<Decimal> not_multiples_{}, excluded_{};
  std::optional<std::vector<Decimal>> finite_{};
};

}  // namespace unisono::grammar

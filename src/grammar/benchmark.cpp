#include "grammar/benchmark.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>

#include "grammar/matcher.h"
#include "grammar/schema_rules.h"

namespace unisono::grammar {

namespace {

// Microseconds of a call: the smaller of wall clock and thread time, so that being scheduled out isn't charged to it. The
// thread's clock costs more to read, so it stands outside.
template <class Call>
double timed(const Call& call) {
  using Clock = std::chrono::steady_clock;
  timespec before{}, after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  const auto start = Clock::now();
  call();
  const double wall = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  return std::min(wall, double(after.tv_sec - before.tv_sec) * 1e6 + double(after.tv_nsec - before.tv_nsec) / 1e3);
}

// The shortest digits that read back, as Python lays them out.
std::string python_float(double value) {
  char text[40];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific);
  std::string digits(text, end);
  const size_t e = digits.find('e');
  const int exponent = std::stoi(digits.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return digits;
  const auto [end_fixed, fixed_error] = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed);
  std::string fixed(text, end_fixed);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

Json percentiles(std::vector<double> values) {
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (double v : values) sum += v;
  auto at = [&](double share) { return values[std::min(values.size() - 1, size_t(share * double(values.size())))]; };
  return JsonObject{{"mean", sum / double(values.size())},
                    {"p50", at(0.5)},
                    {"p99", at(0.99)},
                    {"p99.9", at(0.999)},
                    {"max", values.back()}};
}

void write(const Json& value, std::string& out) {
  if (const auto* object = value.if_object()) {
    out += '{';
    bool first = true;
    for (const auto& member : *object) {
      if (!std::exchange(first, false)) out += ", ";
      out += json_text({member.key().data(), member.key().size()}) + ": ";
      write(member.value(), out);
    }
    out += '}';
  } else if (const auto* array = value.if_array()) {
    out += '[';
    bool first = true;
    for (const Json& item : *array) {
      if (!std::exchange(first, false)) out += ", ";
      write(item, out);
    }
    out += ']';
  } else if (value.is_string()) {
    out += json_text({value.get_string().data(), value.get_string().size()});
  } else if (value.is_double()) {
    out += python_float(value.get_double());
  } else {
    out += to_text(value);
  }
}

}  // namespace

std::string python_json(const Json& value) {
  std::string out;
  write(value, out);
  return out;
}

bool Benchmark::walk(const std::shared_ptr<const Grammar>& grammar, const std::string& text, std::string* stopped) {
  Matcher matcher(grammar, trie_);
  std::vector<uint64_t> bits(trie_->mask_words());
  size_t at = 0;
  auto allows = [&](TokenId id) { return (bits[size_t(id) / 64] >> (size_t(id) % 64)) & 1; };
  auto mask = [&] { mask_us_.push_back(timed([&] { matcher.mask(bits); })); };
  for (TokenId token : encode_(text)) {
    mask();
    const bool allowed = allows(token);
    if (allowed) {
      bool taken = false;
      accept_us_.push_back(timed([&] { taken = matcher.accept(token); }));
      check(taken, "a token that the mask allows is accepted");
    } else {
      check(!matcher.accept(token), "a token that the mask refuses isn't accepted");
      // Up to the end of a character, where the token under way began within one.
      const auto whole = [&](size_t i) {
        while (i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) i++;
        return std::min(i, text.size());
      };
      *stopped = text.substr(0, whole(at)) + " <!> " + text.substr(whole(at), whole(at + 60) - whole(at));
      return false;
    }
    at += trie_->bytes(token).size();
  }
  mask();
  if (!trie_->end_tokens().empty() && allows(trie_->end_tokens()[0])) return true;
  *stopped = text + " <end!>";
  return false;
}

Result<void> Benchmark::add(const Json& test_case) {
  const auto* object = test_case.if_object();
  const auto* schema = object ? object->if_contains("schema") : nullptr;
  const auto* tests = object ? object->if_contains("tests") : nullptr;
  const auto* name = object ? object->if_contains("name") : nullptr;
  if (!schema || !tests || !tests->is_array()) return Error{"a case must hold `schema` and an array `tests`", ""};
  ++schemas_;
  Result<std::shared_ptr<const Grammar>> grammar = Error{};
  compile_ms_.push_back(timed([&] { grammar = Grammar::from_json_schema(*schema, options_); }) / 1000);
  JsonObject entry{{"name", name ? *name : Json(schemas_)}};
  if (!grammar) {
    ++refused_;
    entry["status"] = "refused";
    entry["why"] = grammar.error().message;
    wrong_.push_back(std::move(entry));
    return {};
  }
  bool accepted_invalid = false, rejected_valid = false;
  for (const Json& test : tests->get_array()) {
    const auto* fields = test.if_object();
    if (!fields || !fields->contains("valid") || !fields->contains("data"))
      return Error{"a test must hold `valid` and `data`", ""};
    const bool valid = fields->at("valid") == true;
    const std::string text = python_json(fields->at("data"));
    std::string stopped;
    if (walk(*grammar, text, &stopped) == valid) continue;
    (valid ? rejected_valid : accepted_invalid) = true;
    if (!entry.contains("why")) entry["why"] = valid ? stopped : "accepted: " + text;
  }
  right_ += !accepted_invalid && !rejected_valid;
  invalid_accepted_ += accepted_invalid;
  valid_rejected_ += rejected_valid;
  if (!accepted_invalid && !rejected_valid) return {};
  entry["status"] = accepted_invalid ? "invalid accepted" : "valid rejected";
  wrong_.push_back(std::move(entry));
  return {};
}

Json Benchmark::report() const {
  JsonObject summary{{"schemas", schemas_},
                     {"right", right_},
                     {"refused", refused_},
                     {"invalid_accepted", invalid_accepted_},
                     {"valid_rejected", valid_rejected_},
                     {"compile_ms", percentiles(compile_ms_)},
                     {"mask_us", percentiles(mask_us_)},
                     {"accept_us", percentiles(accept_us_)},
                     {"masks", mask_us_.size()}};
  return JsonObject{{"summary", std::move(summary)}, {"schemas", wrong_}};
}

}  // namespace unisono::grammar

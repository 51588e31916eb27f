#include "base/json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <unordered_set>
#include <vector>

namespace unisono {

namespace {

using boost::json::error_code;
using boost::json::string_view;

// Builds a value, and refuses what two readers could read differently: a key twice in one object, a number that is no
// finite double.
struct Handler {
  static constexpr size_t max_object_size = size_t(-1);
  static constexpr size_t max_array_size = size_t(-1);
  static constexpr size_t max_key_size = size_t(-1);
  static constexpr size_t max_string_size = size_t(-1);

  boost::json::value_stack stack{};
  std::vector<std::unordered_set<std::string>> keys{};  // of the objects that are open
  std::string key{}, number{};
  std::string refusal{};

  bool refuse(std::string why, error_code& failure) {
    refusal = std::move(why);
    failure = boost::json::error::syntax;
    return false;
  }

  bool on_document_begin(error_code&) {
    stack.reset();
    return true;
  }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) {
    keys.emplace_back();
    return true;
  }
  bool on_object_end(size_t n, error_code&) {
    keys.pop_back();
    stack.push_object(n);
    return true;
  }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(size_t n, error_code&) {
    stack.push_array(n);
    return true;
  }
  bool on_key_part(string_view part, size_t, error_code&) {
    key.append(part.data(), part.size());
    stack.push_chars(part);
    return true;
  }
  bool on_key(string_view part, size_t, error_code& failure) {
    key.append(part.data(), part.size());
    stack.push_key(part);
    if (!keys.back().insert(key).second) return refuse("the key '" + key + "' stands twice in one object", failure);
    key.clear();
    return true;
  }
  bool on_string_part(string_view part, size_t, error_code&) {
    stack.push_chars(part);
    return true;
  }
  bool on_string(string_view part, size_t, error_code&) {
    stack.push_string(part);
    return true;
  }
  bool on_number_part(string_view part, error_code&) {
    number.append(part.data(), part.size());
    return true;
  }
  bool on_int64(int64_t i, string_view, error_code&) {
    number.clear();
    stack.push_int64(i);
    return true;
  }
  bool on_uint64(uint64_t u, string_view, error_code&) {
    number.clear();
    stack.push_uint64(u);
    return true;
  }
  // about: Boost.JSON's own reading, which may be some units in the last place away from the text's.
  bool on_double(double about, string_view part, error_code& failure) {
    number.append(part.data(), part.size());
    double d = 0;  // stays 0 where the text's is smaller than any
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), d);
    if (error == std::errc::result_out_of_range && std::abs(about) > 1) return refuse("a number is too large", failure);
    number.clear();
    stack.push_double(d);
    return true;
  }
  bool on_bool(bool b, error_code&) {
    stack.push_bool(b);
    return true;
  }
  bool on_null(error_code&) {
    stack.push_null();
    return true;
  }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }
};

}  // namespace

Result<Json> parse_json(std::string_view text, int max_depth) {
  boost::json::parse_options options;
  options.max_depth = static_cast<size_t>(max_depth);
  boost::json::basic_parser<Handler> parser(options);
  error_code failure;
  const size_t read = parser.write_some(false, text.data(), text.size(), failure);
  if (!failure && read < text.size()) failure = boost::json::error::extra_data;
  if (failure) {
    const std::string& refusal = parser.handler().refusal;
    return Error{"Not valid JSON at byte " + std::to_string(read) + ": " + (refusal.empty() ? failure.message() : refusal) + "."};
  }
  return parser.handler().stack.release();
}

std::string to_text(const Json& value) { return boost::json::serialize(value); }

}  // namespace unisono

#include "serve/fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace unisono::serve {

namespace {

// 13.5, not 1.35E1 as JSON is written.
std::string number_text(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), end.ptr};
}

}  // namespace

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  constexpr size_t kMost = 60;
  std::string text = value.is_double() ? number_text(value.get_double()) : to_text(value);
  if (text.size() <= kMost) return text;
  // Not in the middle of a character.
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) end--;
  return text.substr(0, end) + "...";
}

std::optional<int64_t> whole_number(const Json& value) {
  if (value.is_int64()) return value.get_int64();
  if (!value.is_double()) return {};
  const double d = value.get_double();
  if (d != std::floor(d) || std::abs(d) > 9007199254740992.0) return {};  // 2^53: above, doubles skip integers
  return static_cast<int64_t>(d);
}

const Json* Fields::any(std::string_view name) {
  known_.push_back(name);
  const Json* value = object_.if_contains(name);
  return value && !value->is_null() ? value : nullptr;
}

const Json* Fields::required(std::string_view name) {
  const Json* value = any(name);
  if (value) return value;
  const std::string field = "'" + full_name(name) + "'";
  if (object_.if_contains(name)) {
    fail(name, "invalid_type", field + " can't be null.");
  } else {
    fail(name, "missing_required_parameter", "The request needs " + field + ".");
  }
  return nullptr;
}

std::optional<int64_t> Fields::integer(std::string_view name, int64_t low, int64_t high) {
  const Json* value = any(name);
  if (!value) return {};
  if (!value->is_number()) return wrong_type(name, "an integer", *value), std::nullopt;
  const auto n = whole_number(*value);
  if (n && *n >= low && *n <= high) return n;
  fail(name, "invalid_value",
       "'" + full_name(name) + "' must be an integer from " + std::to_string(low) + " to " + std::to_string(high) +
           ", not " + shown(*value) + ".");
  return {};
}

std::optional<double> Fields::number(std::string_view name, double low, double high) {
  const Json* value = any(name);
  if (!value) return {};
  if (!value->is_number()) return wrong_type(name, "a number", *value), std::nullopt;
  const double d = value->to_number<double>();
  if (d >= low && d <= high) return d;
  const auto text = [](double bound) { return to_text(Json(static_cast<int64_t>(bound))); };
  fail(name, "invalid_value",
       "'" + full_name(name) + "' must be a number from " + text(low) + " to " + text(high) + ", not " + shown(*value) +
           ".");
  return {};
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const Json* value = any(name);
  if (!value) return {};
  if (value->is_bool()) return value->get_bool();
  wrong_type(name, "true or false", *value);
  return {};
}

std::optional<std::string> Fields::string(std::string_view name) {
  const Json* value = any(name);
  if (!value) return {};
  if (value->is_string()) return std::string(value->get_string());
  wrong_type(name, "a string", *value);
  return {};
}

std::optional<std::string> Fields::needed_string(std::string_view name) {
  auto text = string(name);
  if (!text) required(name);
  return text;
}

const JsonObject* Fields::object(std::string_view name) {
  const Json* value = any(name);
  if (value && !value->is_object()) wrong_type(name, "an object", *value);
  return value ? value->if_object() : nullptr;
}

const JsonArray* Fields::array(std::string_view name) {
  const Json* value = any(name);
  if (value && !value->is_array()) wrong_type(name, "an array", *value);
  return value ? value->if_array() : nullptr;
}

void Fields::ignore(std::span<const std::string_view> names) { known_.insert(known_.end(), names.begin(), names.end()); }

void Fields::refuse(std::string_view name, std::string_view why) {
  if (!any(name)) return;
  fail(name, "unsupported_parameter", "'" + full_name(name) + "' isn't supported: " + std::string(why) + ".");
}

void Fields::refuse(std::span<const Refused> fields) {
  for (const Refused& field : fields) refuse(field.name, field.why);
}

void Fields::fail(std::string_view name, std::string_view code, std::string message) {
  fail({.status = 400, .message = std::move(message), .param = full_name(name), .code = std::string(code)});
}

void Fields::fail(const ApiError& error) {
  if (!error_) error_ = error;
}

void Fields::wrong_type(std::string_view name, std::string_view wanted, const Json& value) {
  fail(name, "invalid_type", "'" + full_name(name) + "' must be " + std::string(wanted) + ", not " + shown(value) + ".");
}

std::optional<ApiError> Fields::finish() {
  for (const auto& field : object_) {
    if (error_) break;
    if (std::ranges::find(known_, std::string_view(field.key())) != known_.end()) continue;
    const std::string name(field.key());
    fail(name, "unknown_parameter", "Unknown field '" + full_name(name) + "'.");
  }
  return error_;
}

}  // namespace unisono::serve

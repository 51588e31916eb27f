// Reads the fields of a JSON object from a client, each with its type and range, and remembers the first mistake. Fields
// that nobody asked for are mistakes too: nothing is dropped in silence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "serve/api_error.h"

namespace unisono::serve {

// For messages: a value as the client wrote it, shortened.
std::string shown(const Json& value);

class Fields {
 public:
  // path: where the object stands, to name its fields: "" or "stream_options.". The object must outlive the reader.
  explicit Fields(const JsonObject& object, std::string path = "") : object_(object), path_(std::move(path)) {}

  // The value, or nothing when the field is absent or null (OpenAI's optional fields may be null) or wrong. Bounds are
  // inclusive. A number like 5.0 counts as an integer.
  std::optional<int64_t> integer(std::string_view name, int64_t low, int64_t high);
  std::optional<double> number(std::string_view name, double low, double high);
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::string> string(std::string_view name);
  std::optional<std::string> needed_string(std::string_view name);  // absent and null are mistakes, too
  const JsonObject* object(std::string_view name);
  const JsonArray* array(std::string_view name);
  // Of any type; null when the field is absent or null.
  const Json* any(std::string_view name);
  // As any(), but absent and null are mistakes.
  const Json* required(std::string_view name);

  // Reads element `index` of an array, which must be an object, with read(Fields&); its mistakes become this object's.
  template <class Read>
  void element(std::string_view array_name, size_t index, const Json& value, Read read) {
    const std::string path = full_name(array_name) + "[" + std::to_string(index) + "]";
    if (!value.is_object())
      return fail(
          {.message = "'" + path + "' must be an object, not " + shown(value) + ".", .param = path, .code = "invalid_type"});
    Fields inner(value.get_object(), path + ".");
    read(inner);
    if (const auto error = inner.finish()) fail(*error);
  }
  // All of them, up to the first mistake.
  template <class Read>
  void each_element(std::string_view array_name, const JsonArray& array, Read read) {
    for (size_t i = 0; i < array.size() && !failed(); i++) element(array_name, i, array[i], read);
  }

  // Accepts these fields, which have no effect here.
  void ignore(std::span<const std::string_view> names);
  // A field that would change the answer and can't be honoured: a mistake when it is there and not null.
  struct Refused {
    std::string_view name, why;
  };
  void refuse(std::string_view name, std::string_view why);
  void refuse(std::span<const Refused> fields);

  // The first mistake stays. `name` is relative to this object.
  void fail(std::string_view name, std::string_view code, std::string message);
  void fail(const ApiError& error);
  bool failed() const { return error_.has_value(); }

  // The first mistake, an unknown field among them.
  std::optional<ApiError> finish();

  std::string full_name(std::string_view name) const { return path_ + std::string(name); }

 private:
  void wrong_type(std::string_view name, std::string_view wanted, const Json& value);

  const JsonObject& object_;
  std::string path_;
  std::vector<std::string_view> known_{};
  std::optional<ApiError> error_{};
};

// A JSON number that is a whole number within int64.
std::optional<int64_t> whole_number(const Json& value);

}  // namespace unisono::serve

// JSON values, shared by the rooms that meet JSON: messages and tools, schemas, requests. Boost.JSON keeps the order of
// keys, as templates and schemas need it.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace unisono {

using Json = boost::json::value;
using JsonArray = boost::json::array;
using JsonObject = boost::json::object;

// Parses one JSON text. Refused with the byte offset: anything that isn't JSON by RFC 8259, what follows it, text that
// isn't UTF-8, nesting deeper than max_depth, an object with a key twice.
Result<Json> parse_json(std::string_view text, int max_depth = 64);

// Compact, as it goes over the wire.
std::string to_text(const Json& value);

}  // namespace unisono

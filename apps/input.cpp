#include "input.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace unisono::apps {

Result<std::string> read_text(const std::string& path) {
  const bool standard = path == "-";
  const auto failed = [&] {
    return Error{"Can't read " + (standard ? "standard input" : "'" + path + "'") + ": " + std::strerror(errno) + ".",
                 path};
  };
  std::FILE* in = standard ? stdin : std::fopen(path.c_str(), "rb");
  if (in == nullptr) return failed();
  std::string text;
  char buffer[1 << 16];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, in)) > 0;) text.append(buffer, n);
  const bool whole = std::ferror(in) == 0;
  const Error error = whole ? Error{} : failed();
  if (!standard) std::fclose(in);
  if (!whole) return error;
  return text;
}

Result<Json> read_json(const std::string& path) {
  auto text = read_text(path);
  if (!text) return text.error();
  auto json = parse_json(*text);
  if (!json) return Error{"'" + path + "': " + json.error().message, path};
  return json;
}

namespace {

template <class T>
bool is_number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_origin(const std::string& text) {
  const size_t scheme = text.find("://");
  if (scheme == std::string::npos || scheme == 0 || scheme + 3 == text.size()) return false;
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c) || std::isupper(c); }) &&
         text.find_first_of("/?#*@", scheme + 3) == std::string::npos;
}

}  // namespace

const CLI::Validator kNotEmpty([](std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }, "");

const CLI::Validator kSeed(
    [](std::string& text) {
      const bool fits = is_number<uint64_t>(text) || is_number<int64_t>(text);
      return fits ? std::string() : "'" + text + "' is no whole number of 64 bits";
    },
    "");

const CLI::Validator kOrigin(
    [](std::string& text) {
      const bool sound = text == "*" || text == "null" || is_origin(text);
      return sound
                 ? std::string()
                 : "'" + text + "' is no origin: write it as browsers send it, without a path, as https://chat.example.org";
    },
    "");

}  // namespace unisono::apps

#include "serve/api_keys.h"

#include <algorithm>
#include <cctype>

namespace unisono::serve {

namespace {

// Takes time in proportion to what the client sent, wherever the two differ.
bool equal_in_constant_time(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); i++) {
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(key[i % key.size()]);
  }
  return difference == 0;
}

// The key a request carries, or nothing.
std::string_view key_of(const HttpRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view header = request.header("Authorization");
  const auto lower = [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); };
  const bool bearer =
      header.size() > kScheme.size() && std::ranges::equal(header.substr(0, kScheme.size()), kScheme, {}, lower);
  return bearer ? header.substr(kScheme.size()) : request.header("X-Api-Key");
}

}  // namespace

Guard key_guard(std::vector<std::string> keys) {
  std::erase(keys, "");
  return [keys = std::move(keys)](const HttpRequest& request) -> Verdict {
    if (request.path == "/health") return {};
    const std::string_view given = key_of(request);
    size_t known = 0;
    for (size_t i = 0; i < keys.size(); i++)
      if (equal_in_constant_time(given, keys[i])) known = i + 1;
    if (known > 0) return {.owner = "key " + std::to_string(known)};
    return {.refusal = ApiError{.status = 401,
                                .message = "The request needs a valid API key: 'Authorization: Bearer KEY'.",
                                .code = "invalid_api_key"}};
  };
}

}  // namespace unisono::serve

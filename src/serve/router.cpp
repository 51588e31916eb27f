#include "serve/router.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace unisono::serve {

std::string_view HttpRequest::header(std::string_view name) const {
  auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  for (const auto& [key, value] : headers) {
    if (std::ranges::equal(key, name, {}, lower, lower)) return value;
  }
  return {};
}

void Router::add(std::string method, std::string path, Where where, Handler handler) {
  routes_.push_back({std::move(method), std::move(path), where, std::move(handler)});
}

namespace {

// What '*' stands for, or nothing when the path is another.
std::optional<std::string_view> match_path(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path ? std::optional<std::string_view>("") : std::nullopt;
  pattern.remove_suffix(1);
  if (path.size() <= pattern.size() || !path.starts_with(pattern)) return std::nullopt;
  return path.substr(pattern.size());
}

}  // namespace

Router::Match Router::find(std::string_view method, std::string_view path) const {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  Match match;
  for (const Route& route : routes_) {
    const auto tail = match_path(route.path, path);
    if (!tail) continue;
    if (route.method == wanted) return {&route, std::string(*tail), {}};
    if (!match.allow.empty()) match.allow += ", ";
    match.allow += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  return match;
}

}  // namespace unisono::serve

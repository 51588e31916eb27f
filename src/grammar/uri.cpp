#include "grammar/uri.h"

#include <vector>

namespace unisono::grammar {

namespace {

// The length of "scheme:", or 0.
size_t scheme(std::string_view uri) {
  const size_t colon = uri.find(':');
  return colon == std::string_view::npos || uri.substr(0, colon).find('/') != std::string_view::npos ? 0 : colon + 1;
}

// Where the path begins.
size_t path(std::string_view uri) {
  size_t at = scheme(uri);
  if (uri.substr(at).starts_with("//")) at = std::min(uri.find('/', at + 2), uri.size());
  return at;
}

std::string without_dots(std::string_view text) {
  std::vector<std::string_view> out;
  const bool rooted = text.starts_with('/');
  bool folder = false;
  for (size_t at = rooted ? 1 : 0; at <= text.size();) {
    const size_t end = std::min(text.find('/', at), text.size());
    const std::string_view step = text.substr(at, end - at);
    folder = step == "." || step == "..";
    if (step == ".." && !out.empty()) out.pop_back();
    if (!folder) out.push_back(step);
    at = end + 1;
  }
  if (folder) out.push_back("");
  std::string joined = rooted ? "/" : "";
  for (size_t i = 0; i < out.size(); ++i) joined.append(i > 0 ? "/" : "").append(out[i]);
  return joined;
}

}  // namespace

std::string resolve_uri(const std::string& base, std::string_view reference) {
  if (scheme(reference) != 0 || base.empty()) return std::string(reference);
  if (reference.empty()) return base;
  if (reference.starts_with("//")) return base.substr(0, scheme(base)) + std::string(reference);
  const size_t at = path(base);
  if (reference.starts_with('/')) return base.substr(0, at) + without_dots(reference);
  const size_t slash = base.rfind('/');
  const std::string folder = slash == std::string::npos || slash < at ? "" : base.substr(at, slash + 1 - at);
  // urn:x:y has no folders to be relative to.
  if (folder.empty() && at < base.size() && scheme(base) != 0 && base[at] != '/') return std::string(reference);
  return base.substr(0, at) + without_dots((folder.empty() && scheme(base) != 0 ? "/" : folder) + std::string(reference));
}

std::string escape_pointer(std::string_view step) {
  std::string out;
  for (char c : step) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

std::string unescape_pointer(std::string_view step) {
  std::string out;
  for (size_t i = 0; i < step.size(); ++i) {
    const bool escape = step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1');
    out += escape ? (step[i + 1] == '0' ? '~' : '/') : step[i];
    i += escape;
  }
  return out;
}

std::string unescape_percent(std::string_view text) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      out += char(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace unisono::grammar

#include "serve/http_cors.h"

#include <algorithm>

namespace unisono::serve {

bool Cors::allows(std::string_view origin) const {
  return std::ranges::any_of(origins_, [&](const std::string& ours) { return ours == "*" || ours == origin; });
}

bool Cors::is_question(const HttpRequest& request) const {
  return request.method == "OPTIONS" && allows(request.header("Origin")) && !request.header("Origin").empty() &&
         !request.header("Access-Control-Request-Method").empty();
}

HttpResponse Cors::answer() {
  return {.status = 204,
          .content_type = "",
          .headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                      {"Access-Control-Allow-Headers", "*, Authorization"},
                      {"Access-Control-Max-Age", "600"}}};
}

Headers Cors::headers(const HttpRequest& request) const {
  const std::string_view origin = request.header("Origin");
  if (origins_.empty()) return {};
  Headers out{{"Vary", "Origin"}};
  if (!origin.empty() && allows(origin)) {
    out.emplace_back("Access-Control-Allow-Origin", origin);
    out.emplace_back("Access-Control-Expose-Headers", "*");
  }
  return out;
}

}  // namespace unisono::serve

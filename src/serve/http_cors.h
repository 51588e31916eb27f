// Which web pages of other origins may use the server (the Fetch standard's CORS protocol). By default none may.
#pragma once

#include <string>
#include <vector>

#include "serve/http_message.h"

namespace unisono::serve {

class Cors {
 public:
  // Origins as browsers send them ("https://chat.example.org"); "*": all.
  explicit Cors(std::vector<std::string> origins = {}) : origins_(std::move(origins)) {}

  // A browser asks beforehand whether the page may. Such a request carries no key.
  bool is_question(const HttpRequest& request) const;
  static HttpResponse answer();
  // For the answer to a request: what lets the page read it, if it may.
  Headers headers(const HttpRequest& request) const;

 private:
  bool allows(std::string_view origin) const;
  std::vector<std::string> origins_;
};

}  // namespace unisono::serve

// A server on a free port of this machine, for one test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "serve/http_server.h"

namespace unisono::serve {

// Null when it can't be had, which fails the test.
inline std::unique_ptr<HttpServer> served(Router router, HttpOptions options = {}, OnAnswered on_answered = {}) {
  auto server = HttpServer::bind("127.0.0.1", 0, std::move(options));
  EXPECT_TRUE(server.ok());
  if (!server.ok()) return nullptr;
  EXPECT_TRUE((*server)->serve(std::move(router), std::move(on_answered)).ok());
  return *std::move(server);
}

}  // namespace unisono::serve

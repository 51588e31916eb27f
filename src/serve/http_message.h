// What goes over HTTP, as plain data: a request that was read whole, a response that is known whole, and the limits a
// server holds its clients to. Knows no model and no socket.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace unisono::serve {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method{};  // upper case, "GET"
  std::string path{};    // percent-decoded, without the query; still encoded where it wouldn't be UTF-8
  std::string query{};   // as sent, without '?'
  std::string tail{};    // what a route's trailing '*' stands for
  Headers headers{};
  std::string body{};
  std::string owner{};  // whose key it carries, as the guard calls it; empty: nobody's

  // The first header of this name, whatever its case; empty when there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers{};  // further ones
  std::string body{};
};

// Where a request comes from.
struct Origin {
  std::string owner{};                               // as HttpRequest has it
  std::chrono::steady_clock::time_point received{};  // when its last byte was there
};

// What became of a request, for a log.
struct AccessRecord {
  std::string remote{};  // the client's address
  std::string method{};  // empty when the request couldn't be read so far
  std::string path{};
  int status = 0;        // 499: the client left before anything was said
  uint64_t bytes = 0;    // written, header included
  double seconds = 0;    // from the request's first byte to the answer's last
  bool complete = true;  // false: cut off
  std::string owner{};   // as HttpRequest has it
  JsonObject notes{};    // what its handler had to say of it
};
using OnAnswered = std::function<void(const AccessRecord&)>;  // on the I/O thread, for every request; must be quick

struct HttpLimits {
  size_t header_bytes = 16 * 1024;
  size_t body_bytes = 16 * 1024 * 1024;
  size_t all_bodies_bytes = 256 * 1024 * 1024;  // of all connections together
  // Written but not yet taken by a slow reader, parts of 64 KiB and more not counted; more: it is cut off.
  size_t stream_buffer_bytes = 1024 * 1024;
  int connections = 1024;
  std::chrono::milliseconds handshake{10'000};  // of TLS
  std::chrono::milliseconds idle{75'000};       // between two requests of a connection
  std::chrono::milliseconds header{10'000};     // from a request's first byte to the end of its header
  std::chrono::milliseconds body{60'000};       // from there to the end of its body
  std::chrono::milliseconds write{30'000};      // without any byte taken by the client
};

}  // namespace unisono::serve

// An HTTP/1.1 server: sockets, framing, limits, time. It knows no model. One I/O thread moves all bytes; handlers run on
// two workers, one of them for large bodies, so that a long prompt doesn't hold up the short ones.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/http_message.h"
#include "serve/http_tls_files.h"
#include "serve/router.h"

namespace unisono::serve {

struct HttpOptions {
  HttpLimits limits{};
  Guard guard{};                                           // none: everybody is welcome
  std::optional<TlsFiles> tls{};                           // none: plain HTTP
  std::vector<std::string> cors_origins{};                 // as Cors takes them; none: no other page may
};

class HttpServer {
 public:
  // Takes an address; connections are refused until serve(), so that whoever has much to load learns before what is wrong.
  // host: an address or a name; port 0: a free one. Fails with a sentence when the address can't be had or the TLS files
  // aren't what they should be.
  static Result<std::unique_ptr<HttpServer>> bind(const std::string& host, uint16_t port, HttpOptions options = {});
  ~HttpServer();  // cuts what still runs and waits for the threads

  // Once: serves from here on until stopped. Fails when another has come to listen on the address meanwhile.
  Result<void> serve(Router router, OnAnswered on_answered = {});

  uint16_t port() const;
  std::string address() const;  // "http://127.0.0.1:8080", "https://..." under TLS

  // Takes no new requests; those that run may finish within `grace`, then they are cut. Returns at once; may be called
  // again with less grace.
  void stop(std::chrono::milliseconds grace);
  bool stopped() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace unisono::serve

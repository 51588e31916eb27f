// A connection's bytes, as they are or under TLS: one type for both. Knows no HTTP.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <string>
#include <utility>
#include <variant>

#include "base/result.h"
#include "serve/http_tls_files.h"

namespace unisono::serve {

class Stream {
 public:
  // tls: null, or what outlives the stream.
  Stream(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls);

  boost::asio::ip::tcp::socket& socket();
  bool secure() const { return std::holds_alternative<Secure>(stream_); }

  // Handlers get an error code, and the number of bytes. One reads and one writes at a time.
  template <class Handler>
  void handshake(Handler handler) {  // secure ones only, before all else
    std::get<Secure>(stream_).async_handshake(Secure::server, std::move(handler));
  }
  template <class Handler>
  void read_some(boost::asio::mutable_buffer bytes, Handler handler) {
    std::visit([&](auto& stream) { stream.async_read_some(bytes, std::move(handler)); }, stream_);
  }
  template <class Handler>
  void write_some(boost::asio::const_buffer bytes, Handler handler) {
    std::visit([&](auto& stream) { stream.async_write_some(bytes, std::move(handler)); }, stream_);
  }
  // Tells the other side that nothing more comes. `keep` is kept until that is done or the stream is closed.
  template <class Keep>
  void end_writing(Keep keep) {
    boost::system::error_code ignored;
    if (auto* secure = std::get_if<Secure>(&stream_)) {
      secure->async_shutdown([keep = std::move(keep)](boost::system::error_code) {});
    } else {
      socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
    }
  }
  void close();

 private:
  using Plain = boost::asio::ip::tcp::socket;
  using Secure = boost::asio::ssl::stream<Plain>;
  static std::variant<Plain, Secure> make(Plain socket, boost::asio::ssl::context* tls);
  std::variant<Plain, Secure> stream_;
};

// TLS 1.2 and later. Fails with a sentence that names the file.
Result<void> load_tls(const TlsFiles& files, boost::asio::ssl::context& tls);

}  // namespace unisono::serve

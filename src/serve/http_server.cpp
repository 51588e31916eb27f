#include "serve/http_server.h"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <optional>
#include <thread>

#include "base/check.h"
#include "serve/http_connection.h"

namespace unisono::serve {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// Told to a client that comes when all connections are taken; nothing is read from it.
std::string full_house() {
  const std::string body =
      error_body({.status = 503, .message = "All connections of this server are taken; try again.", .code = "overloaded"});
  return "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: "
         "close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

Error cant_listen(const std::string& where, error_code failure) {
  if (failure == asio::error::address_in_use || failure == asio::error::access_denied)
    return {"Can't listen on " + where + ": " + failure.message() + ". Choose another port, or 0 for a free one.", "port"};
  return {"Can't listen on " + where + ": " + failure.message() + ".", "port"};
}

}  // namespace

struct HttpServer::Impl {
  std::shared_ptr<HttpCore> core = std::make_shared<HttpCore>();
  tcp::acceptor acceptor{core->io};
  asio::steady_timer grace{core->io};
  asio::steady_timer pause{core->io};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{core->io.get_executor()};
  std::string where{};  // as it was asked for
  tcp::endpoint endpoint{};
  std::thread thread{};
  bool secure = false;

  Result<void> bind(const std::string& host, uint16_t port);
  Result<void> listen();
  void accept();
  void welcome(tcp::socket socket);
  void run();
  void begin_stop(std::chrono::milliseconds time);
  void cut_all();
};

Result<void> HttpServer::Impl::bind(const std::string& host, uint16_t port) {
  error_code failure;
  tcp::resolver resolver(core->io);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, failure);
  where = host + " port " + std::to_string(port);
  const auto no_such_address = [&] {
    return Error{"No such address to listen on: " + where + " (" + failure.message() + ").", "host"};
  };
  if (failure || found.empty()) return no_such_address();
  const tcp::endpoint wanted = found.begin()->endpoint();
  acceptor.open(wanted.protocol(), failure);
  if (!failure) acceptor.set_option(asio::socket_base::reuse_address(true), failure);
  if (!failure) acceptor.bind(wanted, failure);
  if (failure == boost::system::errc::address_not_available) return no_such_address();
  if (failure) return cant_listen(where, failure);
  endpoint = acceptor.local_endpoint(failure);
  return {};
}

Result<void> HttpServer::Impl::listen() {
  error_code failure;
  acceptor.listen(asio::socket_base::max_listen_connections, failure);
  if (failure) return cant_listen(where, failure);
  return {};
}

void HttpServer::Impl::accept() {
  acceptor.async_accept([this](error_code failure, tcp::socket socket) {
    if (core->draining || failure == asio::error::operation_aborted) return;
    if (!failure) {
      welcome(std::move(socket));
      return accept();
    }
    // Out of file descriptors, most likely: others must end first.
    pause.expires_after(std::chrono::milliseconds(50));
    pause.async_wait([this](error_code stopped) {
      if (!stopped) accept();
    });
  });
}

void HttpServer::Impl::welcome(tcp::socket socket) {
  if (core->connections.size() >= static_cast<size_t>(core->limits.connections)) {
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(full_house()), ignored);
    return;
  }
  const auto connection = std::make_shared<Connection>(std::move(socket), core);
  core->connections.insert(connection);
  connection->start();
}

void HttpServer::Impl::run() {
  for (;;) {
    try {
      core->io.run();
      core->stopped = true;
      return;
    } catch (const std::exception&) {
      // One handler's memory ran out, or the like: the others go on.
    }
  }
}

void HttpServer::Impl::begin_stop(std::chrono::milliseconds time) {
  if (!core->draining) {
    core->draining = true;
    error_code ignored;
    acceptor.close(ignored);
    pause.cancel();
    core->on_last_closed = [this] {
      grace.cancel();
      work.reset();
    };
    const auto connections = core->connections;
    for (const auto& connection : connections) connection->drain();
  }
  if (core->connections.empty()) return core->on_last_closed();
  if (time <= std::chrono::milliseconds::zero()) return cut_all();
  grace.expires_after(time);
  grace.async_wait([this](error_code stopped) {
    if (!stopped) cut_all();
  });
}

void HttpServer::Impl::cut_all() {
  const auto connections = core->connections;
  for (const auto& connection : connections) connection->cut();
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::bind(const std::string& host, uint16_t port, HttpOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->core->limits = options.limits;
  impl->core->guard = std::move(options.guard);
  impl->core->cors = Cors(std::move(options.cors_origins));
  if (options.tls) {
    impl->secure = true;
    if (auto loaded = load_tls(*options.tls, impl->core->tls.emplace(asio::ssl::context::tls_server)); !loaded)
      return loaded.error();
  }
  if (auto bound = impl->bind(host, port); !bound) return bound.error();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

Result<void> HttpServer::serve(Router router, OnAnswered on_answered) {
  check(!impl_->thread.joinable(), "a server serves once");
  if (auto listens = impl_->listen(); !listens) return listens.error();
  impl_->core->router = std::move(router);
  impl_->core->on_answered = std::move(on_answered);
  impl_->accept();
  // Names for whoever looks at where the time goes.
  for (auto* pool : {&impl_->core->small_bodies, &impl_->core->large_bodies})
    asio::post(*pool, [] { pthread_setname_np(pthread_self(), "handler"); });
  impl_->thread = std::thread([running = impl_.get()] {
    pthread_setname_np(pthread_self(), "http");
    running->run();
  });
  return {};
}

HttpServer::~HttpServer() {
  stop(std::chrono::milliseconds::zero());
  impl_->core->small_bodies.join();
  impl_->core->large_bodies.join();
  if (impl_->thread.joinable()) impl_->thread.join();
}

uint16_t HttpServer::port() const { return impl_->endpoint.port(); }

std::string HttpServer::address() const {
  const auto ip = impl_->endpoint.address();
  const std::string host = ip.is_v6() ? "[" + ip.to_string() + "]" : ip.to_string();
  return (impl_->secure ? "https://" : "http://") + host + ":" + std::to_string(port());
}

void HttpServer::stop(std::chrono::milliseconds grace) {
  if (stopped()) return;
  asio::post(impl_->core->io, [impl = impl_.get(), grace] { impl->begin_stop(grace); });
}

bool HttpServer::stopped() const { return impl_->core->stopped; }

}  // namespace unisono::serve

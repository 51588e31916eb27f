// The Reply that handlers hold: brings their calls to the I/O thread, and lets go of the connection when it is over.
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <exception>

#include "serve/http_connection.h"

namespace unisono::serve {

namespace asio = boost::asio;

Exchange::Exchange(std::shared_ptr<HttpCore> core, std::shared_ptr<Connection> connection, Origin origin)
    : core_(std::move(core)), connection_(std::move(connection)), origin_(std::move(origin)) {}

void Exchange::on_io(std::function<void()> call) {
  if (core_->stopped) return;
  asio::dispatch(core_->io, std::move(call));
}

void Exchange::send(HttpResponse response) {
  on_io([self = shared_from_this(), response = std::move(response)] {
    if (!self->connection_ || self->streaming_) return;
    const auto connection = self->connection_;
    self->complete();
    connection->respond(response);
  });
}

void Exchange::begin_stream(HttpResponse response) {
  on_io([self = shared_from_this(), response = std::move(response)] {
    if (!self->connection_ || self->streaming_) return;
    self->streaming_ = true;
    self->connection_->begin_stream(response);
  });
}

void Exchange::write(std::string part) {
  on_io([self = shared_from_this(), part = std::move(part)] {
    if (self->connection_ && self->streaming_) self->connection_->write_part(part);
  });
}

void Exchange::finish() {
  on_io([self = shared_from_this()] {
    if (!self->connection_ || !self->streaming_) return;
    const auto connection = self->connection_;
    self->complete();
    connection->end_answer();
  });
}

void Exchange::on_cancel(std::function<void()> call) {
  on_io([self = shared_from_this(), call = std::move(call)] {
    if (self->gone()) {
      call();
    } else if (self->connection_) {
      self->on_cancel_ = call;
    }
  });
}

void Exchange::post(std::function<void()> call) {
  if (core_->stopped) return;
  asio::post(core_->io, [self = shared_from_this(), call = std::move(call)] {
    try {
      call();
    } catch (const std::exception&) {
      self->broken();
    }
  });
}

void Exchange::note(JsonObject facts) {
  on_io([self = shared_from_this(), facts = std::move(facts)] {
    if (!self->connection_) return;
    for (const auto& [name, value] : facts) self->connection_->record_.notes[name] = value;
  });
}

void Exchange::complete() {
  connection_.reset();
  on_cancel_ = nullptr;
}

void Exchange::cancel() {
  gone_ = true;
  const auto call = std::move(on_cancel_);
  on_cancel_ = nullptr;
  if (call) call();  // which may still have something to note
  connection_.reset();
}

void Exchange::broken() {
  on_io([self = shared_from_this()] {
    if (!self->connection_) return;
    if (self->streaming_) return self->connection_->cut();
    const auto cancel = std::move(self->on_cancel_);
    self->send(self->core_->router.error(
        self->connection_->record_.path,
        {.status = 500, .message = "The server failed on this request; this is our fault.", .code = "internal_error"}));
    if (cancel) cancel();
  });
}

}  // namespace unisono::serve

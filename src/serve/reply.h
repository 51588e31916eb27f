// A request's way back to its client. Handlers get one and may keep it; every function may be called from any thread,
// takes effect in the order of the calls, and does nothing once the client has left or the answer is complete.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/http_message.h"

namespace unisono::serve {

class Reply {
 public:
  virtual ~Reply() = default;

  // The whole answer.
  virtual void send(HttpResponse response) = 0;

  // An answer in parts: begin with a response whose body is the first part, then write(), then finish().
  virtual void begin_stream(HttpResponse response) = 0;
  virtual void write(std::string part) = 0;
  virtual void finish() = 0;

  // Called once, on the I/O thread, when the client leaves (or reads too slowly) before the answer is complete; at once
  // if it has already left.
  virtual void on_cancel(std::function<void()> call) = 0;

  // Runs on the I/O thread, in the order of the calls; must be quick. Dropped once the server has stopped.
  virtual void post(std::function<void()> call) = 0;

  // The client has left: work for it can stop.
  virtual bool gone() const = 0;

  // Whose request it is and when it came. Never changes.
  virtual const Origin& origin() const = 0;
  // Adds to what the log says of the request.
  virtual void note(JsonObject facts) = 0;
};

}  // namespace unisono::serve

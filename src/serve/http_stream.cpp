#include "serve/http_stream.h"

namespace unisono::serve {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

std::variant<Stream::Plain, Stream::Secure> Stream::make(Plain socket, ssl::context* tls) {
  if (tls == nullptr) return socket;
  return Secure(std::move(socket), *tls);
}

Stream::Stream(Plain socket, ssl::context* tls) : stream_(make(std::move(socket), tls)) {}

boost::asio::ip::tcp::socket& Stream::socket() {
  if (auto* secure = std::get_if<Secure>(&stream_)) return secure->next_layer();
  return std::get<Plain>(stream_);
}

void Stream::close() {
  error_code ignored;
  socket().close(ignored);
}

Result<void> load_tls(const TlsFiles& files, ssl::context& tls) {
  error_code failure;
  tls.set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
                      ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 | ssl::context::no_compression,
                  failure);
  if (!failure) tls.use_certificate_chain_file(files.certificates, failure);
  if (failure)
    return Error{"'" + files.certificates + "' has no certificate that can be used (" + failure.message() +
                     "); give a PEM file with the server's certificate first.",
                 "--tls-cert"};
  // Without this OpenSSL would ask at the terminal.
  tls.set_password_callback([](size_t, ssl::context::password_purpose) { return std::string(); }, failure);
  tls.use_private_key_file(files.key, ssl::context::pem, failure);
  if (failure)
    return Error{"'" + files.key + "' has no private key for that certificate (" + failure.message() +
                     "); give the PEM file of its key, without a passphrase.",
                 "--tls-key"};
  return {};
}

}  // namespace unisono::serve

#pragma once
#include <cstddef>
#include <list>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace trireme {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

// What a request's head (up to the empty line) is answered with. GET only; the Host header must be
// this server's own, or a page of another name that resolves to loopback could read the run.
HttpAnswer AnswerHead(std::string_view head, int port,
                      FunctionRef<HttpAnswer(std::string_view path)> pages);
std::string HttpText(const HttpAnswer& answer);  // as it goes over the wire

// A small web server for a person at this machine: on 127.0.0.1, a few connections at a time, each
// with a bounded request and a deadline. One thread.
class PageServer {
 public:
  explicit PageServer(int port);  // 0: any that is free; an Error where it is taken
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const { return port_; }
  // Answers for so long; ends early when a signal arrives.
  void Serve(double seconds, FunctionRef<HttpAnswer(std::string_view path)> pages);

 private:
  struct Connection {
    int fd = -1;
    std::string request, answer;
    size_t sent = 0;
    double until_s = 0;
    bool done = false;
  };
  void Accept();
  void Read(Connection& connection, FunctionRef<HttpAnswer(std::string_view path)> pages);
  void Write(Connection& connection);

  int fd_ = -1;
  int port_ = 0;
  std::list<Connection> connections_;
};

}  // namespace trireme

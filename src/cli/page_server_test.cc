#include "cli/page_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

namespace trireme {
namespace {

const auto Pages = [](std::string_view path) -> HttpAnswer {
  if (path == "/") return {200, "text/html", "hello"};
  if (path == "/data") return {200, "application/json", std::string(3 << 20, 'x')};
  return {404, {}, "no"};
};

int StatusOf(const std::string& head) { return AnswerHead(head, 8000, Pages).status; }

TEST(PageServer, AnswersOnlyGetOfItsOwnPagesUnderItsOwnName) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: 127.0.0.1:8000"), 200);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHOST:  LocalHost:8000 "), 200);
  EXPECT_EQ(StatusOf("GET /../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:8000"), 404);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: 127.0.0.1:8000"), 405);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: evil.example:8000"), 403);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: 127.0.0.1:8001"), 403);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nHost: evil.example"), 403);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1"), 403);
  EXPECT_EQ(StatusOf("GET http://127.0.0.1:8000/ HTTP/1.1\r\nHost: 127.0.0.1:8000"), 400);
  EXPECT_EQ(StatusOf(""), 400);
  EXPECT_EQ(StatusOf("GET"), 400);
}

TEST(PageServer, NoRequestCrashesIt) {
  const std::string good = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nAccept: */*";
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::string head = good.substr(0, random() % (good.size() + 1));
    for (int i = int(random() % 5); i > 0 && !head.empty(); --i) {
      head[random() % head.size()] = char(random());
    }
    const int status = StatusOf(head);
    EXPECT_TRUE(status == 200 || (status >= 400 && status < 432)) << status;
  }
}

// A client of its own: what the server says until it closes.
std::string Talk(int port, const std::string& text, bool end) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string heard;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (end) ::shutdown(fd, SHUT_WR);
    char buffer[65536];
    for (ssize_t got; (got = ::recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
      heard.append(buffer, size_t(got));
    }
  }
  ::close(fd);
  return heard;
}

TEST(PageServer, ServesWholePagesWhileOthersMisbehave) {
  PageServer server(0);
  std::atomic<bool> over = false;
  std::thread serving([&] {
    while (!over) server.Serve(0.05, Pages);
  });
  const std::string host = "Host: 127.0.0.1:" + std::to_string(server.port()) + "\r\n";
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);  // connects, says nothing
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(server.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(silent, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(Talk(server.port(), "GET / HT", true), "");
  EXPECT_TRUE(Talk(server.port(), std::string(20000, 'a'), false).starts_with("HTTP/1.1 431 "));
  const std::string small = Talk(server.port(), "GET / HTTP/1.1\r\n" + host + "\r\n", false);
  EXPECT_TRUE(small.starts_with("HTTP/1.1 200 OK\r\n")) << small;
  EXPECT_TRUE(small.ends_with("\r\n\r\nhello")) << small;
  EXPECT_GT(Talk(server.port(), "GET /data HTTP/1.1\r\n" + host + "\r\n", false).size(),
            size_t{3} << 20);
  ::close(silent);
  over = true;
  serving.join();
}

}  // namespace
}  // namespace trireme

// A pilot's worst mistake, kept so that a test can see the linker refuse it.
#include <netdb.h>

int main(int, char** argv) {
  addrinfo* found = nullptr;
  return getaddrinfo(argv[1], nullptr, nullptr, &found);
}

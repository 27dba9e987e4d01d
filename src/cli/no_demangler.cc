// In the portable file only. libc++abi's own reads any mangled name, takes 0.16 MB, and is called
// for nothing but the message about an exception that nobody catches: the name stays mangled there.
// NOLINTNEXTLINE: the name is theirs
extern "C" char* __cxa_demangle(const char*, char*, unsigned long*, int* status) {
  if (status) *status = -1;
  return nullptr;
}

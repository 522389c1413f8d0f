/* Defines the functions of newer C libraries that libraries in a bundle call, so that the bundle
   starts on systems with an older one (drop_versions.py, bundle.sh). Where the C library of the
   node has a function of the same name, either may be used: they do the same. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

/* Fills bytes [size] from the kernel's random generator. Like the function of glibc 2.36, it cannot
   fail: it ends the process if the kernel has no such generator. */
void arc4random_buf(void* bytes, size_t size) {
  unsigned char* at = bytes;
  while (size > 0) {
    const ssize_t got = getrandom(at, size, 0);
    if (got > 0) {
      at += got;
      size -= (size_t)got;
    } else if (errno != EINTR) {
      abort();
    }
  }
}

uint32_t arc4random(void) {
  uint32_t bits = 0;
  arc4random_buf(&bits, sizeof bits);
  return bits;
}
